"""The statement that made a value which differs from run to run, from what statements read and left. Pure.

From the statement at which the runs differ, each run is followed back: from a name whose value differs to the
statement that gave it that value, through calls and returns. The one that left other values in each run, and read
the same in all, is the origin.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from envlock.data.determinism import OriginRow, load_origins
from envlock.evidence.diverge.trace import Place
from envlock.guest.tracing.line_values import GENERATORS, RETURNED

CONVERTING = frozenset(
    {
        "Path",
        "enumerate",
        "float",
        "int",
        "len",
        "list",
        "max",
        "min",
        "range",
        "sorted",
        "split",
        "str",
        "sum",
        "tuple",
    }
)
"""Calls that make no value of their own."""
METHODS = frozenset(
    {
        "array",
        "asarray",
        "astype",
        "concatenate",
        "constant",
        "convert_to_tensor",
        "hstack",
        "reshape",
        "stack",
        "tolist",
        "vstack",
        "encode",
        "format",
        "items",
        "join",
        "keys",
        "lower",
        "split",
        "strip",
        "values",
    }
)
"""The last words of those of arrays, texts and dictionaries."""
HOPS = 300
"""Statements that are followed back."""
Print = tuple[str | None, int]


@dataclass(frozen=True)
class Event:
    """A statement that ran.

    Attributes:
        number: its place among all statements and calls of the run.
        frame: the number of the call that it is in.
        parent: the number of the statement that made that call; None: none of the program's.
        header: the line of the loop or branch that it stands in.
        calls: the names of what it calls.
        seeds: it gives a generator a new state.
        before, after: fingerprint and identity of the values of its names.
    """

    number: int
    frame: int
    parent: int | None
    place: Place
    header: int | None
    calls: tuple[str, ...]
    seeds: bool
    before: Mapping[str, Print]
    after: Mapping[str, Print]

    def is_written(self, name: str) -> bool:
        """Return whether it gave a name another value, or changed that value."""
        return name in self.after and self.before.get(name) != self.after[name]


@dataclass
class RunLines:
    """The statements of one run, and the one at which the runs differ."""

    events: dict[int, Event]
    target: int | None
    frames: dict[int, list[Event]] = field(default_factory=dict)
    children: dict[int, list[Event]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for event in sorted(self.events.values(), key=lambda event: event.number):
            self.frames.setdefault(event.frame, []).append(event)
            if event.parent is not None:
                self.children.setdefault(event.parent, []).append(event)

    def find_written(self, event: Event, name: str) -> Event | None:
        """Return the last statement of the same call that wrote a name before; None where none did."""
        found = None
        for each in self.frames[event.frame]:
            if each.number < event.number and each.is_written(name):
                found = each
        return found

    def find_changed(self, event: Event, name: str) -> Event | None:
        """Return the last statement of any other call that changed the object that a name stands for."""
        identity = event.before[name][1]
        found = None
        for each in self.events.values():
            if each.frame == event.frame or not identity:
                continue
            for other, (value, own) in each.after.items():
                was = each.before.get(other)
                if own == identity and (was is None or was[0] != value):
                    found = each
        return found

    def find_seeded(self, event: Event, name: str) -> Event | None:
        """Return the last statement before that seeded a generator, in whatever call; None where none did."""
        # Those that are running call this one: what they leave comes later.
        running = set()
        above: Event | None = event
        while above is not None and above.number not in running:
            running.add(above.number)
            above = self.events.get(above.parent or 0)
        found = None
        for each in self.events.values():
            if each.number in running or not (each.seeds and each.is_written(name)):
                continue
            last = found.number if found is not None else 0
            if last < each.number < event.number:
                found = each
        return found

    def find_last(self, frame: int, lines: Collection[int | None]) -> Event | None:
        """Return the last statement of a call that stands in one of these lines; None where none ran."""
        found = None
        for each in self.frames[frame]:
            if each.place.line in lines:
                found = each
        return found


@dataclass(frozen=True)
class Made:
    """The statement that made a value, and what it calls."""

    place: Place
    calls: tuple[str, ...]

    @property
    def name(self) -> str:
        """The function that it calls and that says most; else that it is a statement."""
        for call in self.calls:
            # A set can be what another call is given.
            if call != "set" and _find_origin(call) is not None:
                return call
        for call in self.calls:
            if call not in CONVERTING and call.rpartition(".")[2] not in METHODS:
                return call
        return "the statement"

    @property
    def fix(self) -> str:
        """What helps against what it calls; empty where the tables have nothing."""
        for call in self.calls:
            row = _find_origin(call)
            if row is not None:
                return row.fix
        return ""


def _find_origin(call: str) -> OriginRow | None:
    for row in load_origins():
        if call.rpartition(".")[2] in row.calls:
            return row
    return None


def parse_lines(document: Mapping[str, Any]) -> RunLines | None:
    """Return what a run's statements were; None where it has too many of them."""
    if document["cut"]:
        return None
    events = {}
    for each in document["events"]:
        event = Event(
            each["number"],
            each["frame"],
            each["parent"],
            Place(*each["place"]),
            each["header"],
            tuple(each["calls"]),
            each["seeds"],
            {name: tuple(value) for name, value in each["before"].items()},
            {name: tuple(value) for name, value in each["after"].items()},
        )
        events[event.number] = event
    return RunLines(events, document["target"])


