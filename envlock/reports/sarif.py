"""For code scanning: SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html)."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import quote

from envlock.reports.rule import LEVELS, Rule, file_of, rule_id, rules
from envlock.runtime.report import Finding, Report
from envlock.runtime.version import __version__
from envlock.runtime.where import Where

NAMES = {"error": "error", "warning": "warning", "info": "note"}
SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ROOT = "SRCROOT"


def render(report: Report, *, color: bool = False) -> str:
    """Return the report as a SARIF log with one run; a fact is a logical location in the lockfile."""
    known = rules(report)
    order = {name: number for number, name in enumerate(known)}
    driver = {
        "name": "envlock",
        "semanticVersion": __version__,
        "rules": [_rule(rule) for rule in known.values()],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(report, each, order[rule_id(report, each)]) for each in report.findings
        ],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(rule: Rule) -> dict[str, Any]:
    text = f"{rule.why} {rule.fix}"
    described: dict[str, Any] = {
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


def _result(report: Report, finding: Finding, index: int) -> dict[str, Any]:
    file = file_of(report, finding)
    return {
        "ruleId": rule_id(report, finding),
        "ruleIndex": index,
        "level": NAMES[LEVELS[finding.severity]],
        "message": {"text": f"{finding.message}. {finding.fix}"},
        "locations": [_location(file, finding.where)],
        "partialFingerprints": {
            "envlock/v1": _fingerprint(rule_id(report, finding), file, finding)
        },
    }


def _location(file: str, where: Where) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(file)}
    if where.line:
        region: dict[str, Any] = {"startLine": where.line, "startColumn": max(where.column, 1)}
        if where.end_line:
            region.update(endLine=where.end_line, endColumn=max(where.end_column, 1))
        if where.text:
            region["snippet"] = {"text": where.text}
        physical["region"] = region
    location: dict[str, Any] = {"physicalLocation": physical}
    member = where.fact or where.operation
    if member:
        location["logicalLocations"] = [{"fullyQualifiedName": member, "kind": "member"}]
    return location


def _artifact(file: str) -> dict[str, Any]:
    try:
        path = quote(
            file.encode("utf-8", "surrogateescape")
        )  # the bytes that the file's name has on the disk
    except UnicodeEncodeError:  # half a character, which no name on a disk can hold
        path = quote(file, errors="replace")
    return (
        {"uri": f"file://{path}"}
        if file.startswith("/")
        else {"uri": path, "uriBaseId": f"%{ROOT}%"}
    )


def _fingerprint(rule: str, file: str, finding: Finding) -> str:
    """Return what stays the same when lines above change: rule, file, and the text of the line."""
    parts = (rule, file, finding.where.text or finding.message)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]
