"""For people: the only file of this room that knows rich."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from io import StringIO

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
    yield from files.lines(finding for finding in report.findings if files.is_file(finding))


LAYOUTS: Mapping[str, Callable[[Report], Lines]] = {
    "canary": canary.lines,
    "diverge": diverge.lines,
    "diverge compare": traces.lines,
    "doctor": doctor.lines,
    "lint": code.lines,
    "repeat": repeat.lines,
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
