"""For GitHub Actions: one workflow command a problem, which becomes an annotation of the line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envlock.reports.problem import Problem, Rule, problems, rule_of
from envlock.runtime.report import Report, clean

COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def render(report: Report, *, color: bool = False) -> str:
    """Return the report as annotations of the lockfile."""
    return commands(*problems(report))


def commands(rules: Sequence[Rule], found: Iterable[Problem]) -> str:
    """Return one workflow command a problem; an empty text where there is none."""
    known = rule_of(rules)
    return "\n".join(_command(known[each.rule], each) for each in found)


def _command(rule: Rule, problem: Problem) -> str:
    place = {"file": problem.file}
    if problem.line:
        place["line"] = str(problem.line)
        if problem.end_line > problem.line:
            place["endLine"] = str(problem.end_line)
        place["col"] = str(problem.column)
    place["title"] = rule.id if problem.member else f"{rule.id} {rule.title}"
    properties = ",".join(f"{name}={_property(value)}" for name, value in place.items())
    text = f"{problem.message}\nwhy: {rule.why}\nfix: {problem.fix}"
    return f"::{COMMANDS[problem.severity]} {properties}::{_data(text)}"


def _data(text: str) -> str:
    """Return text as the command's message takes it: a line break is written %0A."""
    return "%0A".join(clean(line).replace("%", "%25") for line in text.split("\n"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
