"""Reports as text; only this file of the room uses rich."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module

from envlock.reports import file_tables
from envlock.runtime.report import Report

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
NARROW = 40
"""Columns below which wrapped text is harder to read than what the terminal makes of long lines."""
_START = re.compile(r" *(?:[x?!i] |why: |fix: )?")
"""The indent of a line and what its sentence stands after: a mark, or the word for what follows."""


def _render_plain(report: Report, *, verbose: bool = False) -> Lines:
    """Yield each finding with its reason and its remedy, then a table of files."""
    yield from report.lines(verbose=verbose)
    yield from file_tables.render_lines(filter(file_tables.is_file, report.findings))


LAYOUTS: Mapping[str, str] = {
    "canary": "envlock.evidence.canary.canary_text",
    "diverge": "envlock.evidence.diverge.divergence_text",
    "diverge compare": "envlock.evidence.diverge.traces",
    "doctor": "envlock.diagnosis.doctor_text",
    "lint": "envlock.linter.lint_text",
    "repeat": "envlock.evidence.repeat.repeat_text",
}
"""The modules that lay out what a command shows besides findings, with the `render_lines` of each; one is loaded when
its command prints, as a format is.
"""


def render(
    report: Report, *, color: bool = False, width: int | None = None, verbose: bool = False
) -> str:
    """Return the report as text, wrapped at the width of a terminal where there is one."""
    layout = LAYOUTS.get(report.command)
    lines: Lines = (
        import_module(layout).render_lines(report)
        if layout is not None
        else _render_plain(report, verbose=verbose)
    )
    if width is not None:
        lines = hang_lines(lines, width)
    return paint(lines, color=color)


def paint(lines: Lines, *, color: bool) -> str:
    """Return (style, line) pairs as one text, with terminal colours if requested."""
    if not color:
        return "\n".join(_disarm_line(line) for _, line in lines)
    # Most output goes without colours, and rich takes 60 ms to load.
    from envlock.reports.terminal_colors import color_lines

    return color_lines((STYLES[style], _disarm_line(line)) for style, line in lines)


def _disarm_line(line: str) -> str:
    """Return a line that GitHub does not execute in a log: it executes lines that begin with two
    colons.
    """
    if line.lstrip().startswith("::"):
        return line.replace("::", "\\x3a:", 1)
    return line


def hang_lines(lines: Lines, width: int) -> Iterator[tuple[str, str]]:
    """Yield (style, line) pairs in which no line is longer than a width, as far as words allow, each
    part of a long one below the first word of its sentence.

    Tables, which have columns, stay as they are; so does everything where the terminal is narrow.
    """
    for style, line in lines:
        # Blanks within a line put it into columns.
        if len(line) <= width or width < NARROW or "  " in line.strip():
            yield style, line
            continue
        start = _START.match(line)
        indent = " " * start.end() if start is not None else ""
        # A path or a value is copied whole, so no word is broken.
        parts = textwrap.wrap(
            line,
            width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for part in parts:
            yield style, part
