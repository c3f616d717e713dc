"""The first operation that gave other bits in another environment, of two traces."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from envlock.evidence.diverge.comparison import CALL, READS, is_on_variable
from envlock.evidence.diverge.known_causes import look_up, read_row
from envlock.evidence.diverge.trace import Header, Record, Scalar, Trace, Value, read
from envlock.runtime.errors import UsageError
from envlock.runtime.extent import Extent
from envlock.runtime.finding_place import Where
from envlock.runtime.report import (
    ERROR,
    UNKNOWN,
    WARNING,
    Evidence,
    Finding,
    Report,
    Severity,
    clean,
    join_first,
)

Entry = Record | Value
Key = tuple[str, str | None, int | None]
Kind = Literal["operation", "carried", "variable", "value"]

_PLAIN = {CALL, "Placeholder", "Const", "Identity", "NoOp"}
"""Operations of graphs that hand on what they get."""
_NUMBER = re.compile(r"_\d+(?=/|:|$)|:\d+$")
"""What counts the objects of one name in a process, and the output of a node."""
STEP_LIMIT = 100_000
"""Entries of a step that are looked at together: a longer step goes on in the next portion."""
MATCHED_LIMIT = 300_000
"""Pairs of entries with one key. Where there are more, the first of a key goes with the first, the second
with the second, which takes no time."""
OTHERS = 10
"""Later causes that are listed."""


@dataclass(frozen=True)
class Pair:
    """Entries of the two traces that belong together and differ.

    Attributes:
        kind: `operation` where all known inputs are equal, `carried` where an input differs as well,
            `variable` for a variable that holds other values, and `value` for a quantity that the run shows.
        known: how many of the inputs have a fingerprint on both sides.
    """

    kind: Kind
    a: Entry
    b: Entry
    known: int = 0

    @property
    def operations(self) -> tuple[Record, Record] | None:
        """Both as operations; None for quantities."""
        if isinstance(self.a, Record) and isinstance(self.b, Record):
            return self.a, self.b
        return None

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        sides = {"a": self.a.to_json(), "b": self.b.to_json()}
        return {"kind": self.kind, "inputs_known": self.known, **sides}


@dataclass(frozen=True)
class Parting:
    """Operations at one place that only one of the runs has: each computes something in its own way.

    Attributes:
        a, b: the entries of each side, in their order.
    """

    a: tuple[Entry, ...]
    b: tuple[Entry, ...]

    @property
    def lead(self) -> Entry:
        """The entry that gives the place."""
        entries = (*self.a, *self.b)
        return next((entry for entry in entries if entry.place is not None), entries[0])

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {"a": list(map(_name_entry, self.a)), "b": list(map(_name_entry, self.b))}


@dataclass
class Across:
    """The result of reading two traces side by side.

    Attributes:
        first: the first pair with equal inputs and other results; None if there is no such pair.
        earliest: the first pair that differs at all, if that is another one; nothing traced made
            its input.
        others: later causes of another type or line.
        parting: the last operations before the first difference that only one side has.
        compared: how many pairs were compared.
        alone: how many entries of A and of B have no counterpart.
        steps: how many steps both have; `longer`: which of them has more, if one has.
    """

    first: Pair | None = None
    earliest: Pair | None = None
    others: list[Pair] = field(default_factory=list)
    parting: Parting | None = None
    compared: int = 0
    alone: list[int] = field(default_factory=lambda: [0, 0])
    steps: int = 0
    longer: Literal["A", "B"] | None = None

    @property
    def same(self) -> bool:
        """Whether everything that was compared is equal, and something was."""
        if self.earliest is not None or self.first is not None:
            return False
        return self.compared > 0 and self.longer is None

    @property
    def share(self) -> float:
        """Which share of the entries of both has a counterpart, from 0 to 1."""
        paired = 2 * self.compared
        return paired / max(paired + sum(self.alone), 1)

    @property
    def comparable(self) -> bool:
        """Whether enough entries of both have a counterpart for a verdict."""
        return self.share >= ALIGNED


@dataclass(frozen=True)
class TracesEvidence(Evidence):
    """What `envlock diverge compare` attaches: `conditions` are those that differ, of A and of B."""

    comparable: bool
    first: Pair | None
    earliest: Pair | None
    others: tuple[Pair, ...]
    parting: Parting | None
    compared: int
    alone: tuple[int, int]
    steps: int
    longer: Literal["A", "B"] | None
    conditions: Mapping[str, tuple[Scalar, Scalar]]

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {
            "comparable": self.comparable,
            "first": _render_pair(self.first),
            "earliest": _render_pair(self.earliest),
            "others": [pair.to_json() for pair in self.others],
            "parting": None if self.parting is None else self.parting.to_json(),
            "compared": self.compared,
            "alone": list(self.alone),
            "steps": self.steps,
            "longer": self.longer,
            "conditions": {name: list(values) for name, values in self.conditions.items()},
        }


def _render_pair(pair: Pair | None) -> dict[str, object] | None:
    if pair is None:
        return None
    return pair.to_json()


def compare(a: Iterable[Entry], b: Iterable[Entry]) -> Across:
    """Return the first operation that differs between two traces, and how much was compared."""
    across = Across()
    causes: set[Key] = set()
    parting: Parting | None = None
    for left, right in zip_longest(_split_steps(a), _split_steps(b)):
        if right is None:
            across.longer = "A"
            break
        if left is None:
            across.longer = "B"
            break
        across.steps = max(across.steps, left[0].step + 1)
        pairs = match_entries(list(map(make_key, left)), list(map(make_key, right)))
        across.compared += len(pairs)
        across.alone[0] += len(left) - len(pairs)
        across.alone[1] += len(right) - len(pairs)
        before = (-1, -1)
        for i, j in pairs:
            parting = _choose_parting(parting, left[before[0] + 1 : i], right[before[1] + 1 : j])
            before = (i, j)
            pair = find_difference(left[i], right[j])
            if pair is not None:
                if across.first is None and across.earliest is None:
                    across.parting = parting
                _add_pair(across, pair, causes)
        parting = _choose_parting(parting, left[before[0] + 1 :], right[before[1] + 1 :])
    return across


def _choose_parting(
    known: Parting | None, a: Sequence[Entry], b: Sequence[Entry]
) -> Parting | None:
    """Return the operations that only one side has: these, or those known before.

    Where both sides have some, one has computed in another way what the other has; what only one of
    them has can be a conversion.
    """
    own = Parting(tuple(filter(_computes, a)), tuple(filter(_computes, b)))
    if own.a and own.b:
        return own
    if (own.a or own.b) and (known is None or not (known.a and known.b)):
        return own
    return known


def _computes(entry: Entry) -> bool:
    """Return whether an entry is an operation that computes something, and does not read a variable."""
    return isinstance(entry, Record) and not is_read(entry) and entry.operation.type not in _PLAIN


def _add_pair(across: Across, pair: Pair, causes: set[Key]) -> None:
    """Keep a pair that differs; `causes` are the keys of those that are kept as a cause."""
    if pair.kind != "operation":
        # After the first cause, values that are carried along say nothing new.
        if across.first is None and across.earliest is None:
            across.earliest = pair
        return
    key = make_key(pair.a)
    if across.first is None:
        across.first = pair
        causes.add(key)
    elif key not in causes and not _is_call(pair.a) and len(across.others) < OTHERS:
        across.others.append(pair)
        causes.add(key)


def _is_call(entry: Entry) -> bool:
    """Return whether this is a graph as a whole, whose operations have entries before it."""
    return isinstance(entry, Record) and entry.operation.type == CALL


def find_difference(a: Entry, b: Entry) -> Pair | None:
    """Return in what two entries differ that belong together; None where they are equal."""
    if isinstance(a, Value) or isinstance(b, Value):
        if isinstance(a, Value) and isinstance(b, Value) and a.fingerprint == b.fingerprint:
            return None
        return Pair("value", a, b)
    if a.outputs == b.outputs:
        return None
    if is_read(a):
        return Pair("variable", a, b)
    is_other = (a.input_specs, a.output_specs) != (b.input_specs, b.output_specs)
    kind: Kind = "carried" if is_other else "operation"
    known = 0
    for x, y in zip(a.inputs, b.inputs, strict=False):
        if x is None or y is None:
            continue
        known += 1
        if x != y:
            kind = "carried"
    return Pair(kind, a, b, known)


def make_key(entry: Entry) -> Key:
    """Return what entries share that belong together: the type and the line; of one that reads or
    changes a variable also its name, type and shape.
    """
    if isinstance(entry, Value):
        return f"value {entry.name}", None, None
    what = entry.operation.type
    if is_read(entry) or is_on_variable(entry):
        name = _NUMBER.sub("", entry.operation.name or "")
        what = f"{what} {name} {' '.join((*entry.input_specs, *entry.output_specs))}"
    place = entry.operation.place
    if place is None:
        return what, None, None
    return what, place.file, place.line


def is_read(entry: Entry) -> bool:
    """Return whether an entry reads a variable."""
    return isinstance(entry, Record) and entry.operation.type in READS


def match_entries(a: Sequence[Key], b: Sequence[Key]) -> Sequence[tuple[int, int]]:
    """Return which entries belong together, as pairs of their numbers, in order."""
    if a == b:
        return [(number, number) for number in range(len(a))]
    return _match_keys(tuple(a), tuple(b))


# The steps of a training are alike, so that the last few answers serve again.
@lru_cache(maxsize=4)
def _match_keys(a: tuple[Key, ...], b: tuple[Key, ...]) -> tuple[tuple[int, int], ...]:
    counts = Counter(b)
    pairs: list[tuple[int, int]] = []
    if sum(counts[key] for key in a) <= MATCHED_LIMIT:
        # `autojunk` would leave out what is more than 1 % of a step: its most frequent operations.
        # https://docs.python.org/3/library/difflib.html#difflib.SequenceMatcher
        for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks():
            i, j, size = block
            pairs += zip(range(i, i + size), range(j, j + size), strict=True)
        return tuple(pairs)
    places: dict[Key, deque[int]] = {}
    for j, key in enumerate(b):
        places.setdefault(key, deque()).append(j)
    for i, key in enumerate(a):
        if places.get(key):
            pairs.append((i, places[key].popleft()))
    return tuple(_find_rising(pairs))


def _find_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return as many of the pairs as are in the order of both sides: a longest rising subsequence.

    By patience sorting: `tops` has the smallest end of a rising row of each length, `ends` the number of its
    pair, and `before` the pair in front of each.
    """
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        place = bisect_left(tops, j)
        previous = ends[place - 1] if place else -1
        before.append(previous)
        tops[place : place + 1] = [j]
        ends[place : place + 1] = [number]
    rising: list[tuple[int, int]] = []
    if not ends:
        return rising
    number = ends[-1]
    while number >= 0:
        rising.append(pairs[number])
        number = before[number]
    return rising[::-1]


