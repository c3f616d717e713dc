"""What other Python threads did in runs that differ: each thread's trace compared with its like, and who used what.

Pure: what the tracer wrote in, values out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.divergence.comparison import Comparison, Difference, Entry, compare, done
from envlock.divergence.trace import Operation, Place, Record

EXPLAINED = ("operation", "data", "outside", "sequence")
OWN = ""
"""Stands for the thread that the run's own trace is of."""
Open = Callable[[int, str], Iterable[Entry] | None]
"""Gives the trace of a run's thread, both by number; None where there is none."""


@dataclass(frozen=True)
class Race:
    """A variable that threads used in another order in each run, with where one of them changes it."""

    record: Record
    groups: tuple[int, ...]
    threads: int


@dataclass(frozen=True)
class Handed:
    """The operations of other threads that made a value which the run's own thread read.

    Attributes:
        sentence: which they are, and where.
        race: the variable that they changed, if that is how the value was handed over.
    """

    sentence: str
    race: Race | None = None


@dataclass(frozen=True)
class Seen:
    """What is known of other threads.

    Attributes:
        thread, comparison: the first thread in which an operation is the cause, and what it did.
        race: the variable that they race for.
        blind: why the difference can stand in a thread without being seen; None where it cannot.
    """

    thread: str | None = None
    comparison: Comparison | None = None
    race: Race | None = None
    blind: str | None = None


def examine(ends: Sequence[Mapping[str, Any]], trace_of: Open, before: int | None) -> Seen:
    """Return what other threads did that can explain a difference at entry `before` of the run's own trace.

    Threads that began after that only follow. None: the run's own trace has no difference.

    Args:
        ends: what the tracer said of each run.
        trace_of: gives the traces of threads.
        before: the number of the first entry that differs.
    """
    race = _race(ends)
    if race is not None:
        return Seen(race=race)
    blind = (
        "operations of more threads ran than were recorded"
        if any(each.get("elsewhere") for each in ends)
        else None
    )
    starts: list[Mapping[str, int]] = [each.get("starts") or {} for each in ends]
    if _is_same_work(starts, trace_of):  # by whichever threads, as a pool has them
        return Seen(blind=blind)
    if len({tuple(sorted(each)) for each in starts}) > 1:
        return Seen(
            blind=blind or "another number of threads ran TensorFlow operations in each run"
        )
    for name in sorted(starts[0], key=lambda each: [int(part) for part in each.split("-")]):
        if before is not None and starts[0][name] > before:
            continue
        found = compare([trace_of(number, name) or () for number in range(len(ends))])
        if found.first is None:
            continue
        pool = any(name in (each.get("pools") or ()) for each in ends)
        if _is_explained(found.first, alone=before is None) and not (
            pool and found.first.kind == "sequence"
        ):
            return Seen(name, found, blind=blind)
        blind = blind or f"thread {name} did something else in each run"
    return Seen(blind=blind)


def _is_explained(first: Difference, *, alone: bool) -> bool:
    """Return whether a thread's difference is a cause; what happens to a variable can be the work of another thread.

    `alone`: the run's own trace has no difference, so what a thread was given does not matter.
    """
    entry = first.entry
    known = isinstance(entry, Record) and entry.operation.inputs[:1] != ("resource[]",)
    return known and first.kind in (("operation",) if alone else EXPLAINED)


def handed(first: Difference, ends: Sequence[Mapping[str, Any]], trace_of: Open) -> Handed | None:
    """Return what made an input that differs, where operations of other threads did; None where that is not known."""
    if first.kind != "outside" or not first.inputs:
        return None
    made: list[tuple[str, Record]] = []
    for number, entry in enumerate(first.entries):
        found = _made(
            entry, first.inputs[0], [*(ends[number].get("starts") or {}), OWN], number, trace_of
        )
        if found is None:
            return None
        made.append(found)
    others = [(name, record) for name, record in made if name != OWN]
    if not others:
        return None
    record = others[0][1]
    if record.operation.inputs[:1] == ("resource[]",):
        return Handed("", Race(record, first.groups, len({name for name, _ in others}) + 1))
    places = [
        (each.operation.type, each.operation.place)
        for _, each in others
        if each.operation.place is not None
    ]
    where = ", ".join(
        dict.fromkeys(f"{kind} at {place.file}:{place.line}" for kind, place in places)
    )
    names = ", ".join(dict.fromkeys(name for name, _ in others))
    return Handed(f"the value that differs was made in other threads ({names}), by {where}")


def _made(
    entry: Entry | None, wanted: int, threads: Sequence[str], run: int, trace_of: Open
) -> tuple[str, Record] | None:
    """Return the thread and the operation that gave an input of an entry, the own thread's only for a variable."""
    if not isinstance(entry, Record) or wanted >= len(entry.inputs) or entry.inputs[wanted] is None:
        return None
    value = entry.inputs[wanted], entry.operation.inputs[wanted]
    for name in threads:
        for each in trace_of(run, name) or ():
            if not isinstance(each, Record) or (
                name == OWN and each.operation.inputs[:1] != ("resource[]",)
            ):
                continue
            if value in zip(each.outputs, each.operation.outputs, strict=False):
                return name, each
    return None


def _is_same_work(starts: Sequence[Mapping[str, int]], trace_of: Open) -> bool:
    """Return whether the threads of each run, taken together, did the same in whatever order."""
    sums = set()
    for number, names in enumerate(starts):
        entries = (entry for name in names for entry in trace_of(number, name) or ())
        sums.add(sum(hash(done(each)) for each in entries))
    return len(sums) == 1


def _race(ends: Sequence[Mapping[str, Any]]) -> Race | None:
    """Return the first variable whose uses by threads came in another order."""
    for number, first in enumerate(ends[0].get("shared") or []):
        alike = [(each.get("shared") or [])[number : number + 1] for each in ends]
        orders = [
            each[0]["order"] if each and each[0]["name"] == first["name"] else None
            for each in alike
        ]
        if len(set(orders)) > 1:
            known: dict[str | None, int] = {}
            groups = tuple(known.setdefault(order, len(known)) for order in orders)
            place = None if first["place"] is None else Place(*first["place"])
            record = Record(0, 0, Operation(first["type"], first["name"], place, (), ()), (), ())
            return Race(record, groups, first["threads"])
    return None
