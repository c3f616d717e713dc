"""Findings in code, for people: a line each, then once per rule the reason and the remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from envlock.runtime.report import Finding, Report, clean


def render_lines(report: Report) -> Iterable[tuple[str, str]]:
    """Yield (style, line); the headline stands last, where a terminal ends."""
    # The first finding of each rule stands for its reason and its remedy.
    firsts: dict[str, Finding] = {}
    counts: Counter[str] = Counter()
    for finding in report.findings:
        firsts.setdefault(finding.rule, finding)
        counts[finding.rule] += 1
    for finding in report.findings:
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
    yield "title", report.headline
