"""What the runs of a program showed, what the tables know of it, and the verdict as a report. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from envlock.data.lint import dataset_rules
from envlock.divergence.comparison import Difference, Line, Origin
from envlock.divergence.known import Known
from envlock.divergence.makers import Maker
from envlock.divergence.trace import Place, Record
from envlock.numerics.failure import RULE, TITLE, Failure
from envlock.numerics.failure import findings as failure_findings
from envlock.runtime.report import ERROR, UNKNOWN, WARNING, Finding, Report, clean
from envlock.runtime.where import Where

Verdict = Literal[
    "identical",
    "operation",
    "data",
    "outside",
    "variable",
    "sequence",
    "graph",
    "call",
    "quantity",
    "race",
    "threads",
    "processes",
    "unseen",
]
SOURCE_LINES = 1  # before and after the line that is named
SOURCE = "docs/reference/diverge.md"
UNKNOWN_FIX = (
    "Call `tf.config.experimental.enable_op_determinism()` first: TensorFlow then raises an error for operations "
    "without a deterministic kernel."
)
_SAME = (
    "Make that value the same in every run: seed the generator that it comes from, sort names and sets, take what "
    "threads deliver in a fixed order."
)
FIXES: Mapping[str, str] = {
    "outside": _SAME,
    "quantity": _SAME,
    "sequence": _SAME,
    "race": "Change the variable from one thread, in a fixed order; a lock alone leaves the order open.",
    "processes": "Run `envlock diverge` for each of the programs, and seed each by its rank.",
    "threads": "Run the program with one thread and one replica: every operation is then compared.",
}
FAILURE_FIX = "Correct the program, or stop each run before it fails: `--steps`."
TITLES: Mapping[str, str] = {
    "operation": "an operation gave different bits from equal inputs",
    "data": "the input pipeline gave different data",
    "outside": "a value came from outside TensorFlow",
    "variable": "a variable holds a value that no operation wrote",
    "sequence": "different operations ran",
    "graph": "the difference is inside a graph",
    "call": "a graph gave different bits from equal inputs",
    "quantity": "a returned or recorded value differs, but no operation does",
    "race": "threads used a variable in another order",
    "threads": "the difference came from outside the traced thread",
    "processes": "the difference can come from outside the traced process",
    "unseen": "the runs differ, and their operations are not visible",
}


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
class Evidence:
    """What the runs showed.

    Attributes:
        verdict: `identical`; `operation`: equal inputs and another output; `data`: the pipeline gave something else;
            `outside`: a value came from Python; `sequence`: other operations ran; `graph`: only in graphs or under XLA;
            `variable`, `call`, `quantity`: something differs whose cause is no operation that was seen; `race`: threads
            used a variable in another order; `threads`: the cause can stand in other threads, which were not wholly
            seen; `processes`: it can come from another process of the same training; `unseen`: this TensorFlow shows no
            operations.
        target: what was run, and how often.
        level: the one that the verdict rests on; the others stand in `levels`.
        record: the first operation that differs; None where there is none.
        source: its lines in the user's file, from number `source_from` on.
        origins: where its inputs came from.
        differing: which of them differ.
        known: what the tables know of it.
        because: sentences about what trying it otherwise showed.
        suspects: in graphs, what can be the cause.
        maker: the line of Python or NumPy that made the value: with the same from it, the difference is gone.
        pipelines: what the dataset linter says of the pipelines that were read.
        others: later operations that differ by themselves.
        timeline: what happened around the first difference.
        threads: how many Python threads the program started, or how many of them race.
        blind: why a cause in other threads would not have been seen.
        notes: what limits the verdict.
        failures: runs that failed; all runs are compared until the first of these ended.
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
    maker: Maker | None = None
    pipelines: tuple[Finding, ...] = ()
    others: tuple[Difference, ...] = ()
    timeline: tuple[Line, ...] = ()
    threads: int = 0
    blind: str | None = None
    notes: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def match(self) -> bool:
        """Whether all runs gave the same."""
        return self.verdict == "identical"

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


