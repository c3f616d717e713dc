"""For whatever shows test results: a test case a finding, and one that passes where there is none."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from envlock.reports.rule import LEVELS, Rule, file_of, rule_id, rules
from envlock.runtime.report import Finding, Report, clean


def render(report: Report, *, color: bool = False) -> str:
    """Return the report as JUnit XML: what does not make the answer no counts as passed."""
    known = rules(report)
    failures = sum(finding.severity in report.breaking for finding in report.findings)
    counts = {
        "tests": str(max(len(report.findings), 1)),
        "failures": str(failures),
        "errors": "0",
        "skipped": "0",
    }
    top = ET.Element("testsuites", counts)
    node = ET.SubElement(top, "testsuite", {"name": f"envlock {report.command}", **counts})
    if not report.findings:
        ET.SubElement(
            node, "testcase", {"classname": f"envlock {report.command}", "name": "everything"}
        )
    for each in report.findings:
        _case(node, report, known[rule_id(report, each)], each)
    ET.indent(top)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(top, encoding="unicode")


def _case(suite: ET.Element, report: Report, rule: Rule, finding: Finding) -> None:
    where, file = finding.where, clean(file_of(report, finding))
    place = clean(str(where)) if where.file else file
    name = (
        clean(rule.id) if where.fact == rule.id else f"{clean(rule.id)} {clean(str(where)) or file}"
    )
    case = ET.SubElement(suite, "testcase", {"classname": file, "name": name})
    if where.line:
        case.set("file", file)
        case.set("line", str(where.line))
    if finding.severity not in report.breaking:
        ET.SubElement(case, "system-out").text = clean(finding.message)
        return
    failure = ET.SubElement(
        case, "failure", {"type": LEVELS[finding.severity], "message": clean(finding.message)}
    )
    words = (
        place,
        finding.message,
        f"why: {finding.why}",
        f"fix: {finding.fix}",
        f"source: {finding.source}",
    )
    failure.text = "\n".join(clean(line) for word in words for line in word.split("\n"))
