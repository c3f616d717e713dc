"""Functions of Python and NumPy that gave another value in each run, before the first difference. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any

from envlock.data.determinism import MakerRow, load_makers
from envlock.evidence.diverge.trace import Place
from envlock.guest.tracing import value_makers

Key = tuple[str, Place]
Call = tuple[int, int, str | None]
"""Entries of the trace before the call, its number among all calls, and the fingerprint of its value."""


SEEDING = "given"
"""How rows are held that seed a generator of a module."""
CALLS = value_makers.CALLS


@dataclass(frozen=True)
class Maker:
    """A function that made a value, and the user's line that called it.

    Attributes:
        row: the table's row of the function; None for a statement that was found by what it read and left.
        number: of its last call among all calls of such functions.
        is_importing: it was called while a module was imported.
        fix: what helps, where it has no row.
        text: the text of the line.
        is_shown: with equal values from it in every run, the difference is gone.
    """

    name: str
    place: Place
    row: MakerRow | None
    number: int = 0
    is_importing: bool = False
    fix: str = ""
    text: str = ""
    is_shown: bool = True

    @property
    def title(self) -> str:
        """The function with its line."""
        return f"{self.name} at {self.place.file}:{self.place.line}"

    @property
    def held(self) -> tuple[str, str, int]:
        """What a request names, so that it gives the same in every run."""
        return self.name, self.place.file, self.place.line

    @property
    def remedy(self) -> str:
        """What helps; empty where a row of the sources says it."""
        if self.row is None:
            return self.fix
        return self.row.fix or ""

    @property
    def hold(self) -> str:
        """How the table says that it is held; `nothing` where it has no row."""
        if self.row is None:
            return "nothing"
        return self.row.hold

    @property
    def can_be_held(self) -> bool:
        """Whether it can be made to give the same in every run."""
        return self.hold not in ("nothing", "left")

    @property
    def source(self) -> str | None:
        """The row of the sources that explains it, where there is one."""
        if self.row is None:
            return None
        return self.row.row

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {"name": self.name, "place": self.place.to_json(), "text": self.text}


def find_candidates(
    ends: Sequence[Mapping[str, Any]], before: int, groups: Sequence[int] = ()
) -> list[Maker]:
    """Return what gave another value in some run before an entry of its trace, the likeliest first.

    Args:
        ends: what the tracer wrote at the end of each run.
        before: the number of the entry.
        groups: of each run the number of its result there. What gave the same in two runs with different results
            is not what makes them differ; without them, nothing is left out for that.
    """
    rows: dict[str, MakerRow] = {}
    for row in load_makers():
        for name in row.functions:
            rows[row.name or name] = row
    runs = [_collect_calls(end.get("makers") or (), before) for end in ends]
    latest: dict[Key, tuple[int, int]] = {}
    # The first run comes last, so that its numbers stand where several made the call.
    for run in reversed(runs):
        for key, calls in run.items():
            if key[0] in rows:
                latest[key] = calls[-1][:2]
    importing = _list_importing(ends)
    found: list[tuple[tuple[bool, bool, int, bool, int], Maker]] = []
    for key, (entries, number) in latest.items():
        prints = [tuple(print_ for *_, print_ in run.get(key, ())) for run in runs]
        if len(set(prints)) == 1 or not _can_explain(prints, groups):
            continue
        row = rows[key[0]]
        # A draw follows from the seed. What importing draws hardly ever decides anything, and of those after the
        # same entry, a clock is the last to be suspected.
        rank = key not in importing, row.hold == SEEDING, entries, row.hold != "clock", number
        found.append((rank, Maker(*key, row, number, key in importing)))
    found.sort(key=itemgetter(0), reverse=True)
    return [maker for _, maker in found]


def _list_importing(ends: Sequence[Mapping[str, Any]]) -> set[Key]:
    """Return the functions and lines that were called while a module was imported."""
    found = set()
    for end in ends:
        for noted in end.get("makers") or ():
            if noted.get("importing"):
                found.add((noted["name"], Place(*noted["place"])))
    return found


def _can_explain(prints: Sequence[tuple[str | None, ...]], groups: Sequence[int]) -> bool:
    """Return whether runs in which a line gave the same have the same result, as far as is known."""
    if len(groups) != len(prints):
        return True
    results: dict[tuple[str | None, ...], int] = {}
    for values, group in zip(prints, groups, strict=True):
        # What has no fingerprint, and what came after the calls that are kept, can differ.
        if None in values or len(values) >= CALLS:
            continue
        if results.setdefault(values, group) != group:
            return False
    return True


def list_sources(seeding: Maker, makers: Sequence[Maker]) -> list[Maker]:
    """Return what can have made the seed that a line gave a generator: what was called before, the latest first."""
    before = [maker for maker in makers if maker.number < seeding.number and maker != seeding]
    return sorted(before, key=attrgetter("number"), reverse=True)


def _collect_calls(noted: Sequence[Mapping[str, Any]], before: int) -> dict[Key, list[Call]]:
    """Return the calls of each function from each line until entry `before` of the trace."""
    found: dict[Key, list[Call]] = {}
    for maker in noted:
        calls: list[Call] = []
        for entries, number, print_ in maker["calls"]:
            call = entries, number, print_
            if entries <= before:
                calls.append(call)
        if calls:
            found[maker["name"], Place(*maker["place"])] = calls
    return found
