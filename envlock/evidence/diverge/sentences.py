"""The verdict of `envlock diverge` in words: its headline, and how an unknown cause works. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from envlock.evidence.diverge.evidence import DivergeEvidence, Verdict
from envlock.evidence.diverge.trace import Record
from envlock.runtime.report import clean

CALLS_PYTHON = ("PythonFunction", "PyFunc", "EagerPyFunc")
"""Operations that are a Python function of the user's."""

BY_PYTHON = ("data", "outside", "quantity", "sequence")
"""Verdicts whose cause is a line of Python or NumPy, if one was found."""

NAMED_AS_A_WHOLE = ("Call", "PythonFunction")
"""Entries whose name is their own; that of any other operation is what it works on."""


def make_headline(seen: DivergeEvidence) -> str:
    """Return the verdict as a sentence without a full stop."""
    sentence = _say_verdict(seen)
    if seen.maker is None:
        return sentence
    made = "made" if seen.maker.is_shown else "may have made"
    return f"{sentence}; {clean(seen.maker.title)} {made} it"


def _say_verdict(seen: DivergeEvidence) -> str:
    what = clean(seen.culprit or "something")
    results = f"{seen.distinct} different results in {seen.runs} runs"
    about = _name_record(seen.record)
    first = clean(seen.first_name or "something")
    sentences: dict[Verdict, str] = {
        "identical": f"all {seen.runs} runs are identical",
        "operation": f"{what}{about} gave {results}, although its inputs were equal",
        "data": f"the input pipeline gave different data: {what}, {results}",
        "outside": _say_outside(what, about, results),
        "sequence": f"different operations ran: the Python code took another branch before {what}",
        "graph": _say_graph(seen, what),
        "variable": f"a variable{about} holds a value that no traced operation wrote",
        "call": f"the graph{about} gave {results}, although its inputs were equal",
        "quantity": "a returned or recorded value differs, although every operation gave the same: Python computed it",
        "race": f"{seen.threads} threads used {_name_variable(seen.record)} in {seen.distinct} different orders "
        f"in {seen.runs} runs",
        "threads": f"the difference, first in {first}, came from outside the traced thread: {seen.blind}",
        "processes": f"the difference, first in {first}, can come from outside the traced process: {seen.blind}",
        "unseen": f"the runs differ, first in {first}",
    }
    return sentences[seen.verdict]


def _say_outside(what: str, about: str, results: str) -> str:
    if what in CALLS_PYTHON:
        return f"a Python function{about} gave {results}: the value came from outside TensorFlow"
    return f"{what} reads a value from outside TensorFlow, which differs: {results}"


def _say_graph(seen: DivergeEvidence, what: str) -> str:
    if any(level.mode == "eager" for level in seen.levels):
        where = "only in graph mode or under XLA (eager runs are identical)"
    else:
        where = "inside a graph"
    sentence = f"the runs differ {where}"
    if seen.suspects:
        sentence += f"; the most likely cause is {what}"
    return sentence


def _name_variable(record: Record | None) -> str:
    if record is None or not record.operation.name:
        return "a variable"
    return f"variable {clean(record.operation.name)}"


def _name_record(record: Record | None) -> str:
    """Return the name of an entry as it follows its type, after a blank; nothing without a name."""
    if record is None:
        return ""
    name = record.operation.name
    # Of random operations the trace holds the seeds in place of a name.
    if not name or name.startswith("seed="):
        return ""
    if record.operation.type in NAMED_AS_A_WHOLE:
        return f" {clean(name)}"
    return f" on {clean(name)}"


def make_title(seen: DivergeEvidence) -> str:
    """Return the first line of the report."""
    versions = f"TensorFlow {clean(seen.tensorflow)}"
    if seen.keras:
        versions += f", Keras {clean(seen.keras)}"
    runs = f"{seen.runs} runs of {clean(seen.target)} ({versions})"
    if not seen.match:
        return f"runs differ: {runs}"
    if seen.failures:
        return f"identical until a run failed: {runs}"
    if seen.stopped is not None:
        return f"identical until it was stopped: {runs}"
    return f"identical: {runs}"


UNKNOWN_CAUSES: Mapping[Verdict, str] = {
    "data": "The data differ before any operation of the model runs; check the pipeline by itself.",
    "race": "Each update rounds, so another order gives other bits, and a read in between sees another value.",
    "threads": "What other threads computed was not compared whole, so the cause can be there or in Python.",
    "processes": "What other processes computed enters where devices are combined, and is not traced.",
    "sequence": "Python decided differently: the order of a set, a random number, the time, or state of an earlier run.",
    "unseen": "Operations were not visible; `envlock repeat` measures how far the runs are apart.",
    "graph": "Operations of a graph run in parallel, and compilers reorder sums.",
}
NOT_IN_TABLES = (
    "The cause is not in envlock's tables; TensorFlow's op determinism may refuse or fix it."
)


def explain_unknown(seen: DivergeEvidence) -> str:
    """Return why such a difference arises, for one that no table explains."""
    maker = seen.maker
    if seen.verdict in BY_PYTHON and maker is not None and maker.is_shown:
        return f"{clean(maker.name)} gives something else in each run."
    if seen.verdict not in ("outside", "quantity"):
        return UNKNOWN_CAUSES.get(seen.verdict, NOT_IN_TABLES)
    order = "the order in which threads finished" if seen.threads else "an order of names"
    return (
        f"It comes from Python or NumPy: an unseeded random generator, the time, files, or {order}."
    )
