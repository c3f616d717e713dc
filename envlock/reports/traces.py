"""Two traces of two environments, for people: the first operation with other bits, and what else differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from envlock.runtime.report import MARKS, Report, clean, count, show

Line = tuple[str, str]


def lines(report: Report) -> Iterator[Line]:
    """Yield (style, line)."""
    seen = report.attachments
    yield "title", report.headline
    a, b = seen["alone"]
    compared = f"{seen['compared']} pairs of entries of {count(seen['steps'], 'step')} compared"
    if a or b:
        compared += f"; {a} of A and {b} of B have no counterpart"
    yield "plain", f"  {compared}"
    if not report.findings:
        yield "plain", "    all operations gave the same bits"
    for finding in report.findings:
        yield finding.severity, f"  {MARKS[finding.severity]} {clean(finding.message)}"
        pair = seen["first"] or seen["earliest"]
        if finding is report.findings[0] and seen["comparable"] and pair is not None:
            yield from _details(pair)
    if seen["conditions"]:
        yield "title", "differences between the two environments"
    for name, (a, b) in seen["conditions"].items():
        yield "info", f"  i {clean(name)}: {show(a)} in A, {show(b)} in B"


def _details(pair: Mapping[str, Any]) -> Iterator[Line]:
    entry, place = pair["a"], pair["a"].get("place")
    where = "not in a line of the program"
    if place:
        where = f"{clean(place['file'])}:{place['line']} in {clean(place['function'])}"
    yield "plain", f"      where: {where}, step {entry['step']}"
    if "type" not in entry:
        return
    names = [side["name"] for side in (pair["a"], pair["b"]) if side.get("name")]
    if names:
        yield "note", f"      named: {clean(' and '.join(dict.fromkeys(names)))}"
    yield "note", f"      reads: {_specs(entry['inputs'])}"
    yield "note", f"      gives: {_specs(entry['outputs'])}"
    if pair["kind"] == "operation" and pair["inputs_known"] < len(entry["inputs"]):
        known = f"{pair['inputs_known']} have a fingerprint, and were compared"
        yield "note", f"      of its {len(entry['inputs'])} inputs {known}"


def _specs(sides: list[Mapping[str, Any]]) -> str:
    return clean(", ".join(side["spec"] for side in sides) or "nothing")
