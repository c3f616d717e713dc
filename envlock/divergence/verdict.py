"""What the runs of a program showed, for people and programs. Pure: values in, sentences out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from envlock.divergence.comparison import Line, Origin
from envlock.divergence.knowledge import Known
from envlock.divergence.trace import Place, Record
from envlock.runtime.report import clean

REPORT_VERSION = 1
Verdict = Literal[
    "identical", "operation", "data", "outside", "variable", "sequence", "graph", "call", "quantity", "unseen"
]
SOURCE_LINES = 1  # before and behind the line that is meant


Mode = Literal["as it is", "eager", "in graphs"]


@dataclass(frozen=True)
class Level:
    """What one way of running showed.

    Attributes:
        mode: `as it is` (the user's own mode), `eager`, or `in graphs` (his own, with a look into the graphs).
        groups: of each run the number of its result at the first difference; all 0 where there is none.
        step, name: the first difference: in which step, and of what.
        entries: how many operations, calls and values each run was compared by.
        steps: how many steps that were.
    """

    mode: Mode
    groups: tuple[int, ...]
    step: int | None
    name: str | None
    entries: int
    steps: int


@dataclass(frozen=True)
class Suspect:
    """An operation of a graph that can give, or has given, another result: its line, and what is known of it."""

    type: str
    name: str
    place: Place | None
    known: Known | None


@dataclass(frozen=True)
class Report:
    """What `envlock diverge` found.

    Attributes:
        verdict: `identical`; `operation`: equal inputs and another output; `data`: the pipeline gave something else;
            `outside`: a value came from Python; `sequence`: other operations ran; `graph`: only in graphs or under XLA;
            `variable`, `call`, `quantity`: something differs whose cause is no operation that was seen; `unseen`: this
            TensorFlow shows no operations.
        target: what was run, and how often.
        level: the one that the verdict rests on; the others stand in `levels`.
        record: the first operation that differs; None where there is none.
        source: its lines in the user's file, from number `source_from` on.
        origins: where its inputs came from.
        differing: which of them differ.
        known: what the tables know of it.
        because: sentences about what trying it otherwise showed.
        suspects: in graphs, what can be the cause.
        findings: what the dataset linter says of the pipelines, as text.
        others: later operations that differ by themselves, as text.
        timeline: what happened around the first difference.
        notes: what limits the verdict.
    """

    verdict: Verdict
    target: str
    runs: int
    tensorflow: str
    keras: str | None
    levels: tuple[Level, ...]
    record: Record | None = None
    index: int | None = None
    distinct: int = 1
    source: tuple[str, ...] = ()
    source_from: int = 0
    origins: tuple[Origin, ...] = ()
    differing: tuple[int, ...] = ()
    known: Known | None = None
    because: tuple[str, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    findings: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    timeline: tuple[Line, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def match(self) -> bool:
        """Whether all runs gave the same."""
        return self.verdict == "identical"

    @property
    def exit_code(self) -> int:
        """0 when all runs gave the same, 1 when not."""
        return 0 if self.match else 1

    @property
    def place(self) -> Place | None:
        """The line of the user's that the verdict names."""
        if self.record is not None and self.verdict != "graph":
            return self.record.operation.place
        return self.suspects[0].place if self.suspects else None

    @property
    def culprit(self) -> str | None:
        """The type of the operation that the verdict names."""
        if self.suspects:
            return self.suspects[0].type
        return None if self.record is None else self.record.operation.type

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        fields = asdict(self)
        for name in ("record", "timeline", "origins"):
            del fields[name]
        return {
            "report_version": REPORT_VERSION,
            "match": self.match,
            "culprit": self.culprit,
            "place": None if self.place is None else self.place._asdict(),
            "headline": headline(self),
            **fields,
            "suspects": [{**asdict(each), "place": each.place and each.place._asdict()} for each in self.suspects],
            "operation": None if self.record is None else entry_json(self.record),
            "origins": [
                {"input": each.input, "spec": each.spec, "made_by": each.made_by and entry_json(each.made_by)}
                for each in self.origins
            ],
            "timeline": [
                {"number": each.index, "state": each.state, "distinct": each.distinct, **entry_json(each.entry)}
                for each in self.timeline
            ],
        }

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield (style, line) for people."""
        yield "title", _title(self)
        for level in self.levels:
            yield "plain", f"  {_level(level)}"
        if self.match:
            yield from (("note", f"  note: {each}") for each in self.notes)
            return
        yield "error", f"  x {headline(self)}"
        yield from _where(self)
        yield from _inputs(self)
        for each in self.findings:
            yield "warning", f"      pipeline: {clean(each)}"
        for each in self.because:
            yield "note", f"      tried: {clean(each)}"
        yield from _known(self)
        for each in self.others:
            yield "warning", f"  ! also, by itself: {clean(each)}"
        yield from (("note", f"  note: {each}") for each in self.notes)

    def __str__(self) -> str:
        return "\n".join(line for _, line in self.lines())


def entry_json(entry: Any) -> dict[str, Any]:
    """Return an entry of a trace as JSON values."""
    if isinstance(entry, Record):
        kind, name, place, inputs, outputs = entry.operation
        return {
            "step": entry.step,
            "type": kind,
            "name": name,
            "place": place and place._asdict(),
            "inputs": [_side(*each) for each in zip(inputs, entry.inputs, strict=False)],
            "outputs": [_side(*each) for each in zip(outputs, entry.outputs, strict=False)],
        }
    return {"step": entry.step, "value": entry.name, "outputs": [_side(entry.spec, entry.fingerprint)]}


def _side(spec: str, fingerprint: int | None) -> dict[str, str | None]:
    return {"spec": spec, "fingerprint": None if fingerprint is None else f"{fingerprint:016x}"}


def headline(report: Report) -> str:
    """Return the verdict as a sentence without a full stop."""
    what = clean(report.culprit or "something")
    results = f"{report.distinct} different results in {report.runs} runs"
    about = _about(report.record)
    suspect = f"; the likeliest cause is {what}" if report.suspects else ""
    called = what in ("PythonFunction", "PyFunc", "EagerPyFunc")
    outside = (
        f"a Python function{about} gave {results}: the value came from outside TensorFlow"
        if called
        else f"a value that {what} reads came from outside TensorFlow, and differs: {results}"
    )
    eagerly = any(level.mode == "eager" for level in report.levels)
    only = "only in graph mode or under XLA, eagerly they are identical" if eagerly else "inside of a graph"
    shown = clean(next((level.name for level in report.levels if level.name), "something"))
    sentences: dict[Verdict, str] = {
        "identical": f"all {report.runs} runs are identical",
        "operation": f"{what}{about} gave {results}, although its inputs were equal",
        "data": f"the input pipeline gave other data: {what}, {results}",
        "outside": outside,
        "sequence": f"other operations ran: Python took another way before {what}",
        "graph": f"the runs differ {only}{suspect}",
        "variable": f"a variable{about} holds something that no operation seen has written",
        "call": f"the graph{about} gave {results}, although its inputs were equal",
        "quantity": "what the run shows differs, although every operation gave the same: Python computed it",
        "unseen": f"the runs differ, first in {shown}",
    }
    return sentences[report.verdict]


def _about(record: Record | None) -> str:
    name = record.operation.name if record is not None else None
    if not name or name.startswith("seed="):
        return ""
    return (
        f" {clean(name)}"
        if record is not None and record.operation.type in ("Call", "PythonFunction")
        else f" on {clean(name)}"
    )


def _title(report: Report) -> str:
    keras = f", Keras {clean(report.keras)}" if report.keras else ""
    with_ = f"TensorFlow {clean(report.tensorflow)}{keras}"
    if report.match:
        return f"identical: {report.runs} runs of {clean(report.target)} ({with_})"
    return f"runs differ: {report.runs} runs of {clean(report.target)} ({with_})"


def _level(level: Level) -> str:
    modes: dict[Mode, str] = {
        "as it is": "in the program's own mode",
        "eager": "operation by operation (eager)",
        "in graphs": "inside of its graphs",
    }
    mode = modes[level.mode]
    compared = f"{level.entries} entries of {level.steps} {'step' if level.steps == 1 else 'steps'} compared"
    if level.name is None:
        return f"{mode}: identical; {compared}"
    results = " ".join(str(each) for each in level.groups)
    return f"{mode}: differs from step {level.step} on, first in {clean(level.name)}; results of the runs: {results}"


def _where(report: Report) -> Iterator[tuple[str, str]]:
    place, record = report.place, report.record
    step = f", step {record.step}, entry {report.index}" if record is not None and report.verdict != "graph" else ""
    if place is None:
        yield "plain", f"      where: in no line of the program itself{step}"
        return
    yield "plain", f"      where: {clean(place.file)}:{place.line} in {clean(place.function)}{step}"
    for number, line in enumerate(report.source, report.source_from):
        mark = ">" if number == place.line else " "
        yield "plain", f"        {mark} {number:>4} | {clean(line)}"


def _inputs(report: Report) -> Iterator[tuple[str, str]]:
    for each in report.origins[:6]:
        differs = "differs, " if each.input in report.differing else ""
        yield "note", f"      reads: {clean(each.spec)}, {differs}{_origin(each)}"


def _origin(origin: Origin) -> str:
    if origin.made_by is None and origin.spec == "resource[]":
        return "not written in this run before"
    if origin.made_by is None:
        return "made outside of operations (a constant, or Python)"
    operation = origin.made_by.operation
    at = f" at {clean(operation.place.file)}:{operation.place.line}" if operation.place else ""
    verb = "last written by" if origin.spec == "resource[]" else "made by"
    return f"{verb} {clean(operation.type)}{at}"


def _known(report: Report) -> Iterator[tuple[str, str]]:
    for each in report.suspects[1:6]:
        at = f" at {clean(each.place.file)}:{each.place.line}" if each.place else ""
        yield "warning", f"      or: {clean(each.type)} {clean(each.name)}{at}"
    if report.known is None:
        yield "note", f"      why: {_unknown(report)}"
        return
    yield "note", f"      why: {clean(report.known.why)}"
    for fix in report.known.fixes:
        yield "note", f"      fix: {clean(fix)}"
    yield "note", f"      known as: {report.known.row}"


def _unknown(report: Report) -> str:
    match report.verdict:
        case "data":
            return "what is read differs before any operation of the model runs; look at the pipeline by itself"
        case "outside" | "quantity":
            return "Python or NumPy made it: a random generator without a seed, the time, files, or an order of names"
        case "sequence":
            return "Python decided otherwise: an order of a set, a random number, the time, or what an earlier run left"
        case "unseen":
            return "operations were not seen; `envlock repeat` tells how far the runs are apart"
        case "graph":
            return "operations of a graph run side by side, and compilers order sums otherwise; --in-graph looks inside"
        case _:
            return "the tables on determinism have nothing on it; TensorFlow's op determinism may refuse or mend it"
