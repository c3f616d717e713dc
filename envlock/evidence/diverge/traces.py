"""Traces of two environments as text: the first operation with different bits, and the conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envlock.runtime.report import MARKS, WARNING, Report, clean, count, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.evidence.diverge.two_traces import Pair, TracesEvidence

Line = tuple[str, str]


def render_lines(report: Report[TracesEvidence]) -> Iterator[Line]:
    """Yield (style, line)."""
    evidence = report.evidence
    yield "title", report.headline
    a, b = evidence.alone
    steps = count(evidence.steps, "step")
    compared = f"{evidence.compared} pairs of entries of {steps} compared"
    if a or b:
        compared += f"; {a} of A and {b} of B have no counterpart"
    yield "plain", f"  {compared}"
    if not report.findings:
        yield "plain", "    all operations gave the same bits"
    for finding in report.findings:
        yield finding.severity, f"  {MARKS[finding.severity]} {clean(finding.message)}"
        pair = evidence.first or evidence.earliest
        has_pair = finding.rule in ("operation", "carried") and finding.severity != WARNING
        if has_pair and evidence.comparable and pair is not None:
            yield from _render_details(pair)
        if finding.severity != WARNING:
            yield "note", f"      why: {clean(finding.why)}"
            yield "note", f"      fix: {clean(finding.fix)}"
    if evidence.conditions:
        yield "title", "differences between the two environments"
    for name, (left, right) in evidence.conditions.items():
        yield "info", f"  i {clean(name)}: {show(left)} in A, {show(right)} in B"


def _render_details(pair: Pair) -> Iterator[Line]:
    where = "not in a line of the program"
    place = pair.a.place
    if place is not None:
        where = f"{clean(place.file)}:{place.line} in {clean(place.function)}"
    yield "plain", f"      where: {where}, step {pair.a.step}"
    if pair.operations is None:
        return
    a, b = pair.operations
    names = dict.fromkeys(filter(None, (a.operation.name, b.operation.name)))
    if names:
        yield "note", f"      named: {clean(' and '.join(names))}"
    yield "note", f"      reads: {_join_specs(a.input_specs)}"
    yield "note", f"      gives: {_join_specs(a.output_specs)}"
    if pair.kind == "operation" and pair.known < len(a.input_specs):
        known = f"{pair.known} have a fingerprint, and were compared"
        yield "note", f"      of its {len(a.input_specs)} inputs {known}"


def _join_specs(specs: Sequence[str]) -> str:
    if not specs:
        return "nothing"
    return clean(", ".join(specs))
