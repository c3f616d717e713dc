"""All ranks start or none: the meeting itself, over many orders of arrivals, delays, deaths, restarts and doubles.

Each rank is a thread, of which one runs at a time, by a clock that jumps from one wait to the next. Between any two
looks at the board a rank can hang, or die.
"""

from __future__ import annotations

import heapq
import itertools
import random
import threading
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from envlock.fleet import meeting
from envlock.fleet.meeting import meet
from envlock.runtime import assertion
from tests.exhaustive import exhaustive
from tests.fleet.ranks import Made, rank

TIMEOUT = 4.0
LOOK = 0.7
"""Seconds between two looks; no multiple of it is a time below, so that nothing happens at once by design."""
NEVER = None
TRAINS, REFUSES, DEAD = "trains", "refuses", "dead"


class Dies(BaseException):
    """SIGKILL: nothing that the process would have done happens any more."""


@dataclass
class Process:
    """A process of a job, and what becomes of it.

    Attributes:
        rank: its number; two processes can have one.
        arrives: when it calls.
        hangs: for how many seconds it hangs before its look at the board of that number.
        dies: before which look it dies; 0 for one that does not.
    """

    rank: int
    arrives: float
    hangs: dict[int, float] = field(default_factory=dict)
    dies: int = 0
    looks: int = 0
    hung: float = 0.0
    end: str = ""
    ended: float = 0.0
    prints: bool = False
    decision: dict[str, Any] = field(default_factory=dict)
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


class World:
    """A board, a clock and the processes of one job."""

    has_one_name = True
    """Whether the first decision counts; without it, each one is believed by whoever makes it."""

    def __init__(self, size: int, processes: Iterable[Process]) -> None:
        self.size = size
        self.processes = list(processes)
        self.values: dict[str, Any] = {}
        self.now = 0.0
        self.current = self.processes[0]
        self.counted: list[str] = []
        self._order = itertools.count()
        self._waiting: list[tuple[float, int, Process]] = []
        self._back = threading.Semaphore(0)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        this = self.current
        heapq.heappush(self._waiting, (self.now + seconds, next(self._order), this))
        self._back.release()
        this.turn.acquire()

    def look(self) -> None:
        this = self.current
        this.looks += 1
        if this.dies and this.looks >= this.dies:
            raise Dies
        if this.looks in this.hangs:
            seconds = this.hangs.pop(this.looks)
            this.hung += seconds
            self.sleep(seconds)

    def post(self, name: str, value: Any) -> str:
        self.look()
        self.values[name] = value
        return ""

    def settle(self, name: str, value: Any) -> bool:
        self.look()
        if name in self.values and not (name.endswith(".decision") and not self.has_one_name):
            return False
        self.values[name] = value
        return True

    def peek(self, name: str) -> Any:
        self.look()
        return self.values.get(name)

    def names(self, folder: str = "") -> Collection[str]:
        self.look()
        start = f"{folder}/" if folder else ""
        return [each[len(start) :] for each in self.values if each.startswith(start)]

    def decide(self, statements: Any, documents: Any) -> dict[str, Any]:
        counted = [each["node"] for each in statements]
        return {"by": 0, "report": {}, "go": counted if len(counted) == self.size else []}

    def live(self, this: Process) -> None:
        this.turn.acquire()
        statement, document = STATEMENTS[this.rank]
        mine = ({**statement, "node": f"n{self.processes.index(this)}"}, document)
        try:
            this.decision, this.prints = meet(self, this.rank, self.size, mine, self.decide, TIMEOUT)
            this.end = TRAINS if this.decision.get("go") else REFUSES
        except Dies:
            this.end = DEAD
        this.ended = self.now
        self._back.release()

    def run(self) -> World:
        """Let all processes live to their ends."""
        for each in self.processes:
            threading.Thread(target=self.live, args=(each,), daemon=True).start()
            heapq.heappush(self._waiting, (each.arrives, next(self._order), each))
        while self._waiting:
            self.now, _, self.current = heapq.heappop(self._waiting)
            self.current.turn.release()
            assert self._back.acquire(timeout=60), "its thread has ended without a word"
        return self

    def wrong(self) -> list[str]:
        """Return what no run may show."""
        found = []
        ends = {each.end for each in self.processes if not self.is_doubled(each)}
        if {TRAINS, REFUSES} <= ends:
            found.append("one trains, and another has refused")
        for number, each in enumerate(self.processes):
            if each.end == TRAINS and f"n{number}" not in each.decision["go"]:
                found.append(f"process {number} trains, and nobody has looked at it")
            # Who hangs holds up itself, and rank 0 those that wait for it.
            longest = 2 * TIMEOUT + 2 * meeting.MARGIN + LOOK + sum(every.hung for every in self.processes)
            if each.end != DEAD and each.ended > each.arrives + longest:
                found.append(f"process {number} is held for ever")
        if not any(each.end == TRAINS for each in self.processes) and not self.is_said():
            found.append("nobody prints why")
        return found

    def is_doubled(self, this: Process) -> bool:
        """Return whether its number has another process: one of the two cannot be a rank of the job."""
        return sum(each.rank == this.rank for each in self.processes) > 1

    def is_said(self) -> bool:
        """Return whether the reason is printed: by rank 0 with its verdict, or by who has withdrawn."""
        alive = [each for each in self.processes if each.end != DEAD]
        verdict = any(
            value.get("by") == 0 and "go" in value for value in self.values.values() if isinstance(value, dict)
        )
        return not alive or verdict or any(each.prints for each in alive)


