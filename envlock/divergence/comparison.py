"""The first operation that gave something else, of the traces of several runs. Pure: entries in, values out.

All runs are read side by side. As long as everything is equal nothing is kept but the last few entries, so memory stays
flat however long the runs were.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal

from envlock.data.determinism import operation_groups
from envlock.divergence.trace import Place, Record, Value
from envlock.guest.tracing.names import MARK

Entry = Record | Value
Kind = Literal["operation", "data", "outside", "variable", "call", "quantity", "sequence"]

CALL = "Call"
_GROUPS = operation_groups()
DATA = _GROUPS["next_element"] | _GROUPS["opened"]
"""Operations that take the next element of a pipeline; a distributed one comes out of a graph, as an optional."""
COLLECTIVES = _GROUPS["collectives"]
PYTHON = _GROUPS["python"] | {"PythonFunction"}  # the last is the tracer's own
READS = _GROUPS["reads"]
_DIGITS = re.compile(r"\d+")
_HANDLES = ("resource", "variant")
BEFORE, AFTER, OTHERS = 8, 24, 10
"""How many entries are shown before and after the first difference, and how many other causes."""


@dataclass(frozen=True)
class Difference:
    """Entries that differ from run to run.

    Attributes:
        kind: `operation`: equal inputs, another result; `data`: another element of a pipeline; `outside`: the value
            came from Python, and not from an operation; `variable`: it holds something else than was last written;
            `call`: a graph gave something else; `quantity`: so did what the run shows; `sequence`: another operation.
        index: the number of the entry from the beginning of the run.
        entries: of each run; None where it was over.
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
        return next(each for each in self.entries if each is not None)


@dataclass(frozen=True)
class Line:
    """An entry near the first difference: `same`, `cause` (it differs by itself), or `carried` from what it read."""

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
        spread: whether something else differs because of a difference: another operation, a variable, a quantity.
        texts: whether only texts differ, such as names of files.
        reordered: whether all runs did the same, in another order, and showed the same.
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

    @property
    def idle(self) -> bool:
        """Whether something differs, and nothing that the runs show or compute from it does."""
        return self.first is not None and (
            self.reordered or (not self.spread and (self.shown > 0 or self.texts))
        )


def compare(traces: Sequence[Iterable[Entry]]) -> Comparison:
    """Return the first difference of runs that were made to do the same."""
    before: deque[Line] = deque(maxlen=BEFORE)
    after: list[Line] = []
    first: Difference | None = None
    others: dict[tuple[str, Place | None], Difference] = {}
    tainted: set[str | None] = set()
    work = _Work(len(traces))
    index, last, shown, spread, texts, over = -1, -1, 0, False, True, False
    for index, entries in enumerate(_abreast(traces)):
        found = _difference(index, entries)
        lead = next(each for each in entries if each is not None)
        last = max(last, lead.step)
        shown += isinstance(lead, Value)
        if first is not None or found is not None:
            work.take(entries)
        if over:
            continue
        if first is None and found is None:
            before.append(Line(index, "same", lead, 1))
            continue
        cause = first is None or (found is not None and _by_itself(found, tainted))
        if len(after) <= AFTER:
            after.append(_line(index, lead, found, cause=cause))
        if found is None:
            continue
        spread = spread or not _ends_here(found, cause=cause)
        texts = texts and _reads_texts(found)
        if first is None:
            first = found
        elif cause:
            _keep(others, found)
        if isinstance(lead, Record) and _on_variable(lead):
            tainted.add(lead.operation.name)
        over = found.kind == "sequence"  # what comes then is only asked whether all have done it
    kept = [each for key, each in others.items() if first is None or key != _key(first)]
    lines, also = (*before, *after), tuple(kept[:OTHERS])
    return Comparison(
        len(traces), index + 1, first, also, lines, last + 1, shown, spread, texts, work.is_same
    )


class _Work:
    """What each run did since the first difference, whatever the order; what it showed, in its order.

    The hash of a tuple is nearly linear in its items, so two sums of hashes agree too often; sums of cubes do not.
    """

    def __init__(self, runs: int) -> None:
        self._sums = [0] * runs
        self._shown = [0] * runs

    def take(self, entries: Sequence[Entry | None]) -> None:
        for run, entry in enumerate(entries):
            if isinstance(entry, Value):
                self._shown[run] += 1
                self._sums[run] += hash((self._shown[run], *done(entry))) ** 3
            elif entry is not None:
                self._sums[run] += hash(done(entry)) ** 3

    @property
    def is_same(self) -> bool:
        return len(set(self._sums)) == 1


def done(entry: Entry) -> tuple[object, ...]:
    """Return what an entry did, whenever that was."""
    if isinstance(entry, Record):
        return entry.operation.type, entry.operation.place, entry.inputs, entry.outputs
    return entry.name, entry.fingerprint


def _abreast(traces: Sequence[Iterable[Entry]]) -> Iterator[tuple[Entry | None, ...]]:
    return zip_longest(*traces)


def _keep(others: dict[tuple[str, Place | None], Difference], found: Difference) -> None:
    key = _key(found)
    if key not in others and len(others) <= OTHERS:
        others[key] = found


def _key(found: Difference) -> tuple[str, Place | None]:
    entry = found.entry
    return (
        (entry.operation.type, entry.operation.place)
        if isinstance(entry, Record)
        else (entry.name, None)
    )


def _line(index: int, lead: Entry, found: Difference | None, *, cause: bool) -> Line:
    if found is None:
        return Line(index, "same", lead, 1)
    return Line(index, "cause" if cause else "carried", lead, found.distinct)


