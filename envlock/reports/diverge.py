"""What makes runs differ, for people: the levels that were tried, the cause with its line, and what helps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from envlock.reports.repeat import traceback_of
from envlock.runtime.report import MARKS, Finding, Report, clean, count

MODES = {
    "as it is": "in the program's own mode",
    "eager": "operation by operation (eager)",
    "in graphs": "inside its graphs",
}
SHOWN = 6  # inputs, and suspects
Line = tuple[str, str]


def lines(report: Report) -> Iterator[Line]:
    """Yield (style, line)."""
    seen = report.attachments
    yield "title", report.headline
    for level in seen["levels"]:
        yield "plain", f"  {_level(level)}"
    cause = None if seen["verdict"] == "identical" else report.findings[0]
    for finding in report.findings:
        yield finding.severity, f"  {MARKS[finding.severity]} {clean(finding.message)}{_rule(report, finding)}"
        if finding is cause:
            yield from _where(seen)
            yield from _maker(seen["maker"])
            yield from _inputs(seen)
            yield from (("note", f"      tried: {clean(each)}") for each in seen["because"])
            yield from (("warning", f"      or: {_suspect(each)}") for each in seen["suspects"][1:SHOWN])
        if finding is not cause and finding.rule == "operation":  # the message says all
            continue
        yield "note", f"      why: {clean(finding.why)}"
        yield from (("note", f"      fix: {clean(fix)}") for fix in finding.fix.split("\n"))
        if finding is cause and seen["known"] is not None:
            yield "note", f"      known as: {seen['known']['row']}"
    yield from (("note", f"  note: {clean(note)}") for note in report.notes)
    for failure in seen["failures"]:
        yield from traceback_of(failure, seen["failures"])


def _rule(report: Report, finding: Finding) -> str:
    """Return the rule of the dataset linter and where that pipeline was read; nothing for the other findings."""
    if finding.rule in ("operation", "run-failed", report.findings[0].rule):
        return ""
    return f" [{finding.rule}]{read_at(finding)}"


def read_at(finding: Finding) -> str:
    """Return where the pipeline of a finding was read; nothing where that is not known."""
    return f" (read at {clean(str(finding.where))})" if finding.where.file else ""


def _level(level: Mapping[str, Any]) -> str:
    mode = MODES[level["mode"]]
    if level["name"] is None:
        return f"{mode}: identical; {level['entries']} entries of {count(level['steps'], 'step')} compared"
    results = " ".join(str(each) for each in level["groups"])
    first = f"first in {clean(level['name'])}; results of the runs: {results}"
    return f"{mode}: differs from step {level['step']}, {first}"


def _where(seen: Mapping[str, Any]) -> Iterator[Line]:
    place, operation = seen["place"], seen["operation"]
    inside = operation is None or seen["verdict"] == "graph"
    step = "" if inside or seen["index"] is None else f", step {operation['step']}, entry {seen['index']}"
    if place is None:
        yield "plain", f"      where: not in a line of the program{step}"
        return
    yield "plain", f"      where: {clean(place['file'])}:{place['line']} in {clean(place['function'])}{step}"
    for number, line in enumerate(seen["source"], seen["source_from"]):
        mark = ">" if number == place["line"] else " "
        yield "plain", f"        {mark} {number:>4} | {clean(line)}"


def _maker(maker: Mapping[str, Any] | None) -> Iterator[Line]:
    if maker is None:
        return
    place = maker["place"]
    yield (
        "plain",
        f"      made by: {clean(maker['name'])}, {clean(place['file'])}:{place['line']} in {clean(place['function'])}",
    )
    yield "plain", f"        > {place['line']:>4} | {clean(maker['text'])}"


def _inputs(seen: Mapping[str, Any]) -> Iterator[Line]:
    for each in seen["origins"][:SHOWN]:
        differs = "differs, " if each["input"] in seen["differing"] else ""
        yield "note", f"      reads: {clean(each['spec'])}, {differs}{_origin(each)}"


def _origin(origin: Mapping[str, Any]) -> str:
    made, resource = origin["made_by"], origin["spec"] == "resource[]"
    if made is None:
        return "not written in this run before" if resource else "made outside operations (a constant, or Python)"
    return f"{'last written by' if resource else 'made by'} {clean(made['type'])}{_at(made['place'])}"


def _suspect(suspect: Mapping[str, Any]) -> str:
    return f"{clean(suspect['type'])} {clean(suspect['name'])}{_at(suspect['place'])}"


def _at(place: Mapping[str, Any] | None) -> str:
    return f" at {clean(place['file'])}:{place['line']}" if place else ""