MOST = 5
"""Ranks of the largest job."""
STATEMENTS: list[Made] = [rank(number, MOST) for number in range(MOST)]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of thousands of threads under coverage, Python fails to start one now and then: "Cannot install a trace function while
    # another trace function is being installed".
    monkeypatch.setattr(threading, "_trace_hook", None)
    for name in ("FIRST_PAUSE", "LONGEST_PAUSE", "CROWD_PAUSE"):
        monkeypatch.setattr(meeting, name, LOOK)
    monkeypatch.setattr(assertion, "say", lambda text: None)


def run(size: int, processes: Iterable[Process], monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(size, processes)
    monkeypatch.setattr(meeting, "time", world)
    return world.run()


def arrivals(size: int) -> Iterator[list[Process]]:
    """Yield ranks that come at once, late, too late, or never."""
    for times in itertools.product([0.0, 3.0, 5.0, 9.4, NEVER], repeat=size):
        if any(each is not NEVER for each in times):
            yield [Process(rank, at) for rank, at in enumerate(times) if at is not NEVER]


def drawn(seed: int, *, doubles: bool = False) -> tuple[int, list[Process]]:
    """Return a job of up to five ranks where some hang, die, or exist twice."""
    draw = random.Random(seed)
    size = draw.randint(2, MOST)
    numbers = [*range(size), *(draw.choices(range(1, size), k=draw.randint(1, 2)) if doubles else ())]
    found = []
    for number in numbers:
        hangs = {draw.randint(1, 14): draw.choice([0.3, 1.9, 4.4, 7.3]) for _ in range(draw.choice([0, 0, 1, 2]))}
        dies = draw.choice([0, 0, 0, draw.randint(1, 14)])
        found.append(Process(number, draw.choice([0.0, 0.1, 1.6, 3.2, 4.1, 8.3]), hangs, dies))
    return size, found


def test_whenever_ranks_come_all_start_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """For three ranks, each order of arrivals."""
    assert check_arrivals(3, monkeypatch) == 124


@pytest.mark.slow
@exhaustive
def test_whenever_five_ranks_come_all_start_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_arrivals(5, monkeypatch) == 3124


def check_arrivals(size: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many jobs were run; in each, who comes in the time of rank 0, which has come in theirs, starts."""
    count = 0
    for processes in arrivals(size):
        world = run(size, processes, monkeypatch)
        assert world.wrong() == [], processes
        times = [each.arrives for each in processes]
        in_time = len(times) == size and all(times[0] - TIMEOUT < at < times[0] + TIMEOUT for at in times[1:])
        expected = {TRAINS} if in_time else {REFUSES}
        assert {each.end for each in processes} == expected, processes
        count += 1
    return count


@pytest.mark.longer
def test_a_rank_can_die_or_hang_at_any_look(monkeypatch: pytest.MonkeyPatch) -> None:
    number = 0
    for which, look, what in itertools.product(range(3), range(1, 13), (NEVER, 1.9, 4.4, 9.3)):
        for times in ([0.0, 0.1, 0.2], [0.2, 0.1, 0.0], [1.6, 0.0, 3.2]):
            processes = [Process(rank, at) for rank, at in enumerate(times)]
            if what is NEVER:
                processes[which].dies = look
            else:
                processes[which].hangs = {look: what}
            assert run(3, processes, monkeypatch).wrong() == [], processes
            number += 1
    assert number == 432


@pytest.mark.longer
@pytest.mark.parametrize("doubles", [False, True])
def test_drawn_jobs(monkeypatch: pytest.MonkeyPatch, doubles: bool) -> None:
    """Of two to five ranks, where several hang and die; and where numbers exist twice, or are started again."""
    ends = set()
    for seed in range(400):
        size, processes = drawn(seed, doubles=doubles)
        world = run(size, processes, monkeypatch)
        assert world.wrong() == [], (seed, processes)
        ends |= {each.end for each in processes}
    assert ends == {TRAINS, REFUSES, DEAD}


@pytest.mark.slow
@exhaustive
@pytest.mark.parametrize("doubles", [False, True])
def test_more_drawn_jobs(monkeypatch: pytest.MonkeyPatch, doubles: bool) -> None:
    ends = set()
    for seed in range(400, 5_000):
        size, processes = drawn(seed, doubles=doubles)
        world = run(size, processes, monkeypatch)
        assert world.wrong() == [], (seed, processes)
        ends |= {each.end for each in processes}
    assert ends == {TRAINS, REFUSES, DEAD}


@pytest.mark.longer
def test_a_decision_without_one_name_splits_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the model is for: it finds the fault where ranks that give up are not heard."""
    monkeypatch.setattr(World, "has_one_name", False)
    found = [run(*drawn(seed), monkeypatch).wrong() for seed in range(200)]
    assert ["one trains, and another has refused"] in found


@pytest.mark.parametrize(("dead", "ends"), [(True, [DEAD, TRAINS, TRAINS]), (False, [REFUSES, REFUSES, REFUSES])])
def test_a_rank_that_is_started_again_while_the_others_wait(
    monkeypatch: pytest.MonkeyPatch, dead: bool, ends: list[str]
) -> None:
    """Its place is taken if it has died; if it lives, its number exists twice, and rank 2 comes too late."""
    first = Process(1, 0.0, dies=8 if dead else 0)
    processes = [first, Process(1, 2.0), Process(0, 0.0), Process(2, 3.0)]
    world = run(3, processes, monkeypatch)
    assert [each.end for each in (first, processes[1], processes[3])] == ends
    assert processes[2].end == ends[-1]
    said = [each.decision["report"].get("headline") for each in processes[:3] if each.end == REFUSES]
    assert set(said) == (set() if dead else {"does not match: rank 1 exists twice"})
    assert sum(each.prints for each in world.processes[:3]) == (0 if dead else 1)


def test_rank_0_that_is_started_again_finds_the_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = [Process(0, 0.0, dies=6), Process(1, 0.0), Process(2, 0.0), Process(0, 2.0)]
    run(3, processes, monkeypatch)
    assert [each.end for each in processes] == [DEAD, TRAINS, TRAINS, TRAINS]


def test_two_of_rank_0_that_live_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the two says so; the others cannot know which attempt is theirs."""
    processes = [Process(0, 0.0), Process(0, 2.0), Process(1, 0.0), Process(2, 9.4)]
    run(3, processes, monkeypatch)
    assert [each.end for each in processes] == [REFUSES] * 4
    said = [each.decision["report"]["headline"] for each in processes]
    assert said == ["does not match: rank 0 exists twice"] * 2 + ["cannot decide: no report from rank 0 within 4 s"] * 2
