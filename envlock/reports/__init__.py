"""Report formats: a report in, a string out. One file for each format, and every command has all of
them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from envlock.runtime.errors import make_choice_error
from envlock.runtime.report import Report

FORMATS = ("text", "json", "github", "junit", "sarif")
"""The names on the command line, which are those of the modules; the first is for people."""


class Render(Protocol):
    """The type of a format: a function from a report to the text that is printed."""

    def __call__(self, report: Report, *, color: bool = False) -> str:
        """Return the report in this format; `color` is whether a terminal will show it."""
        ...


def render(
    report: Report,
    format: str = "text",  # noqa: A002 (the option's name)
    *,
    color: bool = False,
    width: int | None = None,
    verbose: bool = False,
) -> str:
    """Return a report in one of FORMATS; its module is imported now, because a command needs only
    one.

    Args:
        report: that of any command.
        format: one of FORMATS.
        color: a terminal will show it.
        width: columns of that terminal, at which text is wrapped.
        verbose: as text, list also what the policy allows, and the facts of each change.

    Raises:
        UsageError: there is no such format.
    """
    if format not in FORMATS:
        raise make_choice_error("format", format, FORMATS)
    module = import_module(f"envlock.reports.{format}")
    if format == "text":
        return str(module.render(report, color=color, width=width, verbose=verbose))
    return cast(Render, module.render)(report, color=color)
