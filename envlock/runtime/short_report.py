"""A report as an exception shows it: the most important findings in a few lines, and how to accept
a change.
"""

from __future__ import annotations

from envlock.runtime.machines import is_machine
from envlock.runtime.report import (
    BITS,
    ERROR,
    FILE_RULE,
    LAUNCHER,
    NO_TENSORFLOW,
    count,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple

    from envlock.runtime.report import Finding, Report

    Line = Tuple[str, str]

LINES = 25
"""A traceback above it and the prompt below still fit a terminal with 40 lines."""
ALL = "`envlock verify` lists all"
INSTALL = "to get the locked packages: `envlock sync`; "
ACCEPT = (
    "to accept a change: `envlock capture --only PATH`, or `envlock capture` for all of them; "
    "to let it differ: `envlock ignore PATH --reason TEXT`"
)
ADD = "; to accept this machine, too: `envlock capture --add-machine`"


def in_short(report: Report) -> str:
    """Return a report in at most `LINES` lines: the likeliest cause first, and accepted differences
    only as a count.
    """
    tail: List[Line] = []
    if report.allowed:
        number = count(len(report.allowed), "difference")
        tail.append(("note", f"{number} that policy {report.policy} allows ({ALL})"))
    tail += [("note", note) for note in report.notes]
    room = LINES - 2 - len(tail)  # the headline, and the number of lines that are left out
    lines: List[Line] = [("title", report.headline)]
    hidden = 0
    for block in _list_blocks(report):
        shown = _cut(block, room)
        room -= len(shown)
        hidden += _count_findings(block) - _count_findings(shown)
        lines += shown
    if hidden:
        lines.append(("note", f"  and {count(hidden, 'more finding')} ({ALL})"))
    return "\n".join([line for _, line in [*lines, *tail]])


def _list_blocks(report: Report) -> List[List[Line]]:
    """Return the lines of findings, grouped by kind; those about the launcher come first, because
    they explain others.
    """
    launched = []
    others = []
    for rule, lines in report.blocks():
        if rule == LAUNCHER:
            launched.append(lines)
        else:
            others.append(lines)
    files = report.render_files()
    if files:
        others.append(files)
    return launched + others


def _count_findings(block: List[Line]) -> int:
    return sum(style != "note" for style, _ in block)


def _cut(block: List[Line], room: int) -> List[Line]:
    """Return as many findings of a block as fit, with their reason and remedy; or no lines."""
    notes: List[Line] = []
    findings: List[Line] = []
    for line in block:
        if line[0] == "note":
            notes.append(line)
        else:
            findings.append(line)
    shown = findings[: max(0, room - len(notes))]
    if not shown:
        return []
    return shown + notes


def with_acceptance(report: Report) -> Report:
    """Return a report that ends with how to accept a change, if facts differ and accepting them
    would help.
    """
    if any(finding.rule == NO_TENSORFLOW for finding in report.findings):
        return report
    paths = [str(finding.where) for finding in report.findings if _is_differing_fact(finding)]
    if paths:
        note = ACCEPT
        if any(path.startswith("packages.") for path in paths):
            note = INSTALL + note
        if any(map(is_machine, paths)):
            note += ADD
        report.notes.append(note)
    return report


def _is_differing_fact(finding: Finding) -> bool:
    if finding.severity != ERROR or not finding.where.fact:
        return False
    return finding.rule != BITS and not finding.rule.startswith(FILE_RULE)