def report(seen: Evidence) -> Report:
    """Return the verdict: a finding for the cause, for the pipelines, and for what else differs by itself."""
    return Report(
        _findings(seen),
        command="diverge",
        headline=_title(seen),
        subject=seen.target.rpartition(":")[0] or seen.target,
        notes=seen.notes,
        titles={**TITLES, RULE: TITLE, **{rule: row.title for rule, row in dataset_rules().items()}},
        attachments=_attachments(seen),
        breaking=(ERROR, UNKNOWN) if seen.failures else (ERROR,),
    )


def _findings(seen: Evidence) -> Iterator[Finding]:
    if not seen.match:
        yield from _differences(seen)
    yield from failure_findings(seen.failures, SOURCE, FAILURE_FIX)


def _differences(seen: Evidence) -> Iterator[Finding]:
    known = seen.known
    otherwise = (seen.maker and seen.maker.row.fix) or FIXES.get(seen.verdict, UNKNOWN_FIX)
    fix = "\n".join(known.fixes) if known is not None and known.fixes else otherwise
    drawn = seen.maker is not None and known is not None and known.row == seen.maker.row.row  # of operations' own draws
    why, source = (_unknown(seen), SOURCE) if known is None or drawn else (known.why, known.source)
    yield Finding(seen.verdict, ERROR, _where(seen), headline(seen), why, fix, source)
    yield from seen.pipelines
    for each in seen.others:
        yield _other(seen, each)


def _where(seen: Evidence) -> Where:
    """Return the operation with its line; where the verdict names none, what differs first."""
    place = seen.place
    operation = seen.culprit or next((level.name for level in seen.levels if level.name), "the runs")
    if place is None:
        return Where(operation=operation)
    text = next((line for number, line in enumerate(seen.source, seen.source_from) if number == place.line), "")
    return Where(operation=operation, file=place.file, line=place.line, function=place.function, text=text.strip())


def _other(seen: Evidence, difference: Difference) -> Finding:
    entry = difference.entry
    name, place = (entry.operation.type, entry.operation.place) if isinstance(entry, Record) else (entry.name, None)
    at = f" at {place.file}:{place.line}" if place else ""
    where = Where(operation=name) if place is None else Where(operation=name, file=place.file, line=place.line)
    message = f"also an independent cause: {name}{at}, step {entry.step}: {difference.distinct} results"
    return Finding("operation", WARNING, where, message, _unknown(seen), UNKNOWN_FIX, SOURCE)


def _attachments(seen: Evidence) -> dict[str, Any]:
    """Return what is shown beside the findings, as JSON values."""
    fields = asdict(replace(seen, pipelines=(), others=(), failures=(), maker=None))
    for name in (
        "record",
        "timeline",
        "origins",
        "pipelines",
        "others",
        "threads",
        "blind",
        "notes",
        "maker",
        "failures",
    ):
        del fields[name]
    return {
        **{name: _listed(value) for name, value in fields.items()},
        "failures": [each.to_json() for each in seen.failures],
        "culprit": seen.culprit,
        "place": None if seen.place is None else seen.place._asdict(),
        "maker": _maker_json(seen.maker),
        "unexplained": None if seen.match or seen.known is not None else _unknown(seen),
        "suspects": [{**_listed(asdict(each)), "place": each.place and each.place._asdict()} for each in seen.suspects],
        "operation": None if seen.record is None else entry_json(seen.record),
        "origins": [
            {"input": each.input, "spec": each.spec, "made_by": each.made_by and entry_json(each.made_by)}
            for each in seen.origins
        ],
        "timeline": [
            {"number": each.index, "state": each.state, "distinct": each.distinct, **entry_json(each.entry)}
            for each in seen.timeline
        ],
    }


def _maker_json(maker: Maker | None) -> dict[str, Any] | None:
    return None if maker is None else {"name": maker.name, "place": maker.place._asdict(), "text": maker.text}


def _listed(value: Any) -> Any:
    """Return a value with lists for tuples, as JSON knows no others."""
    if isinstance(value, dict):
        return {name: _listed(each) for name, each in value.items()}
    return [_listed(each) for each in value] if isinstance(value, list | tuple) else value


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


