"""Findings in code as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from envlock.runtime.report import Finding, Report, clean

CODE_PARTS = {
    "unsure": "that may not matter",
    "tests": "in tests",
    "uncalled": "in code that nothing here runs",
}


def render_lines(report: Report) -> Iterator[tuple[str, str]]:
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
