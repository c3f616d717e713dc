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
        yield "plain", f"  {_render_level(level)}"
    causes = report.findings[:1]
    if seen["verdict"] == "identical":
        causes = []
    for finding in report.findings:
        yield (
            finding.severity,
            f"  {MARKS[finding.severity]} {clean(finding.message)}{_name_rule(report, finding)}",
        )
        if finding in causes:
            yield from _render_cause(seen, finding)
        elif finding.rule != "operation":  # the message of such a one says all
            yield from _render_advice(finding)
    for note in report.notes:
        yield "note", f"  note: {clean(note)}"
    for failure in seen["failures"]:
        yield from traceback_of(failure, seen["failures"])


def _render_cause(seen: Mapping[str, Any], finding: Finding) -> Iterator[Line]:
    """Yield what the verdict rests on: the line, its inputs, and what was tried."""
    yield from _render_place(seen)
    yield from _render_maker(seen["maker"])
    yield from _render_inputs(seen)
    for each in seen["because"]:
        yield "note", f"      tried: {clean(each)}"
    # The first suspect is in the message.
    for each in seen["suspects"][1:SHOWN]:
        yield (
            "warning",
            f"      or: {clean(each['type'])} {clean(each['name'])}{_locate(each['place'])}",
        )
    yield from _render_advice(finding)
    if seen["known"] is not None:
        yield "note", f"      known as: {seen['known']['row']}"


def _render_advice(finding: Finding) -> Iterator[Line]:
    yield "note", f"      why: {clean(finding.why)}"
    for fix in finding.fix.split("\n"):
        yield "note", f"      fix: {clean(fix)}"


def _name_rule(report: Report, finding: Finding) -> str:
    """Return the rule of the dataset linter and where that pipeline was read; nothing for the other findings."""
    if finding.rule in ("operation", "run-failed", report.findings[0].rule):
        return ""
    return f" [{finding.rule}]{read_at(finding)}"


def read_at(finding: Finding) -> str:
    """Return where the pipeline of a finding was read; nothing where that is not known."""
    if not finding.where.file:
        return ""
    return f" (read at {clean(str(finding.where))})"


def _render_level(level: Mapping[str, Any]) -> str:
    mode = MODES[level["mode"]]
    if level["name"] is None:
        return f"{mode}: identical; {level['entries']} entries of {count(level['steps'], 'step')} compared"
    results = " ".join(str(each) for each in level["groups"])
    first = f"first in {clean(level['name'])}; results of the runs: {results}"
    return f"{mode}: differs from step {level['step']}, {first}"


def _render_place(seen: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the line that the verdict names, with those around it."""
    place, operation = seen["place"], seen["operation"]
    step = ""
    # Inside a graph the line is that of the operation; the entry that was compared is the whole graph's.
    if operation is not None and seen["verdict"] != "graph" and seen["index"] is not None:
        step = f", step {operation['step']}, entry {seen['index']}"
    if place is None:
        yield "plain", f"      where: not in a line of the program{step}"
        return
    yield (
        "plain",
        f"      where: {clean(place['file'])}:{place['line']} in {clean(place['function'])}{step}",
    )
    for number, line in enumerate(seen["source"], seen["source_from"]):
        mark = " "
        if number == place["line"]:
            mark = ">"
        yield "plain", f"        {mark} {number:>4} | {clean(line)}"


def _render_maker(maker: Mapping[str, Any] | None) -> Iterator[Line]:
    if maker is None:
        return
    place = maker["place"]
    where = f"{clean(place['file'])}:{place['line']} in {clean(place['function'])}"
    yield "plain", f"      made by: {clean(maker['name'])}, {where}"
    yield "plain", f"        > {place['line']:>4} | {clean(maker['text'])}"


def _render_inputs(seen: Mapping[str, Any]) -> Iterator[Line]:
    for each in seen["origins"][:SHOWN]:
        origin = _describe_origin(each)
        if each["input"] in seen["differing"]:
            origin = f"differs, {origin}"
        yield "note", f"      reads: {clean(each['spec'])}, {origin}"


def _describe_origin(origin: Mapping[str, Any]) -> str:
    """Return what made an input; a resource is a variable, which is written and not made."""
    made, is_resource = origin["made_by"], origin["spec"] == "resource[]"
    if made is not None:
        source = f"{clean(made['type'])}{_locate(made['place'])}"
        if is_resource:
            return f"last written by {source}"
        return f"made by {source}"
    if is_resource:
        return "not written in this run before"
    return "made outside operations (a constant, or Python)"


def _locate(place: Mapping[str, Any] | None) -> str:
    """Return where a line stands, with ` at ` before it; nothing where that is unknown."""
    if not place:
        return ""
    return f" at {clean(place['file'])}:{place['line']}"
