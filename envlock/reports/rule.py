"""Information that formats for other programs have once for all findings of a kind."""

from __future__ import annotations

from typing import NamedTuple

from envlock.runtime.report import ERROR, INFO, UNKNOWN, WARNING, Finding, Report

LEVELS = {ERROR: "error", UNKNOWN: "warning", WARNING: "warning", INFO: "info"}
"""These formats have three severities."""


class Rule(NamedTuple):
    """A rule of a command, or a fact that was compared."""

    id: str
    title: str
    level: str
    why: str
    fix: str
    source: str


def get_rule_id(report: Report, finding: Finding) -> str:
    """Return the rule of a finding; if a policy judged, the fact itself, because policies have few
    rules.
    """
    if report.policy is None:
        return finding.rule
    return finding.where.fact


def collect_rules(report: Report) -> dict[str, Rule]:
    """Return the rules of a report's findings by their id, in the order of the findings."""
    found: dict[str, Rule] = {}
    for finding in report.findings:
        name = get_rule_id(report, finding)
        if name in found:
            continue
        if report.policy is None:
            title = report.titles.get(name, name)
        else:
            title = f"{name} must be as locked ({finding.rule})"
        level = LEVELS[finding.severity]
        found[name] = Rule(name, title, level, finding.why, finding.fix, finding.source)
    return found


def get_file(report: Report, finding: Finding) -> str:
    """Return the file that a finding is shown in: its own, or the one that the report is about."""
    return finding.where.file or report.subject
