"""Where a finding applies: nodes and ranks in a few words; each long list of nodes appears only
once in a report. Pure.
"""

from __future__ import annotations

from envlock.fleet.node_names import format_nodes, shorten_nodes
from envlock.runtime.device_ranges import format_ranges
from envlock.runtime.report import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, FrozenSet, Iterable, List, Sequence, Set, Tuple

    from envlock.fleet.statement import Statement

    Members = List[Statement]

LONGEST = 40
"""Characters of a list of ranks beside their nodes; a longer list is replaced by its number."""
LONGEST_RANKS = 200
"""Characters of a list of ranks that have no nodes."""
NAMED = 60
"""Characters of a list of nodes in a sentence; a longer list becomes a node set, which is listed
below.
"""
SETS_SHOWN, SET_SHOWN = 8, 300
"""Node sets that a report lists, and the characters of each."""


class Places:
    """The nodes that a report names. A list that is too long for a sentence is given once, as a
    node set.

    Attributes:
        sets: the complete lists of node sets, by number.
    """

    def __init__(self) -> None:
        self.sets: Dict[str, str] = {}
        self._names: Dict[FrozenSet[str], str] = {}

    def describe(self, members: Sequence[Statement]) -> str:
        """Return the nodes and ranks of statements: `n3 (ranks 4-5)`."""
        which = _spell({member["rank"] for member in members})
        if len(which) > LONGEST:
            which = count(len(members), "rank")
        nodes = frozenset([member["node"] for member in members])
        return f"{self._name_nodes(nodes)} ({which})"

    def _name_nodes(self, nodes: FrozenSet[str]) -> str:
        """Return nodes as a list or, if that is too long for a sentence, as the node set with that
        list.
        """
        if nodes not in self._names:
            name = format_nodes(nodes)
            if len(name) > NAMED and len(nodes) > 1:
                self.sets[str(len(self.sets) + 1)] = name
                name = f"node set {len(self.sets)}"
            self._names[nodes] = name
        return self._names[nodes]

    def notes(self) -> List[str]:
        """Return a sentence for each of the first node sets, and one on the others."""
        notes = []
        for nodes, name in self._names.items():
            if name != format_nodes(nodes):
                number = count(len(nodes), "node")
                notes.append(f"{name} has {number}: {shorten_nodes(nodes, SET_SHOWN)}")
        left = len(notes) - SETS_SHOWN
        if left <= 0:
            return notes
        return [*notes[:SETS_SHOWN], count(left, "more node set")]


def _spell(numbers: Set[int]) -> str:
    """Return ranks as ranges: `rank 3`, `ranks 0-2,5`."""
    word = "rank" if len(numbers) == 1 else "ranks"
    return f"{word} {format_ranges(numbers)}"


def list_ranks(numbers: Set[int]) -> str:
    """Return ranks, or the first of them if there are too many ranges: `ranks 0,2,4 and 4,997
    more`.
    """
    text = format_ranges(numbers)
    if len(text) <= LONGEST_RANKS:
        return _spell(numbers)
    shown = text[:LONGEST_RANKS].rpartition(",")[0]
    number = 0
    for part in shown.split(","):
        first, _, last = part.partition("-")
        number += int(last or first) - int(first) + 1
    return f"ranks {shown} and {len(numbers) - number:,} more"


def find_missing(statements: Iterable[Statement], size: int) -> Set[int]:
    """Return the ranks of a job that have made no statement."""
    return set(range(size)).difference([statement["rank"] for statement in statements])


def group_by(statements: Iterable[Statement], key: Callable[[Statement], object]) -> List[Members]:
    """Return groups of statements with the same key, the largest first, then that with the lowest
    rank.
    """
    groups: Dict[object, Members] = {}
    for statement in statements:
        groups.setdefault(key(statement), []).append(statement)
    return sorted(groups.values(), key=order)


def order(members: Members) -> Tuple[int, int]:
    """Return the sort key of groups of ranks: the most ranks first, then the lowest rank."""
    return -len(members), min([member["rank"] for member in members])
