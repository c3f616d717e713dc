"""How much a verdict rests on: how much of each kind was compared."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Mapping, Optional, Tuple, Union

    Facts = Union[int, Callable[[], int], None]

KINDS = ("facts", "files", "operations", "ranks", "runs")

NOTHING = "cannot decide: nothing was compared"
"""The headline of a report without findings for which nothing was compared."""


class Extent:
    """How much was compared, by kind; None for a kind that was not asked for.

    Attributes:
        files: installed files that were read and compared with their RECORD.
        operations: results of operations, or of compiled programs, that were compared.
        ranks: ranks of a job whose environment was compared.
        runs: runs of a program whose results were compared.
    """

    __slots__ = ("_facts", "files", "operations", "ranks", "runs")

    def __init__(
        self,
        *,
        facts: Facts = None,
        files: Optional[int] = None,
        operations: Optional[int] = None,
        ranks: Optional[int] = None,
        runs: Optional[int] = None,
    ) -> None:
        self._facts = facts
        self.files = files
        self.operations = operations
        self.ranks = ranks
        self.runs = runs

    @property
    def facts(self) -> Optional[int]:
        """How many facts both sides have, known, that the policy judges.

        They are counted when this is asked for: it takes longer than the verdict of a script that
        matches.
        """
        if callable(self._facts):
            self._facts = self._facts()
        return self._facts

    @property
    def is_nothing(self) -> bool:
        """Whether nothing of any kind was compared.

        Facts that are not counted yet are something: `find_uncompared` has looked at the needed
        ones.
        """
        others = (self.files, self.operations, self.ranks, self.runs)
        return not self._facts and not any(others)

    def add(self, other: Extent) -> Extent:
        """Return what was compared here and there; of a kind that both have, the sum."""
        sums: Dict[str, Optional[int]] = {}
        for kind in KINDS[1:]:
            sums[kind] = _add(getattr(self, kind), getattr(other, kind))
        if other._facts is None:
            facts = self._facts
        elif self._facts is None:
            facts = other._facts
        else:
            facts = _add(self.facts, other.facts)
        return Extent(facts=facts, **sums)

    def to_json(self) -> Dict[str, int]:
        """Return JSON values: the kinds that were asked for."""
        document = {}
        for kind in KINDS:
            number = getattr(self, kind)
            if number is not None:
                document[kind] = number
        return document

    @classmethod
    def read(cls, document: Mapping[str, object]) -> Extent:
        """Return what `to_json` wrote; other names are skipped.

        Raises:
            ValueError: a number is not a count.
        """
        numbers: Dict[str, int] = {}
        for kind in KINDS:
            number = document.get(kind)
            if number is None:
                continue
            if type(number) is not int or number < 0:
                raise ValueError("not a count")
            numbers[kind] = number
        return cls(**numbers)

    def __reduce__(self) -> Tuple[Callable[[Mapping[str, object]], Extent], Tuple[object, ...]]:
        """Count the facts when pickled: what they are counted from stays here."""
        return (Extent.read, (self.to_json(),))


def _add(one: Optional[int], other: Optional[int]) -> Optional[int]:
    if one is None:
        return other
    if other is None:
        return one
    return one + other


def decide(is_wrong: bool, is_open: bool, extent: Optional[Extent]) -> int:
    """Return the exit code of every command that judges: 0 for yes, 1 for no, 4 for unknown.

    Args:
        is_wrong: whether a finding says no.
        is_open: whether something that decides is unknown.
        extent: how much was compared; None if the command compares nothing.
    """
    if is_wrong:
        return 1
    if is_open or (extent is not None and extent.is_nothing):
        return 4
    return 0
