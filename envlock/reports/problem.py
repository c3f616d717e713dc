"""What the formats for other programs have in common: a problem with its rule and its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from envlock.runtime.lockfile import NAME
from envlock.runtime.report import ERROR, FILE_RULE, INFO, UNKNOWN, Finding, Report, clean, show

Severity = Literal["error", "warning", "info"]
SEVERITIES: dict[str, Severity] = {ERROR: "error", UNKNOWN: "warning", INFO: "info"}


@dataclass(frozen=True)
class Rule:
    """What is said once of all problems of a kind: a rule of the linter, or a fact that was compared."""

    id: str
    title: str
    severity: Severity
    why: str
    fix: str
    source: str


@dataclass(frozen=True)
class Problem:
    """One problem: in a file (a lockfile, for one of the environment), at a line where there is one."""

    rule: str
    severity: Severity
    message: str
    fix: str
    file: str
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    text: str = ""
    member: str | None = None  # the path of the fact


def problems(report: Report) -> tuple[list[Rule], list[Problem]]:
    """Return a report's findings as problems of the lockfile, with a rule for each path."""
    file = NAME if report.expected_name == "the lock" else report.expected_name
    rules: dict[str, Rule] = {}
    found: list[Problem] = []
    for finding in report.findings:
        severity = SEVERITIES[finding.severity]
        title = f"{finding.path} must be as in the lock ({finding.rule})"
        rules.setdefault(finding.path, Rule(finding.path, title, severity, finding.why, finding.fix, finding.source))
        text = _of_file(finding) if finding.rule.startswith(FILE_RULE) else report.sentence(finding)
        found.append(Problem(finding.path, severity, text, finding.fix, file, member=finding.path))
    return list(rules.values()), found


def _of_file(finding: Finding) -> str:
    what = finding.actual["what"] if isinstance(finding.actual, dict) else show(finding.actual)
    return f"{clean(finding.path)}: {what}"


def rule_of(rules: Sequence[Rule]) -> dict[str, Rule]:
    """Return rules by their id."""
    return {rule.id: rule for rule in rules}
