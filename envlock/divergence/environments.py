"""What two traces of two environments show, for people and programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envlock.divergence.across import Across, Pair, compare
from envlock.divergence.trace import Header, Record, Scalar, Trace, read
from envlock.divergence.verdict import entry_json
from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean, show

REPORT_VERSION = 1
ALIGNED = 0.5
"""Traces of which less goes together are not of the same program, or not comparably run."""
_TOLD_APART = ("made_by", "elsewhere", "unseen", "system.kernel_release", "python.compiler")
"""Conditions that are no cause of other bits."""


@dataclass(frozen=True)
class Report:
    """What comparing traces A and B showed; `conditions` are those that differ, with what each side has."""

    names: tuple[str, str]
    headers: tuple[Header, Header]
    across: Across
    conditions: Mapping[str, tuple[Scalar, Scalar]]

    @property
    def exit_code(self) -> int:
        """0 where everything is equal, 1 where not."""
        return 0 if self.across.same else 1

    @property
    def comparable(self) -> bool:
        """Whether enough of the two goes together to say anything."""
        return self.across.aligned >= ALIGNED

    @property
    def headline(self) -> str:
        """The verdict as a sentence without a full stop."""
        first, earliest = self.across.first, self.across.earliest
        if not self.comparable:
            return "they cannot be aligned: the two runs ran other operations, or at other lines"
        if first is not None:
            return f"{_called(first)} is the first operation that gave other bits, although its inputs were equal"
        if earliest is not None:
            return f"{_called(earliest)} differs first, and what it read differs, too: that came from no operation seen"
        if self.across.longer is not None:
            return f"they are equal as far as both go, and {self.across.longer} has more steps"
        return "every operation gave the same bits"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        across = self.across
        return {
            "report_version": REPORT_VERSION,
            "match": across.same,
            "comparable": self.comparable,
            "headline": self.headline,
            "first": _pair_json(across.first),
            "earliest": _pair_json(across.earliest),
            "others": [_pair_json(each) for each in across.others],
            "compared": across.compared,
            "alone": across.alone,
            "steps": across.steps,
            "longer": across.longer,
            "conditions": {name: list(values) for name, values in self.conditions.items()},
        }

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield (style, line) for people."""
        across = self.across
        yield "title", f"{'the same bits' if across.same else 'other bits'}: {_name(self, 0)} and {_name(self, 1)}"
        alone = f"; {across.alone[0]} of A and {across.alone[1]} of B have no counterpart" if any(across.alone) else ""
        steps = f"{across.steps} {'step' if across.steps == 1 else 'steps'}"
        yield "plain", f"  {across.compared} pairs of entries of {steps} compared{alone}"
        yield ("plain" if across.same else "error"), f"  {' ' if across.same else 'x'} {self.headline}"
        pair = across.first or across.earliest
        if self.comparable and pair is not None:
            yield from _details(pair)
        for each in across.others if self.comparable else ():
            yield "warning", f"  ! also, with equal inputs: {_called(each)}{_at(each)}, step {each.a.step}"
        if self.conditions:
            yield "title", "what differs between the two environments"
        for name, (a, b) in self.conditions.items():
            yield "info", f"  i {clean(name)}: {show(a)} in A, {show(b)} in B"


def report(a: str, b: str) -> Report:
    """Return what the traces in two files show.

    Raises:
        TraceError: one of them cannot be read, or is damaged.
        UsageError: they cannot be compared: one ran eagerly, say.
    """
    with read(Path(a)) as left, read(Path(b)) as right:
        _check(left.header, right.header)
        across = compare(left, right)
        return Report((a, b), (left.header, right.header), across, _differing(left, right))


def _check(a: Header, b: Header) -> None:
    if (a.mode, a.fingerprint) == (b.mode, b.fingerprint):
        return
    how = {"eager": "eagerly, operation by operation", "graph": "with its graphs as they are"}
    ways = (f"A ran {how[a.mode]}, and B {how[b.mode]}") if a.mode != b.mode else "they have other fingerprints"
    raise UsageError(f"the traces cannot be compared: {ways}", hint="record both with --in-graph, or both without")


def _differing(a: Trace, b: Trace) -> dict[str, tuple[Scalar, Scalar]]:
    left, right = _conditions(a), _conditions(b)
    names = sorted({*left, *right} - {*_TOLD_APART})
    return {name: (left.get(name), right.get(name)) for name in names if left.get(name) != right.get(name)}


def _conditions(trace: Trace) -> dict[str, Scalar]:
    header = trace.header
    versions = {"tensorflow.version": header.tensorflow, "python.version": header.python}
    keras = {"keras.version": header.keras} if header.keras is not None else {}
    return {**header.conditions, **versions, **keras, **(trace.end or {})}


def _name(report: Report, number: int) -> str:
    header = report.headers[number]
    return f"{'AB'[number]} {clean(report.names[number])} (TensorFlow {clean(header.tensorflow)})"


def _called(pair: Pair) -> str:
    entry = pair.a
    return clean(entry.operation.type if isinstance(entry, Record) else entry.name)


def _at(pair: Pair) -> str:
    place = pair.a.operation.place if isinstance(pair.a, Record) else None
    return f" at {clean(place.file)}:{place.line}" if place else ""


def _details(pair: Pair) -> Iterator[tuple[str, str]]:
    place = pair.a.operation.place if isinstance(pair.a, Record) else None
    where = (
        f"{clean(place.file)}:{place.line} in {clean(place.function)}" if place else "in no line of the program itself"
    )
    yield "plain", f"      where: {where}, step {pair.a.step}"
    if not isinstance(pair.a, Record):
        return
    names = [each.operation.name for each in (pair.a, pair.b) if isinstance(each, Record) and each.operation.name]
    if names:
        yield "note", f"      named: {clean(' and '.join(dict.fromkeys(names)))}"
    yield "note", f"      reads: {clean(', '.join(pair.a.operation.inputs) or 'nothing')}"
    yield "note", f"      gives: {clean(', '.join(pair.a.operation.outputs) or 'nothing')}"
    if pair.kind == "operation" and pair.known < len(pair.a.inputs):
        yield "note", f"      of its {len(pair.a.inputs)} inputs {pair.known} have a fingerprint, and could be compared"


def _pair_json(pair: Pair | None) -> dict[str, Any] | None:
    if pair is None:
        return None
    return {"kind": pair.kind, "inputs_known": pair.known, "a": entry_json(pair.a), "b": entry_json(pair.b)}
