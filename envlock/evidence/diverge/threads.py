"""What other Python threads did in runs that differ: their traces compared, and who used which variable.

Pure: what the tracer wrote in, values out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.evidence.diverge.comparison import (
    Comparison,
    Difference,
    Entry,
    compare,
    describe_work,
    is_on_variable,
    number_results,
    weigh,
)
from envlock.evidence.diverge.trace import Operation, Place, Record

EXPLAINED = ("operation", "data", "outside", "sequence")
"""Kinds of differences that are a cause, also in a thread."""
OWN = ""
"""Stands for the thread that the run's own trace is of."""
OpenTrace = Callable[[int, str], Iterable[Entry] | None]
"""Returns the trace of a run's thread, both by number; None if it does not exist."""


@dataclass(frozen=True)
class Race:
    """A variable that threads used in another order in each run, and where one of them changes it."""

    record: Record
    groups: tuple[int, ...]
    threads: int


@dataclass(frozen=True)
class ThreadInput:
    """The operations of other threads that made a value which the run's own thread read.

    Attributes:
        sentence: which they are, and where.
        race: the variable that they changed, if that is how the value came to the other thread.
    """

    sentence: str
    race: Race | None = None


@dataclass(frozen=True)
class ThreadEvidence:
    """What is known of other threads.

    Attributes:
        thread, comparison: the first thread in which an operation is the cause, and what it did.
        race: the variable that they race for.
        blind: why the difference can be in a thread without being visible; None where it cannot.
    """

    thread: str | None = None
    comparison: Comparison | None = None
    race: Race | None = None
    blind: str | None = None


def examine(
    ends: Sequence[Mapping[str, Any]], open_trace: OpenTrace, before: int | None
) -> ThreadEvidence:
    """Return what other threads did that can explain a difference in the run's own trace.

    Threads that began after that only follow. None: the run's own trace has no difference.

    Args:
        ends: what the tracer wrote at the end of each run.
        open_trace: returns the traces of threads.
        before: the number of the first entry that differs.
    """
    race = _find_race(ends)
    if race is not None:
        return ThreadEvidence(race=race)
    blind = None
    if any(end.get("elsewhere") for end in ends):
        blind = "operations of more threads ran than were recorded"
    starts: list[Mapping[str, int]] = [end.get("starts") or {} for end in ends]
    if count_same_work(ends, open_trace) is not None:
        return ThreadEvidence(blind=blind)
    if len(set(map(frozenset, starts))) > 1:
        reason = "another number of threads ran TensorFlow operations in each run"
        return ThreadEvidence(blind=blind or reason)
    for name in sorted(starts[0], key=_split_number):
        if before is not None and starts[0][name] > before:
            continue
        found = compare([open_trace(run, name) or () for run in range(len(ends))])
        if found.first is None:
            continue
        # A thread of a pool runs another sequence, or the same with other data, whenever the pool gives it
        # other work.
        is_pool = any(name in (end.get("pools") or ()) for end in ends)
        is_explained = _is_explained(found.first, is_alone=before is None)
        if is_explained and not (is_pool and found.first.kind in ("sequence", "outside")):
            return ThreadEvidence(name, found, blind=blind)
        if blind is None:
            blind = f"thread {name} did something else in each run"
    return ThreadEvidence(blind=blind)


def _split_number(name: str) -> list[int]:
    """Return the parts of a thread's number, so that 10 comes after 9."""
    return list(map(int, name.split("-")))


def _is_explained(first: Difference, *, is_alone: bool) -> bool:
    """Return whether a thread's difference is a cause; a variable can be changed by another thread.

    `is_alone`: the run's own trace has no difference, so the inputs of a thread do not matter.
    """
    entry = first.entry
    if not isinstance(entry, Record) or is_on_variable(entry):
        return False
    if is_alone:
        return first.kind == "operation"
    return first.kind in EXPLAINED


def find_thread_input(
    first: Difference, ends: Sequence[Mapping[str, Any]], open_trace: OpenTrace
) -> ThreadInput | None:
    """Return which operations of other threads made an input that differs; None for no or unknown ones."""
    if first.kind != "outside" or not first.inputs:
        return None
    others: list[tuple[str, Record]] = []
    for run, entry in enumerate(first.entries):
        threads = [*(ends[run].get("starts") or {}), OWN]
        found = _find_made(entry, first.inputs[0], threads, run, open_trace)
        if found is None:
            return None
        if found[0] != OWN:
            others.append(found)
    if not others:
        return None
    names = dict.fromkeys(name for name, _ in others)
    record = others[0][1]
    if is_on_variable(record):
        return ThreadInput("", Race(record, first.groups, len(names) + 1))
    lines: dict[str, None] = {}
    for _, record in others:
        if record.place is not None:
            lines[f"{record.operation.type} at {record.place.file}:{record.place.line}"] = None
    threads_text, where = ", ".join(names), ", ".join(lines)
    return ThreadInput(
        f"the value that differs was made in other threads ({threads_text}), by {where}"
    )


def _find_made(
    entry: Entry | None, wanted: int, threads: Sequence[str], run: int, open_trace: OpenTrace
) -> tuple[str, Record] | None:
    """Return the thread and the operation that made an input; of the own thread only for a variable."""
    if not isinstance(entry, Record) or wanted >= len(entry.inputs) or entry.inputs[wanted] is None:
        return None
    value = entry.inputs[wanted], entry.operation.inputs[wanted]
    for name in threads:
        for other in open_trace(run, name) or ():
            if not isinstance(other, Record) or (name == OWN and not is_on_variable(other)):
                continue
            if value in zip(other.outputs, other.operation.outputs, strict=False):
                return name, other
    return None


def count_same_work(ends: Sequence[Mapping[str, Any]], open_trace: OpenTrace) -> int | None:
    """Return how many entries the threads of each run have, taken together; None where they did not do the same.

    By whichever threads, in whatever order: a pool gives its work to the first that is free.
    """
    works = set()
    for run, end in enumerate(ends):
        count = total = 0
        for name in end.get("starts") or {}:
            for entry in open_trace(run, name) or ():
                count += 1
                total += weigh(describe_work(entry))
        works.add((count, total))
    if len(works) > 1:
        return None
    return works.pop()[0]


def _find_race(ends: Sequence[Mapping[str, Any]]) -> Race | None:
    """Return the first variable whose uses by threads came in another order."""
    for number, first in enumerate(ends[0].get("shared") or []):
        orders = []
        for end in ends:
            shared = end.get("shared") or []
            order = (
                shared[number]["order"]
                if number < len(shared) and shared[number]["name"] == first["name"]
                else None
            )
            orders.append(order)
        if len(set(orders)) > 1:
            place = Place(*first["place"]) if first["place"] is not None else None
            record = Record(0, 0, Operation(first["type"], first["name"], place, (), ()), (), ())
            return Race(record, number_results(orders), first["threads"])
    return None
