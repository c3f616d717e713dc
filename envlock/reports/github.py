"""For GitHub Actions: one workflow command a finding, which becomes an annotation of the line."""

from __future__ import annotations

from envlock.reports.rule import LEVELS, Rule, file_of, rule_id, rules
from envlock.runtime.report import Finding, Report, clean, count

COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def render(report: Report, *, color: bool = False) -> str:
    """Return one workflow command a finding, and one for all that the policy allows; an empty text where there is none.

    GitHub shows ten annotations of a kind a step: what is allowed is not to hide what is not.
    """
    known, aside = rules(report), {id(each) for each in report.allowed}
    lines = [
        _command(report, known[rule_id(report, each)], each)
        for each in report.findings
        if id(each) not in aside
    ]
    if aside:
        text = f"{count(len(aside), 'difference')} that policy {report.policy} allows (`--format text` lists them)"
        place = _property(file_of(report, report.allowed[0]))
        lines.append(f"::{COMMANDS['info']} file={place},title=allowed::{_data(text)}")
    return "\n".join(lines)


def _command(report: Report, rule: Rule, finding: Finding) -> str:
    where, place = finding.where, {"file": file_of(report, finding)}
    if where.line:
        place["line"] = str(where.line)
        if where.end_line > where.line:
            place["endLine"] = str(where.end_line)
        if where.column:
            place["col"] = str(where.column)
    place["title"] = rule.id if rule.title == rule.id or where.fact else f"{rule.id} {rule.title}"
    properties = ",".join(f"{name}={_property(value)}" for name, value in place.items())
    text = f"{finding.message}\nwhy: {finding.why}\nfix: {finding.fix}"
    return f"::{COMMANDS[LEVELS[finding.severity]]} {properties}::{_data(text)}"


def _data(text: str) -> str:
    """Return text as the command's message takes it: a line break is written %0A."""
    return "%0A".join(clean(line).replace("%", "%25") for line in text.split("\n"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
