"""The first operation that gave other bits in another environment, of two traces."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from envlock.divergence.comparison import CALL
from envlock.divergence.trace import Header, Record, Scalar, Trace, Value, read
from envlock.divergence.verdict import render_entry
from envlock.runtime.errors import UsageError
from envlock.runtime.report import ERROR, WARNING, Finding, Report, clean
from envlock.runtime.where import Where

Entry = Record | Value
Key = tuple[str, str | None, int | None]
Kind = Literal["operation", "carried", "value"]

STEP_LIMIT = 100_000
"""Entries of a step that are looked at together: what a longer step has goes on in the next portion."""
MATCHED_LIMIT = 300_000
"""Pairs of entries that are alike: where there are more, the first of a kind goes with the first, the second with the
second, which takes no time."""
OTHERS = 10


@dataclass(frozen=True)
class Pair:
    """Entries of the two traces that belong together and differ.

    `kind` is `operation` where all inputs that are known are equal, `carried` where an input differs as well, and
    `value` for a quantity that the run shows. `known` says how many of the inputs are known.
    """

    kind: Kind
    a: Entry
    b: Entry
    known: int = 0


@dataclass
class Across:
    """What reading two traces side by side gave.

    Attributes:
        first: the first pair with equal inputs and other results; None where there is none.
        earliest: the first pair that differs at all, when that is another one: what it read came from nowhere seen.
        others: later operations of another type or line that differ although their inputs are equal.
        compared: how many pairs were compared; `alone`: how many entries of A and of B go with none.
        steps: how many steps both have; `longer`: which of them has more, if one has.
    """

    first: Pair | None = None
    earliest: Pair | None = None
    others: list[Pair] = field(default_factory=list)
    compared: int = 0
    alone: list[int] = field(default_factory=lambda: [0, 0])
    steps: int = 0
    longer: Literal["A", "B"] | None = None

    @property
    def same(self) -> bool:
        """Whether everything that was compared is equal, and something was."""
        return (
            self.earliest is None
            and self.first is None
            and self.compared > 0
            and self.longer is None
        )

    @property
    def aligned(self) -> float:
        """Which part of the entries of both goes together, from 0 to 1."""
        return 2 * self.compared / max(2 * self.compared + sum(self.alone), 1)


def compare(a: Iterable[Entry], b: Iterable[Entry]) -> Across:
    """Return the first operation that differs between two traces, and how much could be compared."""
    found = Across()
    seen: set[object] = set()
    for left, right in zip_longest(_portions(a), _portions(b)):
        if left is None or right is None:
            found.longer = "A" if right is None else "B"
            break
        found.steps = max(found.steps, left[0].step + 1)
        pairs = align([key(each) for each in left], [key(each) for each in right])
        found.compared += len(pairs)
        found.alone[0] += len(left) - len(pairs)
        found.alone[1] += len(right) - len(pairs)
        for i, j in pairs:
            _note(found, difference(left[i], right[j]), seen)
    return found


def _note(found: Across, pair: Pair | None, seen: set[object]) -> None:
    if pair is None:
        return
    if pair.kind == "operation":
        if found.first is None:
            found.first = pair
            seen.add(key(pair.a))
        elif key(pair.a) not in seen and not _is_call(pair.a) and len(found.others) < OTHERS:
            seen.add(key(pair.a))
            found.others.append(pair)
    elif found.first is None and found.earliest is None:
        found.earliest = pair


def _is_call(entry: Entry) -> bool:
    """Return whether this is a graph as a whole: what is inside of it stands before it."""
    return isinstance(entry, Record) and entry.operation.type == CALL


def difference(a: Entry, b: Entry) -> Pair | None:
    """Return in what two entries differ that belong together; None where in nothing."""
    if isinstance(a, Value) or isinstance(b, Value):
        same = isinstance(a, Value) and isinstance(b, Value) and a.fingerprint == b.fingerprint
        return None if same else Pair("value", a, b)
    if a.outputs == b.outputs:
        return None
    inputs = [
        (x, y) for x, y in zip(a.inputs, b.inputs, strict=False) if x is not None and y is not None
    ]
    kind: Kind = "operation" if all(x == y for x, y in inputs) else "carried"
    return Pair(kind, a, b, len(inputs))


def key(entry: Entry) -> Key:
    """Return what entries of two environments share that belong together."""
    if isinstance(entry, Value):
        return f"value {entry.name}", None, None
    place = entry.operation.place
    return entry.operation.type, place and place.file, place and place.line


def align(a: Sequence[Key], b: Sequence[Key]) -> Sequence[tuple[int, int]]:
    """Return which entries go together, in order."""
    if a == b:
        return [(number, number) for number in range(len(a))]
    return _aligned(tuple(a), tuple(b))


@lru_cache(maxsize=4)  # the steps of a training are alike
def _aligned(a: tuple[Key, ...], b: tuple[Key, ...]) -> tuple[tuple[int, int], ...]:
    counts = Counter(b)
    if sum(counts[each] for each in a) <= MATCHED_LIMIT:
        blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
        return tuple((block.a + n, block.b + n) for block in blocks for n in range(block.size))
    places: dict[Key, list[int]] = {}
    for number, each in enumerate(b):
        places.setdefault(each, []).append(number)
    queues = {each: iter(numbers) for each, numbers in places.items()}
    found = [(i, next(queues[each], None)) for i, each in enumerate(a) if each in queues]
    return tuple(_rising((i, j) for i, j in found if j is not None))


def _rising(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return as many of the pairs as are in the order of both sides: a longest rising subsequence."""
    tops: list[int] = []
    at: list[int] = []
    before: list[int] = []
    listed = list(pairs)
    for number, (_, j) in enumerate(listed):
        place = bisect_left(tops, j)
        before.append(at[place - 1] if place else -1)
        tops[place : place + 1] = [j]
        at[place : place + 1] = [number]
    found = []
    number = at[-1] if at else -1
    while number >= 0:
        found.append(listed[number])
        number = before[number]
    return found[::-1]


