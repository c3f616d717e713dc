"""The verdict on what the runs of a program showed, as a report. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from envlock.data.lint_tables import load_dataset_rules
from envlock.evidence.diverge.comparison import Difference
from envlock.evidence.diverge.evidence import DivergeEvidence
from envlock.evidence.diverge.sentences import explain_unknown, make_headline, make_title
from envlock.evidence.diverge.trace import Record
from envlock.evidence.failure import RULE, TITLE, list_failures
from envlock.runtime.extent import Extent
from envlock.runtime.finding_place import Where
from envlock.runtime.report import ERROR, UNKNOWN, WARNING, Finding, Report, clean

SOURCE = "docs/reference/diverge.md"
UNKNOWN_FIX = (
    "Call `tf.config.experimental.enable_op_determinism()` first: TensorFlow then raises an error for operations "
    "without a deterministic kernel."
)
PYTHON_FIX = (
    "Python code makes these data, which op determinism does not reach: let one thread call it (`workers=1` of a "
    "Keras dataset, `num_parallel_calls=1` of a map), and seed what it draws."
)
_IN_PYTHON = "ENV509"
"""The rule on pipelines that call Python code."""
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
STOPPED = "search-stopped"
STOPPED_WHY = "What was still to be tried can name another cause, or show that runs differ."
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
    "race": "threads accessed a variable in different orders",
    "threads": "the difference came from outside the traced thread",
    "processes": "the difference can come from outside the traced process",
    "unseen": "the runs differ, and their operations are not visible",
}


def report(seen: DivergeEvidence) -> Report[DivergeEvidence]:
    """Return the verdict: findings on the cause, on pipelines, and on later causes."""
    if not seen.match and seen.known is None:
        seen = replace(seen, unexplained=explain_unknown(seen))
    # A run that failed, and a search that was not finished, leave the verdict open.
    breaking: tuple[str, ...] = (
        (ERROR, UNKNOWN) if seen.failures or seen.stopped is not None else (ERROR,)
    )
    titles = {**TITLES, RULE: TITLE, STOPPED: "the search was stopped"}
    for rule, row in load_dataset_rules().items():
        titles[rule] = row.title
    return Report(
        _list_findings(seen),
        command="diverge",
        headline=make_title(seen),
        subject=seen.target.rpartition(":")[0] or seen.target,
        notes=seen.notes,
        titles=titles,
        evidence=seen,
        breaking=breaking,
        extent=Extent(runs=seen.runs, operations=sum(level.entries for level in seen.levels)),
    )


def _list_findings(seen: DivergeEvidence) -> Iterator[Finding]:
    if not seen.match:
        yield _find_cause(seen)
        yield from seen.pipelines
        for each in seen.others:
            yield _find_other(each, explain_unknown(seen))
    yield from list_failures(seen.failures, SOURCE, FAILURE_FIX)
    if seen.stopped is not None:
        message = (
            f"{clean(seen.stopped)} came while {seen.stopped_while}: this is what was known by then"
        )
        where = Where(operation="the search")
        yield Finding(
            STOPPED,
            UNKNOWN,
            where,
            message=message,
            why=STOPPED_WHY,
            fix="Run it again.",
            source=SOURCE,
        )
    if seen.match:
        yield from seen.pipelines


def _find_cause(seen: DivergeEvidence) -> Finding:
    """Return the finding that the verdict is about."""
    known, maker = seen.known, seen.maker
    if known is not None and known.fixes:
        fix = "\n".join(known.fixes)
    elif maker is not None and maker.remedy:
        fix = maker.remedy
    elif seen.verdict == "data" and any(each.rule == _IN_PYTHON for each in seen.pipelines):
        fix = PYTHON_FIX
    else:
        fix = FIXES.get(seen.verdict, UNKNOWN_FIX)
    why, source = explain_unknown(seen), SOURCE
    # The maker's own row explains the draws of an operation, not the line of Python that is named.
    is_draw = maker is not None and maker.can_be_held
    is_of_maker = is_draw and known is not None and maker is not None and known.row == maker.source
    if known is not None and not is_of_maker:
        why, source = known.why, known.source
    return Finding(
        seen.verdict,
        ERROR,
        _locate(seen),
        message=make_headline(seen),
        why=why,
        fix=fix,
        source=source,
    )


def _locate(seen: DivergeEvidence) -> Where:
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
    return Finding(
        "operation", WARNING, where, message=message, why=why, fix=UNKNOWN_FIX, source=SOURCE
    )
