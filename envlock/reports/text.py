"""Reports as text; only this file of the room uses rich."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from envlock.reports import (
    canary_text,
    divergence_text,
    file_tables,
    repeat_text,
    traces,
)
from envlock.runtime.report import Finding, Report, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.diagnosis.doctor_evidence import DoctorEvidence

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


def _render_doctor(report: Report[DoctorEvidence]) -> Lines:
    """Yield the states that TensorFlow has shown, if it was examined, then the findings."""
    for shown in report.evidence.states or ():
        yield "plain", f"{shown.what}: {shown.state} ({clean(shown.evidence)})"
    yield from report.lines()


CODE_PARTS = {
    "unsure": "that may not matter",
    "tests": "in tests",
    "uncalled": "in code that nothing here runs",
}


def _render_code(report: Report) -> Lines:
    """Yield findings in code, a line each, then once for each rule the reason and the remedy.

    The headline comes last, where a terminal ends.
    """
    # The reason and the remedy of a rule are those of its first finding.
    firsts: dict[str, Finding] = {}
    counts: Counter[str] = Counter()
    for finding in report.findings:
        firsts.setdefault(finding.rule, finding)
        counts[finding.rule] += 1
    part = ""
    for finding in report.findings:
        if finding.where.part != part:
            part = finding.where.part
            yield "plain", ""
            yield "title", f"{CODE_PARTS[part]}:"
        where, message = clean(str(finding.where)), clean(finding.message)
        yield finding.severity, f"{where}: {finding.rule} {finding.severity}: {message}"
        if finding.where.text:
            yield "plain", f"    {clean(finding.where.text)}"
        if finding.fix != firsts[finding.rule].fix:
            yield "note", f"    fix: {clean(finding.fix)}"
    for rule, first in sorted(firsts.items()):
        yield "plain", ""
        yield "title", f"{rule}: {report.titles[rule]} ({counts[rule]})"
        yield "note", f"    why: {first.why}"
        yield "note", f"    fix: {first.fix}"
    if report.findings:
        yield "plain", ""
    for note in report.notes:
        yield "note", note
    yield "title", report.headline


# Each layout takes the evidence of its command; only here mypy cannot check that.
LAYOUTS: Mapping[str, Callable[[Report[Any]], Lines]] = {
    "canary": canary_text.render_lines,
    "diverge": divergence_text.render_lines,
    "diverge compare": traces.render_lines,
    "doctor": _render_doctor,
    "lint": _render_code,
    "repeat": repeat_text.render_lines,
}
"""The layouts of commands whose reports show more than findings."""


def render(
    report: Report, *, color: bool = False, width: int | None = None, verbose: bool = False
) -> str:
    """Return the report as text, wrapped at the width of a terminal where there is one."""
    layout = LAYOUTS.get(report.command)
    lines = layout(report) if layout is not None else _render_plain(report, verbose=verbose)
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


def hang_lines(lines: Iterable[tuple[str, str]], width: int) -> Iterator[tuple[str, str]]:
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
            drop_whitespace=True,
        )
        for part in parts:
            yield style, part
