"""For tools that show test results: a test case for each finding, and one that passes if there are
no findings.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from envlock.reports.rule import LEVELS, Rule, collect_rules, get_file, get_rule_id
from envlock.runtime.report import Finding, Report, clean, clean_lines


def render(report: Report, *, color: bool = False) -> str:
    """Return the report as JUnit XML: findings that do not make the answer no count as passed."""
    known = collect_rules(report)
    failures = sum(finding.severity in report.breaking for finding in report.findings)
    counts = {
        "tests": str(max(len(report.findings), 1)),
        "failures": str(failures),
        "errors": "0",
        "skipped": "0",
    }
    top = ET.Element("testsuites", counts)
    node = ET.SubElement(top, "testsuite", {"name": f"envlock {report.command}", **counts})
    if report.exemptions:
        properties = ET.SubElement(node, "properties")
        for each in report.exemptions:
            attributes = {"name": f"exempt by {each.owner}", "value": str(each)}
            ET.SubElement(properties, "property", attributes)
    if not report.findings:
        names = {"classname": f"envlock {report.command}", "name": "everything"}
        ET.SubElement(node, "testcase", names)
    for finding in report.findings:
        _add_case(node, report, known[get_rule_id(report, finding)], finding)
    ET.indent(top)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(top, encoding="unicode")


def _add_case(suite: ET.Element, report: Report, rule: Rule, finding: Finding) -> None:
    where, file = finding.where, clean(get_file(report, finding))
    place = clean(str(where)) if where.file else file
    name = clean(rule.id)
    # The path of a fact is its place.
    if where.fact != rule.id:
        name += f" {clean(str(where)) or file}"
    case = ET.SubElement(suite, "testcase", {"classname": file, "name": name})
    if where.line:
        case.set("file", file)
        case.set("line", str(where.line))
    if finding.severity not in report.breaking:
        ET.SubElement(case, "system-out").text = clean(finding.message)
        return
    attributes = {"type": LEVELS[finding.severity], "message": clean(finding.message)}
    failure = ET.SubElement(case, "failure", attributes)
    lines = (
        place,
        finding.message,
        f"why: {finding.why}",
        f"fix: {finding.fix}",
        f"source: {finding.source}",
    )
    failure.text = clean_lines("\n".join(lines))
