"""What makes runs differ, as text: the levels, the cause with its line, and a remedy."""

from __future__ import annotations

from collections.abc import Iterator

from envlock.evidence.repeat.repeat_text import render_traceback
from envlock.runtime.report import MARKS, Finding, Report, clean, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.evidence.diverge.comparison import Origin
    from envlock.evidence.diverge.evidence import DivergeEvidence, Level
    from envlock.evidence.diverge.makers import Maker
    from envlock.evidence.diverge.trace import Place

MODES = {
    "as it is": "in the program's own mode",
    "eager": "operation by operation (eager)",
}
SHOWN = 6
"""Inputs, and suspects, that are shown."""
Line = tuple[str, str]


def render_lines(report: Report[DivergeEvidence]) -> Iterator[Line]:
    """Yield (style, line)."""
    evidence = report.evidence
    yield "title", report.headline
    for level in evidence.levels:
        yield "plain", f"  {_render_level(level)}"
    causes = [] if evidence.match else report.findings[:1]
    for finding in report.findings:
        message = f"{clean(finding.message)}{_name_rule(report, finding)}"
        yield finding.severity, f"  {MARKS[finding.severity]} {message}"
        if finding in causes:
            yield from _render_cause(evidence, finding)
        # The message of a finding on another operation is complete.
        elif finding.rule != "operation":
            yield from _render_advice(finding)
    for note in report.notes:
        yield "note", f"  note: {clean(note)}"
    for failure in evidence.failures:
        yield from render_traceback(failure, evidence.failures)


def _render_cause(evidence: DivergeEvidence, finding: Finding) -> Iterator[Line]:
    """Yield the evidence for the verdict: the line, its inputs, and what was tried."""
    yield from _render_place(evidence)
    yield from _render_maker(evidence.maker)
    yield from _render_inputs(evidence)
    for attempt in evidence.because:
        yield "note", f"      tried: {clean(attempt)}"
    # The first suspect is in the message.
    for suspect in evidence.suspects[1:SHOWN]:
        name = f"{clean(suspect.type)} {clean(suspect.name)}"
        yield "warning", f"      or: {name}{_locate(suspect.place)}"
    yield from _render_advice(finding)
    if evidence.known is not None:
        yield "note", f"      known as: {evidence.known.row}"


def _render_advice(finding: Finding) -> Iterator[Line]:
    yield "note", f"      why: {clean(finding.why)}"
    for fix in finding.fix.split("\n"):
        yield "note", f"      fix: {clean(fix)}"


def _name_rule(report: Report[DivergeEvidence], finding: Finding) -> str:
    """Return the rule of the dataset linter and where it read the pipeline; empty for other
    findings.
    """
    if finding.rule in ("operation", "run-failed", report.evidence.verdict):
        return ""
    return f" [{finding.rule}]{describe_reading(finding)}"


def describe_reading(finding: Finding) -> str:
    """Return where the pipeline of a finding was read; empty if unknown."""
    if not finding.where.file:
        return ""
    return f" (read at {clean(str(finding.where))})"


def _render_level(level: Level) -> str:
    mode = MODES[level.mode]
    if level.name is None:
        steps = count(level.steps, "step")
        return f"{mode}: identical; {level.entries} entries of {steps} compared"
    results = " ".join(map(str, level.groups))
    first = f"first in {clean(level.name)}; results of the runs: {results}"
    return f"{mode}: differs from step {level.step}, {first}"


def _render_place(evidence: DivergeEvidence) -> Iterator[Line]:
    """Yield the line that the verdict names, with the lines around it."""
    place, record = evidence.place, evidence.record
    step = ""
    # Inside a graph, the line is that of the operation, and the entry is that of the whole graph.
    if record is not None and evidence.verdict != "graph" and evidence.index is not None:
        step = f", step {record.step}, entry {evidence.index}"
    if place is None:
        yield "plain", f"      where: not in a line of the program{step}"
        return
    where = f"{clean(place.file)}:{place.line} in {clean(place.function)}"
    yield "plain", f"      where: {where}{step}"
    for number, line in enumerate(evidence.source, evidence.source_from):
        mark = ">" if number == place.line else " "
        yield "plain", f"        {mark} {number:>4} | {clean(line)}"


def _render_maker(maker: Maker | None) -> Iterator[Line]:
    if maker is None:
        return
    place = maker.place
    where = f"{clean(place.file)}:{place.line} in {clean(place.function)}"
    yield "plain", f"      made by: {clean(maker.name)}, {where}"
    yield "plain", f"        > {place.line:>4} | {clean(maker.text)}"


def _render_inputs(evidence: DivergeEvidence) -> Iterator[Line]:
    for origin in evidence.origins[:SHOWN]:
        differs = "differs, " if origin.input in evidence.differing else ""
        yield "note", f"      reads: {clean(origin.spec)}, {differs}{_describe_origin(origin)}"


def _describe_origin(origin: Origin) -> str:
    """Return the operation that made an input; a resource is a variable, which is written rather
    than made.
    """
    record, is_resource = origin.made_by, origin.spec == "resource[]"
    if record is not None:
        source = f"{clean(record.operation.type)}{_locate(record.operation.place)}"
        if is_resource:
            return f"last written by {source}"
        return f"made by {source}"
    if is_resource:
        return "not written in this run before"
    return "made outside operations (a constant, or Python)"


def _locate(place: Place | None) -> str:
    """Return the place of a line after ` at `; empty if unknown."""
    if place is None:
        return ""
    return f" at {clean(place.file)}:{place.line}"
