"""For whatever shows test results: a test case a problem, and one that passes where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from envlock.reports.problem import Problem, Rule, problems, rule_of
from envlock.runtime.report import Report, clean


def render(report: Report, *, color: bool = False) -> str:
    """Return the report as JUnit XML: what the policy lets through counts as passed."""
    return suite("envlock verify", *problems(report))


def suite(name: str, rules: Sequence[Rule], found: Sequence[Problem]) -> str:
    """Return problems as one test suite; those for information pass."""
    known = rule_of(rules)
    failures = [each for each in found if each.severity != "info"]
    counts = {"tests": str(max(len(found), 1)), "failures": str(len(failures)), "errors": "0", "skipped": "0"}
    top = ET.Element("testsuites", counts)
    node = ET.SubElement(top, "testsuite", {"name": name, **counts})
    if not found:
        ET.SubElement(node, "testcase", {"classname": name, "name": "everything"})
    for each in found:
        _case(node, known[each.rule], each)
    ET.indent(top)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(top, encoding="unicode")


def _case(suite: ET.Element, rule: Rule, problem: Problem) -> None:
    place = f"{clean(problem.file)}:{problem.line}:{problem.column}" if problem.line else clean(problem.file)
    name = clean(rule.id) if problem.member else f"{rule.id} {place}"
    case = ET.SubElement(suite, "testcase", {"classname": clean(problem.file), "name": name})
    if problem.line:
        case.set("file", clean(problem.file))
        case.set("line", str(problem.line))
    if problem.severity == "info":
        ET.SubElement(case, "system-out").text = clean(problem.message)
        return
    failure = ET.SubElement(case, "failure", {"type": problem.severity, "message": clean(problem.message)})
    failure.text = (
        f"{place}\n{clean(problem.message)}\nwhy: {clean(rule.why)}\nfix: {clean(problem.fix)}\nsource: {rule.source}"
    )
