"""A report as an exception shows it: what broke first, in few lines, and what is to be done about a wanted change."""

from __future__ import annotations

from envlock.runtime.report import (
    BITS,
    ERROR,
    FILE_RULE,
    LAUNCHER,
    NO_TENSORFLOW,
    count,
    with_legend,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple

    from envlock.runtime.report import Finding, Report

    Line = Tuple[str, str]

LINES = 25
"""A traceback above it, and the prompt below, still fit a terminal with 40 lines."""
ALL = "`envlock verify` lists all"
ACCEPT = (
    "to accept the change: `envlock capture`, or `envlock capture --only PATH` for a part; to let it differ: "
    "`envlock ignore PATH --reason TEXT`"
)
ADD = "; to accept this machine, too: `envlock capture --add-machine`"


def in_short(report: Report) -> str:
    """Return a report in at most `LINES` lines: the likeliest cause first, what the policy allows as a count."""
    allowed = report.allowed
    tail = [("note", note) for note in report.notes]
    if allowed:
        tail.insert(
            0,
            (
                "note",
                f"{count(len(allowed), 'difference')} that policy {report.policy} allows ({ALL})",
            ),
        )
    room = LINES - 3 - len(tail)  # the headline, how many are left out, and the legend
    body: List[Line] = []
    hidden = 0
    for block in _blocks(report):
        shown = _cut(block, room - len(body))
        hidden += _findings(block) - _findings(shown)
        body += shown
    more = [("note", f"  and {count(hidden, 'more finding')} ({ALL})")] if hidden else []
    return "\n".join(
        [line for _, line in with_legend([("title", report.headline), *body, *more, *tail])]
    )


def _blocks(report: Report) -> List[List[Line]]:
    """Return the lines of findings that are alike: what started the process first, as it explains others."""
    blocks = report.blocks()
    launched = [lines for rule, lines in blocks if rule == LAUNCHER]
    others = [lines for rule, lines in blocks if rule != LAUNCHER]
    files = report.file_lines()
    return [*launched, *others, *([files] if files else [])]


def _findings(block: List[Line]) -> int:
    return sum(style != "note" for style, _ in block)


def _cut(block: List[Line], room: int) -> List[Line]:
    """Return as many findings of a block as there is room for, with their reason and remedy; or none."""
    notes = [line for line in block if line[0] == "note"]
    found = [line for line in block if line[0] != "note"][: max(0, room - len(notes))]
    return [*found, *notes] if found else []


def with_acceptance(report: Report) -> Report:
    """Return a report that ends with how a wanted change is accepted, where facts differ and that would help."""
    if any(finding.rule == NO_TENSORFLOW for finding in report.findings):
        return report
    wrong = [
        finding for finding in report.findings if finding.severity == ERROR and _is_fact(finding)
    ]
    if wrong:
        from envlock.runtime.machines import is_machine

        here = any(is_machine(str(finding.where)) for finding in wrong)
        report.notes.append(ACCEPT + (ADD if here else ""))
    return report


def _is_fact(finding: Finding) -> bool:
    return (
        bool(finding.where.fact) and finding.rule != BITS and not finding.rule.startswith(FILE_RULE)
    )
