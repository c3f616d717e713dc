"""Problems with their places, for people and as JSON: what `envlock lint` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from envlock.reports.json import dump
from envlock.reports.problem import Problem, Rule, rule_of
from envlock.reports.text import paint
from envlock.runtime.report import REPORT_VERSION, clean

STYLES = {"error": "error", "warning": "unknown", "info": "info"}


def text(rules: Sequence[Rule], found: Sequence[Problem], judged: str, *, color: bool = False) -> str:
    """Return a line a problem with its line of code, then once per rule the reason and the remedy.

    `judged` says what was looked at and for what.
    """
    return paint(_lines(rule_of(rules), found, judged), color=color)


def _lines(rules: Mapping[str, Rule], found: Sequence[Problem], judged: str) -> Iterable[tuple[str, str]]:
    for each in found:
        place = f"{clean(each.file)}:{each.line}:{each.column}"
        yield STYLES[each.severity], f"{place}: {each.rule} {each.severity}: {clean(each.message)}"
        if each.text:
            yield "plain", f"    {clean(each.text)}"
        if each.fix != rules[each.rule].fix:
            yield "note", f"    fix: {clean(each.fix)}"
    counts = Counter(each.rule for each in found)
    for rule in (rule for name, rule in sorted(rules.items()) if counts[name]):
        yield "plain", ""
        yield "title", f"{rule.id}: {rule.title} ({counts[rule.id]})"
        yield "note", f"    why: {rule.why}"
        yield "note", f"    fix: {rule.fix}"
    if found:
        yield "plain", ""
    yield "title", f"{_summary(found)} in {judged}"


def _summary(found: Sequence[Problem]) -> str:
    counts = Counter(each.severity for each in found)
    words = [_count(counts["error"], "error")] if counts["error"] else []
    words += [_count(counts["warning"], "warning")] if counts["warning"] else []
    words += [f"{counts['info']} for information"] if counts["info"] else []
    return ", ".join(words) or "nothing found"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def json(rules: Sequence[Rule], found: Sequence[Problem], facts: Mapping[str, Any]) -> str:
    """Return the problems as JSON, with what else is known of the run in `facts`."""
    known = rule_of(rules)
    findings = [
        {
            "path": each.file,
            "line": each.line,
            "column": each.column,
            "end_line": each.end_line,
            "end_column": each.end_column,
            "rule": each.rule,
            "severity": each.severity,
            "message": each.message,
            "text": each.text,
            "why": known[each.rule].why,
            "fix": each.fix,
            "source": known[each.rule].source,
        }
        for each in found
    ]
    return dump({"report_version": REPORT_VERSION, **facts, "findings": findings})
