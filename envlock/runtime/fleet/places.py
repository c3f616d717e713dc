"""Where something is: nodes and ranks in a few words, and long lists of nodes once in a report. Pure."""

from __future__ import annotations

from envlock.runtime.fleet.node_names import few, node_list, ranges
from envlock.runtime.report import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Sequence, Set, Tuple

    from envlock.runtime.fleet.statement import Statement

    Members = List[Statement]

LONGEST = 40  # characters of a list of ranks beside their nodes; a longer one becomes a number
LONGEST_RANKS = 200  # and of a list of ranks that have no nodes
NAMED = 60  # characters of a list of nodes in a sentence; a longer one is a node set, listed below
SETS_SHOWN, SET_SHOWN = 8, 300  # node sets that a report lists, and characters of each


class Places:
    """The nodes that a report names. What is too long for each sentence is listed once, as a node set.

    Attributes:
        sets: the complete lists of node sets, by their numbers.
    """

    def __init__(self) -> None:
        self.sets: Dict[str, str] = {}
        self._names: Dict[FrozenSet[str], str] = {}

    def of(self, members: Sequence[Statement]) -> str:
        """Return nodes and ranks of statements: `n3 (ranks 4-5)`."""
        ranks = {each["rank"] for each in members}
        listed = f"{'rank' if len(ranks) == 1 else 'ranks'} {ranges(ranks)}"
        which = count(len(members), "rank") if len(listed) > LONGEST else listed
        return f"{self._named(frozenset([each['node'] for each in members]))} ({which})"

    def _named(self, nodes: FrozenSet[str]) -> str:
        if nodes not in self._names:
            listed = node_list(nodes)
            if len(listed) > NAMED and len(nodes) > 1:
                self.sets[str(len(self.sets) + 1)] = listed
                self._names[nodes] = f"node set {len(self.sets)}"
            else:
                self._names[nodes] = listed
        return self._names[nodes]

    def notes(self) -> List[str]:
        """Return a sentence for each of the first node sets, and one on the others."""
        named = [(name, nodes) for nodes, name in self._names.items() if name.startswith("node set ")]
        found = [f"{name} has {count(len(nodes), 'node')}: {few(nodes, SET_SHOWN)}" for name, nodes in named]
        left = len(found) - SETS_SHOWN
        return [*found[:SETS_SHOWN], f"{count(left, 'more node set')}"] if left > 0 else found


def listed(numbers: Set[int]) -> str:
    """Return ranks, the first of them where there are too many runs: `ranks 0,2,4 and 4,997 more`."""
    text = ranges(numbers)
    if len(text) > LONGEST_RANKS:
        shown = text[:LONGEST_RANKS].rpartition(",")[0]
        number = sum([int(b or a) - int(a) + 1 for a, _, b in (part.partition("-") for part in shown.split(","))])
        text = f"{shown} and {len(numbers) - number:,} more"
    return f"{'rank' if len(numbers) == 1 else 'ranks'} {text}"


def together(statements: Iterable[Statement], key: Callable[[Statement], Any]) -> List[Members]:
    """Return the statements that have one key together, the most first, then those of the lowest rank."""
    found: Dict[Any, Members] = {}
    for each in statements:
        found.setdefault(key(each), []).append(each)
    return sorted(found.values(), key=order)


def order(members: Members) -> Tuple[int, int]:
    """Return by what groups of ranks are sorted."""
    return -len(members), min(each["rank"] for each in members)
