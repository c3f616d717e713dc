"""What races only inside graphs: seen while a graph is built, with the line that asked for it. Nothing is changed."""

from __future__ import annotations

from envlock.guest.tracing import private
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Set, Tuple

    from envlock.guest.tracing.source_lines import Places

    Place = Tuple[str, int, str]

_GROUPS = table("operations")
SUMS = frozenset(_GROUPS["sums"])
SUMMANDS = 3  # two numbers give the same sum in both orders
STATEFUL = frozenset(_GROUPS["random"] + _GROUPS["generators"])
LIMIT = 200


class Suspects:
    """Collects operations of graphs that can give another result each time although every operation is sound."""

    def __init__(self, places: Places) -> None:
        """`places` finds the user's lines."""
        self._places = places
        self._found: Dict[Tuple[str, str, str, Optional[Place]], None] = {}
        self._calls: Set[str] = set()
        self._compiled = False

    def built(self, kind: str, outputs: Any, graph: Any, attrs: Any) -> None:
        """Look at an operation that has just been put into a graph."""
        if (kind in SUMS or kind in STATEFUL) and len(self._found) < LIMIT and outputs:
            self._look(kind, outputs[0].op, graph)

    def called(self, name: str) -> None:
        """Look whether XLA compiles a function that was called; later it may be forgotten."""
        if len(self._calls) < LIMIT and name not in self._calls:
            self._calls.add(name)
            self._compiled = self._compiled or private.is_compiled(name)

    def _look(self, kind: str, operation: Any, graph: Any) -> None:
        if kind in SUMS:
            if len(operation.inputs) < SUMMANDS:
                return
            why = "sum"
        else:
            why = "random in a loop" if _in_loop(graph) else "random"
        place = self._places.of_stack(operation.traceback)
        self._found[(why, kind, operation.name, place)] = None

    def to_json(self) -> Dict[str, Any]:
        """Return what was found, and whether any function that was called is compiled by XLA."""
        listed = [
            {"why": why, "type": kind, "name": name, "place": place}
            for why, kind, name, place in self._found
        ]
        return {"operations": listed, "xla": self._compiled}


def _in_loop(graph: Any) -> bool:
    while graph is not None:
        if type(graph).__name__ in ("WhileBodyFuncGraph", "WhileCondFuncGraph"):
            return True
        graph = getattr(graph, "outer_graph", None)
    return False
