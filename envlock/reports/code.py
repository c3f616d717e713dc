"""Findings in code, for people: a line each with its place, then once per rule the reason and the remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from envlock.runtime.report import Report, clean


def render_lines(report: Report) -> Iterable[tuple[str, str]]:
    """Yield (style, line); the headline stands last, where a terminal ends."""
    fixes = {finding.rule: finding.fix for finding in reversed(report.findings)}
    for each in report.findings:
        yield (
            each.severity,
            f"{clean(str(each.where))}: {each.rule} {each.severity}: {clean(each.message)}",
        )
        if each.where.text:
            yield "plain", f"    {clean(each.where.text)}"
        if each.fix != fixes[each.rule]:
            yield "note", f"    fix: {clean(each.fix)}"
    counts = Counter(each.rule for each in report.findings)
    for rule, first in sorted({each.rule: each for each in reversed(report.findings)}.items()):
        yield "plain", ""
        yield "title", f"{rule}: {report.titles[rule]} ({counts[rule]})"
        yield "note", f"    why: {first.why}"
        yield "note", f"    fix: {first.fix}"
    if report.findings:
        yield "plain", ""
    yield "title", report.headline
