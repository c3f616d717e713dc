"""What races only inside graphs: found while a graph is built, with the line that asked for it.
Nothing is changed.
"""

from __future__ import annotations

from envlock.guest.tracing import private
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional, Sequence, Set, Tuple

    from tensorflow import Graph, Operation, Tensor

    from envlock.guest.tracing.source_lines import Places

    Place = Tuple[str, int, str]

_GROUPS = table("operations")
SUMS = frozenset(_GROUPS["sums"])
SUMMANDS = 3
"""Two numbers give the same sum in both orders."""
STATEFUL = frozenset(_GROUPS["random"] + _GROUPS["generators"])
LIMIT = 200
"""Operations, and called functions, that are kept."""


class Suspects:
    """Collects operations of graphs that can give another result each time although every operation
    is sound.
    """

    def __init__(self, places: Places) -> None:
        """`places` finds the user's lines."""
        self._places = places
        self._operations: Dict[Tuple[str, str, str, Optional[Place]], None] = {}
        self._calls: Set[str] = set()
        self._is_compiled = False

    def check_operation(self, kind: str, outputs: Sequence[Tensor], graph: Graph) -> None:
        """Keep an operation that has just been put into a graph, if it is a suspect."""
        if kind not in SUMS and kind not in STATEFUL:
            return
        if len(self._operations) >= LIMIT or not outputs:
            return
        operation: Operation = outputs[0].op
        if kind not in SUMS:
            why = "random"
            if _is_in_loop(graph):
                why = "random in a loop"
        elif len(operation.inputs) >= SUMMANDS:
            why = "sum"
        else:
            return
        place = self._places.find_in_stack(operation.traceback)
        self._operations[(why, kind, operation.name, place)] = None

    def check_call(self, name: str) -> None:
        """Find out whether XLA compiles a function that was called; later TensorFlow may have
        forgotten it.
        """
        if len(self._calls) < LIMIT and name not in self._calls:
            self._calls.add(name)
            self._is_compiled = self._is_compiled or private.is_compiled(name)

    def to_json(self) -> Dict[str, object]:
        """Return what was found, and whether any function that was called is compiled by XLA."""
        operations = [
            {"why": why, "type": kind, "name": name, "place": place}
            for why, kind, name, place in self._operations
        ]
        return {"operations": operations, "xla": self._is_compiled}


def _is_in_loop(graph: Optional[Graph]) -> bool:
    while graph is not None:
        if type(graph).__name__ in ("WhileBodyFuncGraph", "WhileCondFuncGraph"):
            return True
        graph = getattr(graph, "outer_graph", None)
    return False
