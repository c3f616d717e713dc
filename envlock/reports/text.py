"""For people: the only file of this room that knows rich."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from io import StringIO
from typing import Any

from envlock.reports import canary, code, diverge, doctor, files, repeat, traces
from envlock.runtime.report import Report, with_legend

Lines = Iterable[tuple[str, str]]
STYLES = {
    "title": "bold",
    "error": "red",
    "unknown": "yellow",
    "warning": "yellow",
    "info": "cyan",
    "note": "dim",
    "plain": "",
}


def _plain(report: Report) -> Lines:
    """Yield each finding with its reason and its remedy, then a table of files."""
    yield from report.lines()
    yield from files.render_lines(finding for finding in report.findings if files.is_file(finding))


# Each takes the evidence that its command attaches: the one place where mypy must believe that they go together.
LAYOUTS: Mapping[str, Callable[[Report[Any]], Lines]] = {
    "canary": canary.render_lines,
    "diverge": diverge.render_lines,
    "diverge compare": traces.render_lines,
    "doctor": doctor.render_lines,
    "lint": code.render_lines,
    "repeat": repeat.render_lines,
}
"""How the reports of commands look that show more than findings."""


def render(report: Report, *, color: bool = False) -> str:
    """Return the report as text."""
    return paint(with_legend(LAYOUTS.get(report.command, _plain)(report)), color=color)


def paint(lines: Lines, *, color: bool) -> str:
    """Return (style, line) pairs as one text, with terminal colours if asked for."""
    shown = [(style, _inert(line)) for style, line in lines]
    if not color:
        return "\n".join(line for _, line in shown)
    from rich.console import Console
    from rich.text import Text

    out = StringIO()
    console = Console(
        file=out, force_terminal=True, color_system="standard", highlight=False, soft_wrap=True
    )
    for style, line in shown:
        console.print(Text(line, style=STYLES[style]))
    return out.getvalue().rstrip("\n")


def _inert(line: str) -> str:
    """Return a line that GitHub does not obey where it stands in a log: it obeys one that begins with two colons."""
    return line.replace("::", "\\x3a:", 1) if line.lstrip().startswith("::") else line
