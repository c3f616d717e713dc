"""Operations that race only inside graphs: found while a graph is built, with the line that created
them. Nothing is changed.
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
"""Two numbers have the same sum in both orders."""
STATEFUL = frozenset(_GROUPS["random"] + _GROUPS["generators"])
LIMIT = 200
"""The most operations, and called functions, that are recorded."""


class Suspects:
    """Collects operations in graphs that can give a different result each time although each is
    deterministic on its own.
    """

    def __init__(self, places: Places) -> None:
        """`places` finds the user's lines."""
        self._places = places
        self._operations: Dict[Tuple[str, str, str, Optional[Place]], None] = {}
        self._calls: Set[str] = set()
        self._is_compiled = False

    def check_operation(self, kind: str, outputs: Sequence[Tensor], graph: Graph) -> None:
        """Record an operation that has just been added to a graph, if it is a suspect."""
        if kind not in SUMS and kind not in STATEFUL:
            return
        if len(self._operations) >= LIMIT or not outputs:
            return
        operation: Operation = outputs[0].op
        if kind not in SUMS:
            why = "random in a loop" if _is_in_loop(graph) else "random"
        elif len(operation.inputs) >= SUMMANDS:
            why = "sum"
        else:
            return
        place = self._places.find_in_stack(operation.traceback)
        self._operations[(why, kind, operation.name, place)] = None

    def check_call(self, name: str) -> None:
        """Check whether XLA compiles a function that was called; later TensorFlow may have dropped
        it.
        """
        if len(self._calls) < LIMIT and name not in self._calls:
            self._calls.add(name)
            self._is_compiled = self._is_compiled or private.is_compiled(name)

    def to_json(self) -> Dict[str, object]:
        """Return the suspects, and whether XLA compiles any function that was called."""
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