def find_made(runs: Sequence[RunLines]) -> Made | None:
    """Return the statement that made the value which differs; None where that does not show.

    None, too, where it is the one at which the runs differ: what its names do not show, such as the state of a
    library, can have decided there.
    """
    targets = []
    for run in runs:
        event = run.events.get(run.target or 0)
        if event is not None:
            targets.append(event)
    if len(targets) < len(runs) or len(runs) < 2:
        return None
    found = _Slice(runs).explain(targets)
    if found is None or found.place in {event.place for event in targets}:
        return None
    return found


@dataclass
class _Slice:
    """Follows the runs back, side by side."""

    runs: Sequence[RunLines]
    hops: int = 0
    seen: set[tuple[int, ...]] = field(default_factory=set)

    def explain(self, events: Sequence[Event]) -> Made | None:
        """Return what made the values that one statement of each run read, or gave."""
        key = tuple(event.number for event in events)
        self.hops += 1
        if key in self.seen or self.hops > HOPS:
            return None
        self.seen.add(key)
        if len({event.place for event in events}) > 1:
            return self._explain_branch(events)
        differing = _list_differing(events)
        for name in differing:
            found = self._explain_name(events, name)
            if found is not None:
                return found
        if differing:  # it read another value, wherever that came from
            return None
        return self._look_within(events) or _name_made(events)

    def _explain_name(self, events: Sequence[Event], name: str) -> Made | None:
        """Return what made the value of a name that differs."""
        if name in GENERATORS:
            return self._explain_draw(events, name)
        written = self._find_all(RunLines.find_written, events, name)
        if written is not None and _differs_after(written, name):
            return self.explain(written)
        parents = None
        if written is None:
            # A parameter: the call passes it.
            parents = self._find_parents(events)
            if parents is not None and _list_differing(parents):
                return self.explain(parents)
        changed = self._find_all(RunLines.find_changed, events, name)
        if changed is not None and len({event.place for event in changed}) == 1:
            return _name_made(changed)
        # `fit(split(rows))`: another call of that statement made it.
        if parents is not None:
            return self.explain(parents)
        return None

    def _explain_draw(self, events: Sequence[Event], name: str) -> Made | None:
        """Return what gave a generator another state before a statement draws from it."""
        seeded = self._find_all(RunLines.find_seeded, events, name)
        if seeded is not None and _differs_after(seeded, name):
            return self.explain(seeded)
        # Nothing seeds it, or it was drawn from more often in one run: what is drawn here is what differs.
        return self._look_within(events) or _name_made(events)

    def _find_all(self, find: Any, events: Sequence[Event], name: str) -> list[Event] | None:
        found = []
        for run, event in zip(self.runs, events, strict=True):
            each = find(run, event, name)
            if each is None:
                return None
            found.append(each)
        return found

    def _find_parents(self, events: Sequence[Event]) -> list[Event] | None:
        found = []
        for run, event in zip(self.runs, events, strict=True):
            parent = run.events.get(event.parent or 0)
            if parent is None:
                return None
            found.append(parent)
        return found

    def _explain_branch(self, events: Sequence[Event]) -> Made | None:
        """Return what made the decision after which the runs are at other statements."""
        lines = {event.header for event in events} - {None}
        headers = []
        for run, event in zip(self.runs, events, strict=True):
            header = run.find_last(event.frame, lines)
            if header is not None:
                headers.append(header)
        if len(lines) != 1 or len(headers) < len(events):
            return None
        return self.explain(headers)

    def _look_within(self, events: Sequence[Event]) -> Made | None:
        """Return what made a value within the calls of a statement that read the same in all runs."""
        last: Made | None = None
        for children in self._iter_children(events):
            if len({event.place for event in children}) > 1:
                return self._explain_branch(children)
            if RETURNED in children[0].after and _differs_after(children, RETURNED):
                last = self.explain(children) or last
        if last is not None:
            return last
        # A constructor returns nothing: what it left in its object differs.
        for children in self._iter_children(events):
            if any(
                _differs_after(children, name)
                for name in children[0].after
                if name not in GENERATORS
            ):
                return self.explain(children)
        return None

    def _iter_children(self, events: Sequence[Event]) -> Iterator[list[Event]]:
        lists = []
        for run, event in zip(self.runs, events, strict=True):
            lists.append(run.children.get(event.number, []))
        for children in zip(*lists, strict=False):
            yield list(children)


def _list_differing(events: Sequence[Event]) -> list[str]:
    """Return the names whose values differ before a statement; generators last, and only where it draws."""
    found = []
    for name in sorted(events[0].before, key=lambda name: name in GENERATORS):
        prints = {event.before.get(name, (None, 0))[0] for event in events}
        if len(prints) == 1 or None in prints:
            continue
        if name in GENERATORS:
            draws = any(event.after.get(name) != event.before.get(name) for event in events)
            if not draws or events[0].seeds:
                continue
        found.append(name)
    return found


def _differs_after(events: Sequence[Event], name: str) -> bool:
    if any(not event.after for event in events):  # still running when the runs were left
        return False
    return len({event.after.get(name, (None, 0))[0] for event in events}) > 1


def _name_made(events: Sequence[Event]) -> Made:
    return Made(events[0].place, events[0].calls)