def _portions(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Yield the entries of each step, or of a part of it that is no longer than the limit."""
    portion: list[Entry] = []
    for each in entries:
        if portion and (each.step != portion[0].step or len(portion) >= STEP_LIMIT):
            yield portion
            portion = []
        portion.append(each)
    if portion:
        yield portion


ALIGNED = 0.5
"""Traces of which less goes together are not of the same program, or not comparably run."""
SOURCE = "docs/reference/diverge.md"
WHY = "Another version, device or instruction set computes this operation with another kernel, or in another order."
FIX = "Make the conditions that differ equal; `envlock verify` says how."
TITLES = {
    "operation": "an operation gave different bits from equal inputs",
    "carried": "a value from outside the traced operations differs",
    "longer": "one run has more steps",
    "not-comparable": "the runs ran different operations",
}
_IGNORED = ("made_by", "elsewhere", "unseen", "system.kernel_release", "python.compiler")
"""Conditions that are no cause of other bits."""


def report(a: str, b: str) -> Report:
    """Return what the traces in two files show.

    Raises:
        TraceError: one of them cannot be read, or is damaged.
        UsageError: they cannot be compared: one ran eagerly, say.
    """
    with read(Path(a)) as left, read(Path(b)) as right:
        _check(left.header, right.header)
        across = compare(left, right)
        names = [_name("A", a, left.header), _name("B", b, right.header)]
        answer = "the same bits" if across.same else "different bits"
        return Report(
            _findings(across),
            command="diverge compare",
            headline=f"{answer if across.aligned >= ALIGNED else 'not comparable'}: {' and '.join(names)}",
            titles=TITLES,
            attachments=_attachments(across, _differing(left, right)),
            breaking=(ERROR,),
        )


def _findings(across: Across) -> Iterator[Finding]:
    first, earliest = across.first, across.earliest
    if across.aligned < ALIGNED:
        yield _finding(
            "not-comparable",
            "the traces cannot be aligned: the runs ran different operations, or at different lines",
        )
        return
    if first is not None:
        said = "is the first operation that gave different bits from equal inputs"
        yield _finding("operation", f"{_called(first)} {said}", first)
    elif earliest is not None:
        said = "differs first, and so does its input, which came from outside the traced operations"
        yield _finding("carried", f"{_called(earliest)} {said}", earliest)
    elif across.longer is not None:
        yield _finding(
            "longer",
            f"they are equal up to the end of the shorter one; {across.longer} has more steps",
        )
    for each in across.others:
        message = (
            f"also different, with equal inputs: {_called(each)}{_at(each)}, step {each.a.step}"
        )
        yield _finding("operation", message, each, severity=WARNING)


def _finding(rule: str, message: str, pair: Pair | None = None, severity: str = ERROR) -> Finding:
    where = Where(operation="the traces" if pair is None else _called(pair))
    place = pair.a.operation.place if pair is not None and isinstance(pair.a, Record) else None
    if place is not None:
        where.file, where.line, where.function = place.file, place.line, place.function
    return Finding(rule, severity, where, message, WHY, FIX, SOURCE)


def _attachments(across: Across, conditions: Mapping[str, tuple[Scalar, Scalar]]) -> dict[str, Any]:
    return {
        "comparable": across.aligned >= ALIGNED,
        "first": _pair_json(across.first),
        "earliest": _pair_json(across.earliest),
        "others": [_pair_json(each) for each in across.others],
        "compared": across.compared,
        "alone": list(across.alone),
        "steps": across.steps,
        "longer": across.longer,
        "conditions": {name: list(values) for name, values in conditions.items()},
    }


def _check(a: Header, b: Header) -> None:
    if (a.mode, a.fingerprint) == (b.mode, b.fingerprint):
        return
    how = {"eager": "eagerly, operation by operation", "graph": "in graphs"}
    ways = (
        (f"A ran {how[a.mode]}, B ran {how[b.mode]}")
        if a.mode != b.mode
        else "their fingerprints are of different kinds"
    )
    raise UsageError(
        f"the traces cannot be compared: {ways}",
        hint="record both with `--in-graph`, or both without",
    )


def _differing(a: Trace, b: Trace) -> dict[str, tuple[Scalar, Scalar]]:
    left, right = _conditions(a), _conditions(b)
    names = sorted({*left, *right} - {*_IGNORED})
    return {
        name: (left.get(name), right.get(name))
        for name in names
        if left.get(name) != right.get(name)
    }


def _conditions(trace: Trace) -> dict[str, Scalar]:
    header = trace.header
    versions = {"tensorflow.version": header.tensorflow, "python.version": header.python}
    keras = {"keras.version": header.keras} if header.keras is not None else {}
    return {**header.conditions, **versions, **keras, **(trace.end or {})}


def _name(letter: str, path: str, header: Header) -> str:
    return f"{letter} {clean(path)} (TensorFlow {clean(header.tensorflow)})"


def _called(pair: Pair) -> str:
    entry = pair.a
    return clean(entry.operation.type if isinstance(entry, Record) else entry.name)


def _at(pair: Pair) -> str:
    place = pair.a.operation.place if isinstance(pair.a, Record) else None
    return f" at {clean(place.file)}:{place.line}" if place else ""


def _pair_json(pair: Pair | None) -> dict[str, Any] | None:
    if pair is None:
        return None
    return {
        "kind": pair.kind,
        "inputs_known": pair.known,
        "a": render_entry(pair.a),
        "b": render_entry(pair.b),
    }
