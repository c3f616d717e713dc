"""The verdict on what the runs of a program showed, as a report. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from envlock.data.lint import dataset_rules
from envlock.divergence.comparison import Difference, Line, Origin
from envlock.divergence.evidence import Evidence, Suspect
from envlock.divergence.makers import Maker
from envlock.divergence.sentences import explain_unknown, make_headline, make_title
from envlock.divergence.trace import Place, Record, Value
from envlock.numerics.failure import RULE, TITLE
from envlock.numerics.failure import findings as failure_findings
from envlock.runtime.report import ERROR, UNKNOWN, WARNING, Finding, Report
from envlock.runtime.where import Where

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

RENDERED = ("record", "timeline", "origins", "maker", "suspects", "failures")
"""Fields of the evidence that are attachments in a form of their own."""
NOT_ATTACHED = ("pipelines", "others", "notes", "threads", "blind")
"""Fields that are findings, notes or part of a sentence already."""


def report(seen: Evidence) -> Report:
    """Return the verdict: a finding for the cause, for the pipelines, and for what else differs by itself."""
    breaking: tuple[str, ...] = (ERROR,)
    if seen.failures:  # a run that failed leaves the verdict open
        breaking = (ERROR, UNKNOWN)
    titles = {**TITLES, RULE: TITLE}
    for rule, row in dataset_rules().items():
        titles[rule] = row.title
    return Report(
        _list_findings(seen),
        command="diverge",
        headline=make_title(seen),
        subject=seen.target.rpartition(":")[0] or seen.target,
        notes=seen.notes,
        titles=titles,
        attachments=_attach(seen),
        breaking=breaking,
    )


def _list_findings(seen: Evidence) -> Iterator[Finding]:
    if not seen.match:
        yield _find_cause(seen)
        yield from seen.pipelines
        for each in seen.others:
            yield _find_other(each, explain_unknown(seen))
    yield from failure_findings(seen.failures, SOURCE, FAILURE_FIX)


def _find_cause(seen: Evidence) -> Finding:
    """Return the finding that the verdict is about."""
    known, maker = seen.known, seen.maker
    fix = FIXES.get(seen.verdict, UNKNOWN_FIX)
    if maker is not None and maker.row.fix:
        fix = maker.row.fix
    if known is not None and known.fixes:
        fix = "\n".join(known.fixes)
    why, source = explain_unknown(seen), SOURCE
    # Where the maker's own row was looked up, it explains the operation's draws, not the line of Python that is named.
    is_of_maker = known is not None and maker is not None and known.row == maker.row.row
    if known is not None and not is_of_maker:
        why, source = known.why, known.source
    return Finding(seen.verdict, ERROR, _locate(seen), make_headline(seen), why, fix, source)


def _locate(seen: Evidence) -> Where:
    """Return the operation with its line; where the verdict names none, what differs first."""
    place = seen.place
    operation = seen.culprit or seen.first_name or "the runs"
    if place is None:
        return Where(operation=operation)
    text = ""
    for number, line in enumerate(seen.source, seen.source_from):
        if number == place.line:
            text = line.strip()
    return Where(
        operation=operation, file=place.file, line=place.line, function=place.function, text=text
    )


def _find_other(difference: Difference, why: str) -> Finding:
    """Return the finding on a later operation that differs by itself."""
    entry = difference.entry
    if isinstance(entry, Record):
        name, place = entry.operation.type, entry.operation.place
    else:
        name, place = entry.name, None
    where, what = Where(operation=name), name
    if place is not None:
        where = Where(operation=name, file=place.file, line=place.line)
        what = f"{name} at {place.file}:{place.line}"
    message = f"also an independent cause: {what}, step {entry.step}: {difference.distinct} results"
    return Finding("operation", WARNING, where, message, why, UNKNOWN_FIX, SOURCE)


def _attach(seen: Evidence) -> dict[str, Any]:
    """Return what is shown beside the findings, as JSON values."""
    plain = asdict(
        replace(seen, record=None, timeline=(), pipelines=(), others=(), failures=(), maker=None)
    )
    for name in (*RENDERED, *NOT_ATTACHED):
        del plain[name]
    attachments = {name: _use_lists(value) for name, value in plain.items()}
    attachments["failures"] = [each.to_json() for each in seen.failures]
    attachments["culprit"] = seen.culprit
    attachments["place"] = _render_place(seen.place)
    attachments["maker"] = _render_maker(seen.maker)
    attachments["unexplained"] = None
    if not seen.match and seen.known is None:
        attachments["unexplained"] = explain_unknown(seen)
    attachments["suspects"] = [_render_suspect(each) for each in seen.suspects]
    attachments["operation"] = None
    if seen.record is not None:
        attachments["operation"] = render_entry(seen.record)
    attachments["origins"] = [_render_origin(each) for each in seen.origins]
    attachments["timeline"] = [_render_line(each) for each in seen.timeline]
    return attachments


def _render_place(place: Place | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return place._asdict()


def _render_maker(maker: Maker | None) -> dict[str, Any] | None:
    if maker is None:
        return None
    return {"name": maker.name, "place": maker.place._asdict(), "text": maker.text}


def _render_suspect(suspect: Suspect) -> dict[str, Any]:
    return {**_use_lists(asdict(suspect)), "place": _render_place(suspect.place)}


def _render_origin(origin: Origin) -> dict[str, Any]:
    made_by = None
    if origin.made_by is not None:
        made_by = render_entry(origin.made_by)
    return {"input": origin.input, "spec": origin.spec, "made_by": made_by}


def _render_line(line: Line) -> dict[str, Any]:
    return {
        "number": line.index,
        "state": line.state,
        "distinct": line.distinct,
        **render_entry(line.entry),
    }


def _use_lists(value: Any) -> Any:
    """Return a value with lists for tuples, as JSON knows no others."""
    if isinstance(value, dict):
        return {name: _use_lists(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_use_lists(each) for each in value]
    return value


def render_entry(entry: Record | Value) -> dict[str, Any]:
    """Return an entry of a trace as JSON values."""
    if not isinstance(entry, Record):
        return {
            "step": entry.step,
            "value": entry.name,
            "outputs": [_render_tensor(entry.spec, entry.fingerprint)],
        }
    kind, name, place, inputs, outputs = entry.operation
    return {
        "step": entry.step,
        "type": kind,
        "name": name,
        "place": _render_place(place),
        "inputs": [_render_tensor(*each) for each in zip(inputs, entry.inputs, strict=False)],
        "outputs": [_render_tensor(*each) for each in zip(outputs, entry.outputs, strict=False)],
    }


def _render_tensor(spec: str, fingerprint: int | None) -> dict[str, str | None]:
    if fingerprint is None:
        return {"spec": spec, "fingerprint": None}
    return {"spec": spec, "fingerprint": f"{fingerprint:016x}"}
