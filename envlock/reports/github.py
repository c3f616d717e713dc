"""For GitHub Actions: one workflow command for each finding, which becomes an annotation of the
line.
"""

from __future__ import annotations

from envlock.reports.rule import LEVELS, Rule, collect_rules, get_file, get_rule_id
from envlock.runtime.report import Finding, Report, clean_lines, count

COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def render(report: Report, *, color: bool = False) -> str:
    """Return one workflow command for each finding, and one for all accepted differences; empty
    without findings.

    GitHub shows ten annotations of a kind in a step: accepted differences must not hide others.
    """
    known, allowed = collect_rules(report), report.allowed
    # By identity: two findings can have equal values.
    aside = set(map(id, allowed))
    lines = []
    for finding in report.changes:
        if id(finding) not in aside:
            rule = known[get_rule_id(report, finding)]
            lines.append(_render_command(report, rule, finding))
    if allowed:
        number = count(len(allowed), "difference")
        text = f"{number} that policy {report.policy} allows (`envlock verify -v` lists them)"
        place = _escape_property(get_file(report, allowed[0]))
        lines.append(f"::{COMMANDS['info']} file={place},title=allowed::{_escape_data(text)}")
    shown = [str(each) for each in report.exemptions if each.is_in_headline]
    if shown:
        place = _escape_property(report.subject)
        text = f"passed with {' and '.join(shown)}"
        lines.append(f"::{COMMANDS['info']} file={place},title=exempt::{_escape_data(text)}")
    return "\n".join(lines)


def _render_command(report: Report, rule: Rule, finding: Finding) -> str:
    where, properties = finding.where, {"file": get_file(report, finding)}
    if where.line:
        properties["line"] = str(where.line)
        if where.end_line > where.line:
            properties["endLine"] = str(where.end_line)
        if where.column:
            properties["col"] = str(where.column)
    properties["title"] = f"{rule.id} {rule.title}"
    # The title of a fact is a sentence with its path.
    if rule.title == rule.id or where.fact:
        properties["title"] = rule.id
    listed = ",".join(f"{name}={_escape_property(value)}" for name, value in properties.items())
    text = f"{finding.message}\nwhy: {finding.why}\nfix: {finding.fix}"
    return f"::{COMMANDS[LEVELS[finding.severity]]} {listed}::{_escape_data(text)}"


def _escape_data(text: str) -> str:
    """Return text in the form of the command's message: a line break is %0A."""
    return clean_lines(text).replace("%", "%25").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
