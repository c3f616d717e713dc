"""For code scanning: SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from envlock import __version__
from envlock.reports.problem import Problem, Rule, problems
from envlock.runtime.report import Report

LEVELS = {"error": "error", "warning": "warning", "info": "note"}
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "SRCROOT"


def render(report: Report, *, color: bool = False) -> str:
    """Return the report as a SARIF log: each result is at the lockfile, and names the fact as a logical location."""
    return log(*problems(report))


def log(rules: Sequence[Rule], found: Sequence[Problem]) -> str:
    """Return problems as a SARIF log with one run."""
    order = {rule.id: number for number, rule in enumerate(rules)}
    driver = {
        "name": "envlock",
        "semanticVersion": __version__,
        "rules": [_rule(rule) for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(each, order[each.rule]) for each in found],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(rule: Rule) -> dict[str, Any]:
    text = f"{rule.why} {rule.fix}"
    described: dict[str, Any] = {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{text} Source: {rule.source}", "markdown": f"{text}\n\nSource: {rule.source}"},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
    }
    if rule.source.startswith("https://") and " " not in rule.source:
        described["helpUri"] = rule.source
    return described


def _result(problem: Problem, index: int) -> dict[str, Any]:
    return {
        "ruleId": problem.rule,
        "ruleIndex": index,
        "level": LEVELS[problem.severity],
        "message": {"text": f"{problem.message}. {problem.fix}"},
        "locations": [_location(problem)],
        "partialFingerprints": {"envlock/v1": _fingerprint(problem)},
    }


def _location(problem: Problem) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(problem.file)}
    if problem.line:
        region: dict[str, Any] = {"startLine": problem.line, "startColumn": max(problem.column, 1)}
        if problem.end_line:
            region.update(endLine=problem.end_line, endColumn=max(problem.end_column, 1))
        if problem.text:
            region["snippet"] = {"text": problem.text}
        physical["region"] = region
    location: dict[str, Any] = {"physicalLocation": physical}
    if problem.member is not None:
        location["logicalLocations"] = [{"fullyQualifiedName": problem.member, "kind": "member"}]
    return location


def _artifact(file: str) -> dict[str, Any]:
    try:
        path = quote(file.encode("utf-8", "surrogateescape"))  # the bytes that the file's name has on the disk
    except UnicodeEncodeError:  # half a character, which no name on a disk can hold
        path = quote(file, errors="replace")
    return {"uri": f"file://{path}"} if file.startswith("/") else {"uri": path, "uriBaseId": f"%{ROOT}%"}


def _fingerprint(problem: Problem) -> str:
    """Return what stays the same when lines above change: rule, file, and the text of the line."""
    parts = (problem.rule, problem.file, problem.text or problem.message)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]