def headline(report: Evidence) -> str:
    """Return the verdict as a sentence without a full stop."""
    what = clean(report.culprit or "something")
    results = f"{report.distinct} different results in {report.runs} runs"
    about = _about(report.record)
    suspect = f"; the most likely cause is {what}" if report.suspects else ""
    called = what in ("PythonFunction", "PyFunc", "EagerPyFunc")
    outside = (
        f"a Python function{about} gave {results}: the value came from outside TensorFlow"
        if called
        else f"{what} reads a value from outside TensorFlow, which differs: {results}"
    )
    eagerly = any(level.mode == "eager" for level in report.levels)
    only = "only in graph mode or under XLA (eager runs are identical)" if eagerly else "inside a graph"
    shown = clean(next((level.name for level in report.levels if level.name), "something"))
    sentences: dict[Verdict, str] = {
        "identical": f"all {report.runs} runs are identical",
        "operation": f"{what}{about} gave {results}, although its inputs were equal",
        "data": f"the input pipeline gave different data: {what}, {results}",
        "outside": outside,
        "sequence": f"different operations ran: the Python code took another branch before {what}",
        "graph": f"the runs differ {only}{suspect}",
        "variable": f"a variable{about} holds a value that no traced operation wrote",
        "call": f"the graph{about} gave {results}, although its inputs were equal",
        "quantity": "a returned or recorded value differs, although every operation gave the same: Python computed it",
        "race": f"{report.threads} threads used {_variable(report.record)} in {report.distinct} different orders "
        f"in {report.runs} runs",
        "threads": f"the difference, first in {shown}, came from outside the traced thread: {report.blind}",
        "processes": f"the difference, first in {shown}, can come from outside the traced process: {report.blind}",
        "unseen": f"the runs differ, first in {shown}",
    }
    if report.maker is None:
        return sentences[report.verdict]
    made = "made" if report.maker.is_shown else "may have made"
    return f"{sentences[report.verdict]}; {clean(report.maker.title)} {made} it"


def _variable(record: Record | None) -> str:
    name = None if record is None else record.operation.name
    return f"variable {clean(name)}" if name else "a variable"


def _about(record: Record | None) -> str:
    name = record.operation.name if record is not None else None
    if not name or name.startswith("seed="):
        return ""
    return (
        f" {clean(name)}"
        if record is not None and record.operation.type in ("Call", "PythonFunction")
        else f" on {clean(name)}"
    )


def _title(report: Evidence) -> str:
    keras = f", Keras {clean(report.keras)}" if report.keras else ""
    with_ = f"TensorFlow {clean(report.tensorflow)}{keras}"
    if report.match and report.failures:
        return f"identical until a run failed: {report.runs} runs of {clean(report.target)} ({with_})"
    if report.match:
        return f"identical: {report.runs} runs of {clean(report.target)} ({with_})"
    return f"runs differ: {report.runs} runs of {clean(report.target)} ({with_})"


def _unknown(report: Evidence) -> str:
    maker = report.maker
    match report.verdict:
        case "data" | "outside" | "quantity" | "sequence" if maker is not None and maker.is_shown:
            return f"{clean(maker.name)} gives something else in each run"
        case "data":
            return "the data differ before any operation of the model runs; check the pipeline by itself"
        case "outside" | "quantity":
            order = "the order in which threads finished" if report.threads else "an order of names"
            return f"it comes from Python or NumPy: an unseeded random generator, the time, files, or {order}"
        case "race":
            return "each update rounds, so another order gives other bits, and a read in between sees another value"
        case "threads":
            return "what other threads computed was not compared whole, so the cause can be there or in Python"
        case "processes":
            return "what other processes computed enters where devices are combined, and is not traced"
        case "sequence":
            return (
                "Python decided differently: the order of a set, a random number, the time, or state of an earlier run"
            )
        case "unseen":
            return "operations were not visible; `envlock repeat` measures how far the runs are apart"
        case "graph":
            return "operations of a graph run in parallel, and compilers reorder sums; `--in-graph` looks inside"
        case _:
            return "the cause is not in envlock's tables; TensorFlow's op determinism may refuse or fix it"
