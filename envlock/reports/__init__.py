"""Report formats: a report in, a string out. One file a format, one line in `FORMATS`."""

from __future__ import annotations

from typing import Protocol

from envlock.reports import github, json, junit, sarif, text
from envlock.runtime.report import Report


class Render(Protocol):
    """What a format is: a function from a report to the text that is printed."""

    def __call__(self, report: Report, *, color: bool = False) -> str:
        """Return the report in this format; `color` says whether a terminal will show it."""
        ...


FORMATS: dict[str, Render] = {
    "text": text.render,
    "json": json.render,
    "github": github.render,
    "junit": junit.render,
    "sarif": sarif.render,
}
