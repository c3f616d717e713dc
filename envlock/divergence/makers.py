"""Functions of Python and NumPy that gave another value in each run, before the first difference. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.data.determinism import MakerRow, load_makers
from envlock.divergence.trace import Place

Key = tuple[str, Place]
Call = tuple[int, int, str | None]
"""Entries of the trace before the call, its number among all calls, and the fingerprint of its value."""


@dataclass(frozen=True)
class Maker:
    """A function that made a value, and the user's line that called it.

    Attributes:
        row: the table's row of the function.
        text: the text of the line.
        is_shown: with the same from it in every run, the difference is gone.
    """

    name: str
    place: Place
    row: MakerRow
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

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {"name": self.name, "place": self.place.to_json(), "text": self.text}


def find_candidates(ends: Sequence[Mapping[str, Any]], before: int) -> list[Maker]:
    """Return what gave another value in some run before an entry of its trace, the latest first.

    `ends`: what the tracer wrote at the end of each run.
    """
    rows: dict[str, MakerRow] = {}
    for row in load_makers():
        for name in row.functions:
            rows[row.name or name] = row
    runs = [_collect_calls(end.get("makers") or (), before) for end in ends]
    latest: dict[Key, tuple[int, int]] = {}
    for run in reversed(runs):
        for key, calls in run.items():
            if key[0] in rows:
                latest[key] = calls[-1][:2]
    found = []
    for key in latest:
        prints = {tuple(print_ for *_, print_ in run.get(key, ())) for run in runs}
        if len(prints) > 1:
            found.append(key)

    def rank(key: Key) -> tuple[int, bool, int]:
        entries, number = latest[key]
        # Of those after the same entry, a clock is the last to be suspected.
        return entries, rows[key[0]].hold != "clock", number

    found.sort(key=rank, reverse=True)
    return [Maker(name, place, rows[name]) for name, place in found]


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
