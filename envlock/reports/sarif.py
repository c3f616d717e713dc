"""For code scanning: SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html)."""

from __future__ import annotations

import hashlib
import json
from urllib.parse import quote

from envlock.reports.rule import LEVELS, Rule, collect_rules, get_file, get_rule_id
from envlock.runtime.finding_place import Where
from envlock.runtime.report import Finding, Report
from envlock.runtime.version import __version__

NAMES = {"error": "error", "warning": "warning", "info": "note"}
SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ROOT = "SRCROOT"


def render(report: Report, *, color: bool = False) -> str:
    """Return the report as a SARIF log with one run; a fact is a logical location in the lockfile."""
    known = collect_rules(report)
    numbers = {name: number for number, name in enumerate(known)}
    results = []
    for finding in report.findings:
        name = get_rule_id(report, finding)
        results.append(_render_result(name, numbers[name], get_file(report, finding), finding))
    driver = {
        "name": "envlock",
        "semanticVersion": __version__,
        "rules": list(map(_render_rule, known.values())),
    }
    run: dict[str, object] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    if report.exemptions:
        exemptions = [{**each.to_json(), "text": str(each)} for each in report.exemptions]
        run["properties"] = {"headline": report.headline, "exemptions": exemptions}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _render_rule(rule: Rule) -> dict[str, object]:
    text = f"{rule.why} {rule.fix}"
    described: dict[str, object] = {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {
            "text": f"{text} Source: {rule.source}",
            "markdown": f"{text}\n\nSource: {rule.source}",
        },
        "defaultConfiguration": {"level": NAMES[rule.level]},
    }
    if rule.source.startswith("https://") and " " not in rule.source:
        described["helpUri"] = rule.source
    return described


def _render_result(rule: str, index: int, file: str, finding: Finding) -> dict[str, object]:
    return {
        "ruleId": rule,
        "ruleIndex": index,
        "level": NAMES[LEVELS[finding.severity]],
        "message": {"text": f"{finding.message}. {finding.fix}"},
        "locations": [_render_location(file, finding.where)],
        "partialFingerprints": {"envlock/v1": _compute_fingerprint(rule, file, finding)},
    }


def _render_location(file: str, where: Where) -> dict[str, object]:
    physical: dict[str, object] = {"artifactLocation": _render_artifact(file)}
    if where.line:
        region: dict[str, object] = {
            "startLine": where.line,
            "startColumn": max(where.column, 1),
        }
        if where.end_line:
            region["endLine"] = where.end_line
            region["endColumn"] = max(where.end_column, 1)
        if where.text:
            region["snippet"] = {"text": where.text}
        physical["region"] = region
    location: dict[str, object] = {"physicalLocation": physical}
    member = where.fact or where.operation
    if member:
        location["logicalLocations"] = [{"fullyQualifiedName": member, "kind": "member"}]
    return location


def _render_artifact(file: str) -> dict[str, object]:
    try:
        # The bytes of the file's name on the disk.
        path = quote(file.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:  # half of a surrogate pair, which a name on a disk cannot have
        path = quote(file, errors="replace")
    if file.startswith("/"):
        return {"uri": f"file://{path}"}
    return {"uri": path, "uriBaseId": f"%{ROOT}%"}


def _compute_fingerprint(rule: str, file: str, finding: Finding) -> str:
    """Return a fingerprint that does not change when lines above are edited: from the rule, the
    file, and the text of the line.
    """
    parts = (rule, file, finding.where.text or finding.message)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]
