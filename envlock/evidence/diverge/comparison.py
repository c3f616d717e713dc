"""The first operation that gave another result, from the traces of several runs. Pure.

All runs are read side by side. As long as everything is equal only the last few entries are kept, so
memory stays flat however long the runs were.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Literal

from envlock.data.determinism import load_operation_groups
from envlock.evidence.diverge.trace import Place, Record, Value
from envlock.guest.tracing.temporary_names import MARK

Entry = Record | Value
Kind = Literal["operation", "data", "outside", "variable", "call", "quantity", "sequence"]

CALL = "Call"
"""The type of an entry that is a graph as a whole."""
VARIABLE = "resource[]"
"""The spec of an input that is a variable."""
_GROUPS = load_operation_groups()
DATA = _GROUPS["next_element"] | _GROUPS["opened"]
"""Operations that take the next element of a pipeline; a distributed one leaves a graph as an optional."""
COLLECTIVES = _GROUPS["collectives"]
# "PythonFunction" is the tracer's own word.
PYTHON = _GROUPS["python"] | {"PythonFunction"}
READS = _GROUPS["reads"]
_DIGITS = re.compile(r"\d+")
_HANDLES = ("resource", "variant")
BEFORE, AFTER, OTHERS = 8, 24, 10
"""How many entries are shown before and after the first difference, and how many other causes."""


@dataclass(frozen=True)
class Difference:
    """Entries that differ from run to run.

    Attributes:
        kind: `operation`: equal inputs, another result; `data`: another element of a pipeline;
            `outside`: the value came from Python, and not from an operation; `variable`: it does
            not hold the value that was last written; `call`: a graph gave another result;
            `quantity`: a value that the run shows differs; `sequence`: another operation ran.
        index: the number of the entry from the beginning of the run.
        entries: of each run; None where it had ended.
        groups: of each run the number of its result: equal numbers, equal results.
        inputs: the numbers of the inputs that differ.
    """

    kind: Kind
    index: int
    entries: tuple[Entry | None, ...]
    groups: tuple[int, ...]
    inputs: tuple[int, ...] = ()

    @property
    def distinct(self) -> int:
        """How many different results there are."""
        return len(set(self.groups))

    @property
    def entry(self) -> Entry:
        """What the first run has there, or the first that has something."""
        return _find_lead(self.entries)


@dataclass(frozen=True)
class Line:
    """An entry near the first difference: `same`, `cause`, or `carried` from its inputs."""

    index: int
    state: Literal["same", "cause", "carried"]
    entry: Entry
    distinct: int

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        document = {"number": self.index, "state": self.state, "distinct": self.distinct}
        return {**document, **self.entry.to_json()}


@dataclass(frozen=True)
class Comparison:
    """What reading the runs side by side gave.

    Attributes:
        runs: how many there are.
        entries: how many were compared.
        first: the first difference, or None where all is equal.
        others: later ones that do not follow from it.
        timeline: what happened around the first difference.
        steps: how many steps the first run has.
        shown: how many quantities were compared.
        spread: whether another operation, a variable or a quantity differs because of a difference.
        texts: whether only texts differ, such as names of files.
        reordered: whether all runs did the same, in another order, and showed the same.
        last: the number of the last entry that differs; None where none does, or where runs do other
            things from one on.
    """

    runs: int
    entries: int
    first: Difference | None
    others: tuple[Difference, ...] = ()
    timeline: tuple[Line, ...] = ()
    steps: int = 0
    shown: int = 0
    spread: bool = False
    texts: bool = True
    reordered: bool = False
    last: int | None = None

    @property
    def idle(self) -> bool:
        """Whether something differs, and nothing that the runs show or compute from it does."""
        if self.first is None:
            return False
        if self.reordered:
            return True
        # Runs that show no quantity have nothing by which to tell, unless only texts differ.
        return not self.spread and (self.shown > 0 or self.texts)


def compare(traces: Sequence[Iterable[Entry]]) -> Comparison:
    """Return the first difference of runs that were made to do the same."""
    reader = _Reader(len(traces))
    for index, entries in enumerate(zip_longest(*traces)):
        reader.take(index, entries)
    return reader.finish()


class _Reader:
    """Takes the entries of all runs side by side, and keeps what is worth showing."""

    def __init__(self, runs: int) -> None:
        self._runs = runs
        self._before: deque[Line] = deque(maxlen=BEFORE)
        self._after: list[Line] = []
        self._first: Difference | None = None
        self._others: dict[tuple[str, Place | None], Difference] = {}
        self._tainted: set[str | None] = set()
        self._work = _Work(runs)
        self._entries = 0
        self._last_step = -1
        self._shown = 0
        self._spread = False
        self._texts = True
        self._is_over = False
        self._last: int | None = None

    def take(self, index: int, entries: tuple[Entry | None, ...]) -> None:
        """Take the entries of all runs at one place; None where a run has ended."""
        lead = _find_lead(entries)
        self._entries = index + 1
        self._last_step = max(self._last_step, lead.step)
        if isinstance(lead, Value):
            self._shown += 1
        found = _find_difference(index, entries)
        if self._first is None and found is None:
            self._before.append(Line(index, "same", lead, 1))
            return
        self._work.take(entries)
        if not self._is_over:
            self._keep(index, lead, found)

    def _keep(self, index: int, lead: Entry, found: Difference | None) -> None:
        """Keep an entry after the first difference, or that itself."""
        is_cause = self._first is None or (
            found is not None and _is_independent(found, self._tainted)
        )
        if len(self._after) <= AFTER:
            self._after.append(_make_line(index, lead, found, is_cause=is_cause))
        if found is None:
            return
        self._last = index
        self._spread = self._spread or not _ends_here(found, is_cause=is_cause)
        self._texts = self._texts and _has_other_texts_only(found)
        if self._first is None:
            self._first = found
        elif is_cause and len(self._others) <= OTHERS:
            self._others.setdefault(_make_key(found), found)
        if isinstance(lead, Record) and is_on_variable(lead):
            self._tainted.add(lead.operation.name)
        # Entries at one place then have nothing to do with each other: only `_work` is still compared.
        self._is_over = found.kind == "sequence"

    def finish(self) -> Comparison:
        """Return what was kept."""
        if self._first is not None:
            self._others.pop(_make_key(self._first), None)
        last = None if self._is_over else self._last
        return Comparison(
            runs=self._runs,
            entries=self._entries,
            first=self._first,
            others=tuple(self._others.values())[:OTHERS],
            timeline=(*self._before, *self._after),
            steps=self._last_step + 1,
            shown=self._shown,
            spread=self._spread,
            texts=self._texts,
            reordered=self._work.is_same,
            last=last,
        )


class _Work:
    """What each run did since the first difference, in any order; what it showed, in its order."""

    def __init__(self, runs: int) -> None:
        self._sums = [0] * runs
        self._shown = [0] * runs

    def take(self, entries: Sequence[Entry | None]) -> None:
        for run, entry in enumerate(entries):
            if isinstance(entry, Value):
                self._shown[run] += 1
                self._sums[run] += weigh((self._shown[run], *describe_work(entry)))
            elif entry is not None:
                self._sums[run] += weigh(describe_work(entry))

    @property
    def is_same(self) -> bool:
        return len(set(self._sums)) == 1


def describe_work(entry: Entry) -> tuple[object, ...]:
    """Return what an entry did, whenever that was."""
    if isinstance(entry, Record):
        return entry.operation.type, entry.operation.place, entry.inputs, entry.outputs
    return entry.name, entry.fingerprint


def weigh(work: tuple[object, ...]) -> int:
    """Return a number whose sum tells what was done in any order.

    The hash of a tuple is nearly linear in its items, so that two sums of hashes agree too often; sums of
    cubes do not.
    """
    return hash(work) ** 3


def is_on_variable(record: Record) -> bool:
    """Return whether an operation reads or changes a variable."""
    return record.operation.inputs[:1] == (VARIABLE,)


def _find_lead(entries: Iterable[Entry | None]) -> Entry:
    """Return the entry of the first run that has one."""
    return next(entry for entry in entries if entry is not None)


def _make_key(found: Difference) -> tuple[str, Place | None]:
    entry = found.entry
    if isinstance(entry, Record):
        return entry.operation.type, entry.operation.place
    return entry.name, None


def _make_line(index: int, lead: Entry, found: Difference | None, *, is_cause: bool) -> Line:
    if found is None:
        return Line(index, "same", lead, 1)
    if is_cause:
        return Line(index, "cause", lead, found.distinct)
    return Line(index, "carried", lead, found.distinct)


def _is_independent(found: Difference, tainted: set[str | None]) -> bool:
    """Return whether a later difference does not follow from an earlier one.

    `tainted` are the names of variables that differ already.
    """
    entry = found.entry
    if found.kind not in ("operation", "data") or not isinstance(entry, Record):
        return False
    # An optional has no fingerprint. It can hold what a graph computed, such as the losses of `Model.fit`.
    if entry.operation.type in _GROUPS["opened"]:
        return False
    for fingerprint, spec in zip(entry.inputs, entry.operation.inputs, strict=False):
        # Inside a graph not every value has a fingerprint: an input without one can differ.
        if fingerprint is None and not spec.startswith(_HANDLES):
            return False
    return not (is_on_variable(entry) and entry.operation.name in tainted)


def _ends_here(found: Difference, *, is_cause: bool) -> bool:
    """Return whether no result follows from a difference that another entry can read."""
    records = [entry for entry in found.entries if isinstance(entry, Record)]
    if found.kind == "sequence" or len(records) < len(found.entries) or is_on_variable(records[0]):
        return False
    # Whether its result is read shows at the entries that read it.
    if found.kind == "operation" and is_cause:
        return True
    outputs = [record.outputs for record in records]
    columns = enumerate(zip(*outputs, strict=False))
    equal = {number for number, values in columns if len(set(values)) == 1}
    differing = set(range(len(outputs[0]))) - equal
    if not _has_other_texts_only(found):
        return bool(equal) and not differing
    specs = records[0].operation.outputs
    return all(_is_text(specs, number) for number in differing)


def _has_other_texts_only(found: Difference) -> bool:
    """Return whether only texts from outside differ, such as names of files."""
    entry = found.entry
    if found.kind != "outside" or not isinstance(entry, Record):
        return False
    return all(_is_text(entry.operation.inputs, number) for number in found.inputs)


def _is_text(specs: Sequence[str], number: int) -> bool:
    return number < len(specs) and specs[number].startswith("string")


def _find_difference(index: int, entries: tuple[Entry | None, ...]) -> Difference | None:
    """Return in what the entries at one place differ; None where they are equal."""
    identities = [_identify(entry) for entry in entries]
    if None in entries or len(set(identities)) > 1:
        return Difference("sequence", index, entries, number_results(identities))
    records = [entry for entry in entries if isinstance(entry, Record)]
    if records:
        return _compare_records(index, records)
    values = [(entry.fingerprint, entry.spec) for entry in entries if isinstance(entry, Value)]
    if len(set(values)) == 1:
        return None
    return Difference("quantity", index, entries, number_results(values))


def _identify(entry: Entry | None) -> object:
    """Return what has to be equal in runs that do the same: names without numbers, which count models."""
    if entry is None:
        return None
    if isinstance(entry, Value):
        return "value"
    operation = entry.operation
    name = _DIGITS.sub("", operation.name) if operation.name and operation.type in READS else None
    return operation.type, operation.place, name


def _compare_records(index: int, records: list[Record]) -> Difference | None:
    lead = records[0]
    inputs = [(record.inputs, record.operation.inputs) for record in records]
    outputs = [(record.outputs, record.operation.outputs) for record in records]
    if len(set(inputs)) == 1 and len(set(outputs)) == 1:
        return None
    entries: tuple[Entry | None, ...] = tuple(records)
    groups = number_results(outputs)
    # The trace has the seeds of a random operation as its name: others came from outside.
    if len({record.operation.name for record in records if _is_seeded(record)}) > 1:
        return Difference("outside", index, entries, groups)
    # Equal inputs gave several results.
    is_cause = len(set(zip(inputs, outputs, strict=True))) > len(set(inputs))
    if is_cause:
        # Of such an input only the part is compared that does not change from process to process.
        names = tuple(n for n, spec in enumerate(lead.operation.inputs) if spec.endswith(MARK))
        if names:
            return Difference("outside", index, entries, groups, names)
        return Difference(_find_kind(lead), index, entries, groups)
    if len(set(outputs)) == 1:
        groups = number_results(inputs)
    numbers = range(len(lead.inputs))
    differing = tuple(number for number in numbers if _has_other_input(records, number))
    return Difference("outside", index, entries, groups, differing)


def _is_seeded(record: Record) -> bool:
    return (record.operation.name or "").startswith("seed=")


def _find_kind(lead: Record) -> Kind:
    kind = lead.operation.type
    if kind in DATA:
        return "data"
    if kind in PYTHON:
        return "outside"
    if kind == CALL:
        return "call"
    if kind in READS:
        return "variable"
    return "operation"


def _has_other_input(records: Iterable[Record], number: int) -> bool:
    """Return whether an input is not the same in all records."""
    inputs: set[object] = set()
    for record in records:
        value: object = None
        if number < len(record.inputs):
            value = record.inputs[number], record.operation.inputs[number]
        inputs.add(value)
    return len(inputs) > 1


def number_results(results: Sequence[object]) -> tuple[int, ...]:
    """Return numbers for results, the same for equal ones, in the order in which they come."""
    known: dict[object, int] = {}
    return tuple(known.setdefault(result, len(known)) for result in results)


@dataclass(frozen=True)
class Origin:
    """Where an input came from: the last entry that gave or wrote it; None where Python made it."""

    input: int
    spec: str
    made_by: Record | None

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        made_by = self.made_by.to_json() if self.made_by is not None else None
        return {"input": self.input, "spec": self.spec, "made_by": made_by}


def find_origins(trace: Iterable[Entry], difference: Difference) -> tuple[Origin, ...]:
    """Return where each input of the first difference came from, in the run of a trace."""
    entry = difference.entry
    if not isinstance(entry, Record):
        return ()
    origins = [Origin(n, spec, None) for n, spec in enumerate(entry.operation.inputs)]
    for earlier in islice(trace, difference.index):
        if not isinstance(earlier, Record):
            continue
        for number, origin in enumerate(origins):
            if _has_made(earlier, entry, origin):
                origins[number] = replace(origin, made_by=earlier)
    return tuple(origins)


def _has_made(earlier: Record, entry: Record, origin: Origin) -> bool:
    wanted = entry.inputs[origin.input] if origin.input < len(entry.inputs) else None
    if wanted is not None:
        made = zip(earlier.outputs, earlier.operation.outputs, strict=False)
        return (wanted, origin.spec) in made
    # A variable has no fingerprint: what wrote it last made it.
    name = entry.operation.name
    return (
        name is not None and earlier.operation.name == name and earlier.operation.type not in READS
    )
