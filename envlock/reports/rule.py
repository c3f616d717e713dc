"""What the formats for other programs say once of all findings of a kind."""

from __future__ import annotations

from typing import NamedTuple

from envlock.runtime.report import ERROR, INFO, UNKNOWN, WARNING, Finding, Report

LEVELS = {ERROR: "error", UNKNOWN: "warning", WARNING: "warning", INFO: "info"}
"""These formats know three severities."""


class Rule(NamedTuple):
    """A rule of a command, or a fact that was compared."""

    id: str
    title: str
    level: str
    why: str
    fix: str
    source: str


def rule_id(report: Report, finding: Finding) -> str:
    """Return the rule of a finding; where a policy judged, the fact itself, as its rules are few."""
    return finding.where.fact if report.policy is not None else finding.rule


def rules(report: Report) -> dict[str, Rule]:
    """Return the rules of a report's findings by their id, in the order of the findings."""
    found: dict[str, Rule] = {}
    for each in report.findings:
        name = rule_id(report, each)
        held = f"{name} must be as locked ({each.rule})"
        title = held if report.policy is not None else report.titles.get(name, name)
        found.setdefault(
            name, Rule(name, title, LEVELS[each.severity], each.why, each.fix, each.source)
        )
    return found


def file_of(report: Report, finding: Finding) -> str:
    """Return the file that a finding is shown at: its own, or the one that the report is about."""
    return finding.where.file or report.subject