def _split_steps(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Yield the entries of each step, in parts that are not longer than the limit."""
    portion: list[Entry] = []
    for entry in entries:
        if portion and (entry.step != portion[0].step or len(portion) >= STEP_LIMIT):
            yield portion
            portion = []
        portion.append(entry)
    if portion:
        yield portion


ALIGNED = 0.5
"""The share of entries that must have a counterpart: below it, the traces are not of the same program, or
were recorded in another way."""
SOURCE = "docs/reference/diverge.md"
PARTED_SHOWN = 6
"""Operations that a message names for each side."""
PARTED_WHY = "The two sides compute this by other operations, which round in their own ways or follow another formula."
PARTED_FIX = (
    "Use the same version of the library that chooses them (`envlock diff` shows which differ), "
    "or write the computation out in operations of TensorFlow."
)
GPU = "gpu"
RESUMED = "resume-optimizer"
"""The row on an optimizer that starts again where a training continues."""
_OPTIMIZER = re.compile("iteration|momentum|velocity|learning_rate")
"""What the variables of an optimizer are called."""
REASONS = {
    "operation": (
        "Another version, device or instruction set computes this operation with another kernel, or in another order.",
        "Make the conditions that differ equal; `envlock verify` says how.",
    ),
    "carried": (
        "It was given other values: by operations that only one side ran, Python, NumPy, a seed, a file or an earlier run.",
        "Give both runs the same seed, data and state.",
    ),
    "longer": (
        "One run ended earlier, or was given more data.",
        "Record as many steps of both.",
    ),
    "not-comparable": (
        "Another program, or another commit, runs other operations.",
        "Record the same program on both sides.",
    ),
}
"""Why, and what to do, by the rule of a finding."""
TITLES = {
    "operation": "an operation gave different bits from equal inputs",
    "carried": "a value from outside the traced operations differs",
    "longer": "one run has more steps",
    "sequence": "the runs compute something by other operations",
    "not-comparable": "the runs ran different operations",
}
_IGNORED = (
    "made_by",
    "elsewhere",
    "system.kernel_release",
    "python.compiler",
)
"""Conditions that are no cause of other bits."""


def report(a: str, b: str) -> Report[TracesEvidence]:
    """Return what the traces in two files show.

    Raises:
        TraceError: one of them cannot be read, or is damaged.
        UsageError: they cannot be compared, as they were recorded in other ways.
    """
    with read(Path(a)) as left, read(Path(b)) as right:
        _check_modes(left.header, right.header)
        across = compare(left, right)
        answer = "different bits"
        if not across.comparable:
            answer = "not comparable"
        elif across.same:
            answer = "the same bits"
        names = [_describe_side("A", a, left.header), _describe_side("B", b, right.header)]
        evidence = TracesEvidence(
            across.comparable,
            across.first,
            across.earliest,
            tuple(across.others),
            across.parting,
            across.compared,
            (across.alone[0], across.alone[1]),
            across.steps,
            across.longer,
            _compare_conditions(left, right),
        )
        return Report(
            list(_list_findings(across, (left.header, right.header))),
            command="diverge compare",
            headline=f"{answer}: {' and '.join(names)}",
            titles=TITLES,
            evidence=evidence,
            breaking=(ERROR, UNKNOWN),
            extent=Extent(operations=across.compared),
        )


def _list_findings(across: Across, headers: tuple[Header, Header]) -> Iterator[Finding]:
    first, earliest = across.first, across.earliest
    if not across.comparable:
        message = (
            "the traces cannot be aligned: the runs ran different operations, or at different lines"
        )
        yield _make_finding("not-comparable", message)
        return
    if across.parting is not None:
        yield _report_parting(across.parting)
    pair = first or earliest
    if pair is not None:
        yield _report_pair(pair, headers, has_parted=across.parting is not None)
    elif across.longer is not None:
        message = f"they are equal up to the end of the shorter one; {across.longer} has more steps"
        yield _make_finding("longer", message)
    for pair in across.others:
        where = _name_entry(pair.a)
        place = pair.a.place
        if place is not None:
            where += f" at {clean(place.file)}:{place.line}"
        message = f"also different, with equal inputs: {where}, step {pair.a.step}"
        yield _make_finding("operation", message, pair, severity=WARNING)


def _report_pair(pair: Pair, headers: tuple[Header, Header], *, has_parted: bool) -> Finding:
    """Return the finding on the first pair that differs."""
    rule, predicate = (
        "operation",
        "is the first operation that gave different bits from equal inputs",
    )
    if pair.kind == "variable":
        rule = "carried"
        predicate = f"differs first: the variable {_name_variable(pair)} holds other values"
    elif pair.kind != "operation":
        rule = "carried"
        predicate = (
            "differs first, and so does its input, which came from outside the traced operations"
        )
        if has_parted:
            predicate = "is the first that differs after that"
    elif isinstance(pair.a, Record) and pair.known < len(pair.a.inputs):
        predicate = (
            "is the first operation that gave different bits from inputs "
            "that are equal as far as they are known"
        )
    finding = _make_finding(rule, f"{_name_entry(pair.a)} {predicate}", pair)
    return _explain(finding, pair, headers)


def _make_finding(
    rule: str, message: str, pair: Pair | None = None, severity: Severity = ERROR
) -> Finding:
    where = Where(operation="the traces")
    if pair is not None:
        where.operation = _name_entry(pair.a)
        place = pair.a.place
        if place is not None:
            where.file, where.line, where.function = place
    why, fix = REASONS[rule]
    return Finding(rule, severity, where, message=message, why=why, fix=fix, source=SOURCE)


def _report_parting(parting: Parting) -> Finding:
    """Return the finding that the sides compute something by other operations."""
    sides = []
    for letter, entries in (("A", parting.a), ("B", parting.b)):
        names = list(dict.fromkeys(map(_name_entry, entries)))
        sides.append(f"{letter} runs {join_first(names, PARTED_SHOWN) or 'nothing'}")
    message = f"before the first difference, the runs part: {'; '.join(sides)}"
    place = parting.lead.place
    where = Where(operation="the traces")
    if place is not None:
        where.file, where.line, where.function = place
        message += f" (at {clean(place.file)}:{place.line})"
    return Finding(
        "sequence", ERROR, where, message=message, why=PARTED_WHY, fix=PARTED_FIX, source=SOURCE
    )


def _name_variable(pair: Pair) -> str:
    names = [each.operation.name for each in pair.operations or () if each.operation.name]
    return clean(" and ".join(dict.fromkeys(names)) or "without a name")


def _explain(finding: Finding, pair: Pair, headers: tuple[Header, Header]) -> Finding:
    """Return a finding with the reason and the cure that the tables have for it, if any.

    What they know of operations is why one varies from run to run in one TensorFlow.
    """
    if pair.operations is None:
        return finding
    version = headers[0].tensorflow
    names = [each.operation.name or "" for each in pair.operations]
    known = None
    if pair.kind == "variable" and any(map(_OPTIMIZER.search, names)):
        known = read_row(RESUMED, version)
    elif pair.kind == "operation" and version == headers[1].tensorflow:
        known = look_up(pair.operations[0].operation.type, frozenset(), version)
        if known is not None and known.platform == GPU and not _has_gpu(headers):
            known = None
    if known is not None and known.fixes:
        finding.why, finding.fix = known.why, "; or ".join(known.fixes)
    return finding


def _has_gpu(headers: tuple[Header, Header]) -> bool:
    """Return whether one of the environments has a GPU, by the facts in the headers."""
    return any(name.startswith("gpu.devices") for each in headers for name in each.conditions)


def _check_modes(a: Header, b: Header) -> None:
    """Refuse traces of graphs, which are not those of `envlock diverge record`, and other fingerprints."""
    if {a.mode, b.mode} != {"eager"} or a.fingerprint != b.fingerprint:
        raise UsageError(
            "the traces cannot be compared: they were recorded in different ways",
            hint="record both with this envlock",
        )


def _compare_conditions(a: Trace, b: Trace) -> dict[str, tuple[Scalar, Scalar]]:
    """Return the conditions that differ, with both values; None where a side has none."""
    left, right = _collect_conditions(a), _collect_conditions(b)
    found = {}
    for name in sorted({*left, *right} - {*_IGNORED}):
        if left.get(name) != right.get(name):
            found[name] = (left.get(name), right.get(name))
    return found


def _collect_conditions(trace: Trace) -> dict[str, Scalar]:
    header = trace.header
    conditions = {
        **header.conditions,
        "tensorflow.version": header.tensorflow,
        "python.version": header.python,
    }
    if header.keras is not None:
        conditions["keras.version"] = header.keras
    if trace.end is not None:
        conditions.update(trace.end)
    return conditions


def _describe_side(letter: str, path: str, header: Header) -> str:
    return f"{letter} {clean(path)} (TensorFlow {clean(header.tensorflow)})"


def _name_entry(entry: Entry) -> str:
    if isinstance(entry, Record):
        return clean(entry.operation.type)
    return clean(entry.name)
