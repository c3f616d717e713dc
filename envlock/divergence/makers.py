"""Which functions of Python and NumPy gave another value in each run, before the runs first differed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.data.determinism import MakerRow, makers
from envlock.divergence.trace import Place

Key = tuple[str, Place]
Call = tuple[int, int, str | None]
"""After how many entries of the trace, the number of the call among all, and the fingerprint of what it gave."""


@dataclass(frozen=True)
class Maker:
    """A function, the user's line that called it and its text, and what the table says of it.

    `is_shown`: with the same from it in every run, the difference is gone.
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


def candidates(ends: Sequence[Mapping[str, Any]], before: int) -> list[Maker]:
    """Return what gave another value in some run before entry `before` of its trace, the latest first.

    `ends`: what the tracer said of each run.
    """
    rows = {row.name or name: row for row in makers() for name in row.functions}
    runs = [_calls(each.get("makers") or (), before) for each in ends]
    latest = {
        key: calls[-1][:2] for run in reversed(runs) for key, calls in run.items() if key[0] in rows
    }
    found = [
        key
        for key in latest
        if len({tuple(print_ for *_, print_ in run.get(key, ())) for run in runs}) > 1
    ]
    found.sort(
        key=lambda key: (latest[key][0], rows[key[0]].hold != "clock", latest[key][1]), reverse=True
    )
    return [Maker(name, place, rows[name]) for name, place in found]


def _calls(noted: Sequence[Mapping[str, Any]], before: int) -> dict[Key, list[Call]]:
    found = {}
    for each in noted:
        calls: list[Call] = [
            (entries, number, print_)
            for entries, number, print_ in each["calls"]
            if entries <= before
        ]
        if calls:
            found[each["name"], Place(*each["place"])] = calls
    return found