def _by_itself(found: Difference, tainted: set[str | None]) -> bool:
    """Return whether a later difference does not follow from an earlier one."""
    if found.kind not in ("operation", "data") or not isinstance(found.entry, Record):
        return False
    read = zip(found.entry.inputs, found.entry.operation.inputs, strict=False)
    if any(print_ is None and not spec.startswith(_HANDLES) for print_, spec in read):
        return False  # inside of a graph not all is looked at
    return not (_on_variable(found.entry) and found.entry.operation.name in tainted)


def _ends_here(found: Difference, *, cause: bool) -> bool:
    """Return whether nothing comes of a difference: results that may not be read, equal results, or other texts."""
    records = [each for each in found.entries if isinstance(each, Record)]
    if found.kind == "sequence" or len(records) < len(found.entries) or _on_variable(records[0]):
        return False
    if found.kind == "operation" and cause:
        return True
    texts = _reads_texts(found)
    given = [each.outputs for each in records]
    same = [
        number for number, values in enumerate(zip(*given, strict=False)) if len(set(values)) == 1
    ]
    rest = [number for number in range(len(given[0])) if number not in same]
    if rest and not texts:
        return False
    return all(_is_text(records[0].operation.outputs, number) for number in rest) and (
        texts or bool(same or rest)
    )


def _reads_texts(found: Difference) -> bool:
    """Return whether an operation reads nothing else that differs than texts."""
    entry = found.entry
    read = isinstance(entry, Record) and all(
        _is_text(entry.operation.inputs, number) for number in found.inputs
    )
    return read and found.kind == "outside"


def _is_text(specs: Sequence[str], number: int) -> bool:
    return number < len(specs) and specs[number].startswith("string")


def _on_variable(record: Record) -> bool:
    return record.operation.inputs[:1] == ("resource[]",)


def _difference(index: int, entries: tuple[Entry | None, ...]) -> Difference | None:
    """Return in what the entries at one place differ."""
    present = [each for each in entries if each is not None]
    if len(present) < len(entries) or len({_what(each) for each in present}) > 1:
        groups = _groups([None if each is None else _what(each) for each in entries])
        return Difference("sequence", index, entries, groups)
    lead = present[0]
    if isinstance(lead, Value):
        prints = [(each.fingerprint, each.spec) for each in present if isinstance(each, Value)]
        return (
            Difference("quantity", index, entries, _groups(prints))
            if len(set(prints)) > 1
            else None
        )
    records = [each for each in present if isinstance(each, Record)]
    return _of_records(index, lead, records)


def _what(entry: Entry) -> object:
    """Return what has to be equal in runs that do the same: of names without the numbers, which count models."""
    if isinstance(entry, Value):
        return "value"
    kind, name, place = entry.operation[:3]
    return kind, place, _DIGITS.sub("", name) if name and kind in READS else None


def _of_records(index: int, lead: Record, records: list[Record]) -> Difference | None:
    inputs = [(each.inputs, each.operation.inputs) for each in records]
    outputs = [(each.outputs, each.operation.outputs) for each in records]
    if len(set(inputs)) == 1 and len(set(outputs)) == 1:
        return None
    groups = _groups(outputs)
    fallen = len({*zip(inputs, outputs, strict=True)}) > len(
        set(inputs)
    )  # equal inputs, several results
    whole: tuple[Entry | None, ...] = tuple(records)
    named = tuple(n for n, spec in enumerate(lead.operation.inputs) if spec.endswith(MARK))
    if fallen and named:  # of which only the steady part is compared
        return Difference("outside", index, whole, groups, named)
    if fallen:
        return Difference(_kind(lead), index, whole, groups)
    differing = tuple(
        n for n in range(len(lead.inputs)) if len({_at(each, n) for each in records}) > 1
    )
    return Difference(
        "outside", index, whole, groups if len(set(outputs)) > 1 else _groups(inputs), differing
    )


def _kind(lead: Record) -> Kind:
    kind = lead.operation.type
    if kind in DATA:
        return "data"
    if kind in PYTHON:
        return "outside"
    if kind == CALL:
        return "call"
    return "variable" if kind in READS else "operation"


def _at(record: Record, number: int) -> object:
    if number >= len(record.inputs):
        return None
    return record.inputs[number], record.operation.inputs[number]


def _groups(results: Sequence[object]) -> tuple[int, ...]:
    """Return numbers for results, the same for equal ones, in the order in which they come."""
    known: dict[object, int] = {}
    return tuple(known.setdefault(each, len(known)) for each in results)


@dataclass(frozen=True)
class Origin:
    """Where an input came from: the last entry before that gave or wrote it, None where Python made it."""

    input: int
    spec: str
    made_by: Record | None

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        made_by = None
        if self.made_by is not None:
            made_by = self.made_by.to_json()
        return {"input": self.input, "spec": self.spec, "made_by": made_by}


def origins(trace: Iterable[Entry], difference: Difference) -> tuple[Origin, ...]:
    """Return where each input of the first difference came from, in the run whose trace is given."""
    entry = difference.entry
    if not isinstance(entry, Record):
        return ()
    found = [Origin(n, spec, None) for n, spec in enumerate(entry.operation.inputs)]
    for number, each in enumerate(trace):
        if number >= difference.index:
            break
        if isinstance(each, Record):
            found = [
                replace(one, made_by=each) if _made(each, entry, one) else one for one in found
            ]
    return tuple(found)


def _made(earlier: Record, entry: Record, origin: Origin) -> bool:
    wanted = entry.inputs[origin.input] if origin.input < len(entry.inputs) else None
    if wanted is None:  # a variable: who wrote it last
        return (
            earlier.operation.name == entry.operation.name is not None
            and earlier.operation.type not in READS
        )
    return any(
        p == wanted and s == origin.spec
        for p, s in zip(earlier.outputs, earlier.operation.outputs, strict=False)
    )
