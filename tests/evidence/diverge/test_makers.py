"""Which lines of Python and NumPy gave another value in each run, and what holds them to one."""

from __future__ import annotations

import gc
import importlib
import multiprocessing.pool
import os
import queue
import random
import sys
import time
import uuid
import weakref
from collections.abc import Callable
from concurrent import futures
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envlock.data.determinism import get_source, load_makers
from envlock.evidence.diverge.makers import find_candidates, list_sources
from envlock.guest.tracing.run_traces import _watch_imports
from envlock.guest.tracing.source_lines import Places
from envlock.guest.tracing.value_makers import Held, Makers, _find_owner

HERE = Path(__file__).name
NOW = 5_000.0


def watched(call: Callable[[], Any], held: tuple[str, str, int] | None = None) -> tuple[Any, list[dict[str, Any]]]:
    """Return what a call gives while it is watched, and what was noted."""
    calls = [held] if held else []
    seen = Makers(Places(str(Path(__file__).parent)), lambda: 3, Held(calls, (NOW, NOW)))
    with seen.watch():
        given = call()
    return given, seen.to_json()


def noted(name: str, *prints: str | None, line: int = 7, entries: int = 3, number: int = 1) -> dict[str, Any]:
    """Return what a run has noted of a line."""
    calls = [[entries, number, each] for each in prints]
    return {"name": name, "place": ["train.py", line, "step"], "calls": calls}


def test_every_row_is_of_a_source_and_every_function_is_there() -> None:
    assert [get_source(row.row).id for row in load_makers() if row.row] == [
        *["unseeded-random-ops"] * 2,
        "left-by-an-earlier-run",
    ]
    names = [name for row in load_makers() for name in row.functions if not name.startswith(("tensorflow", "keras"))]
    assert [name for name in names if getattr(*_find_owner(name), None) is None] == []


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("random.random", lambda: random.random()),
        ("random.shuffle", lambda: random.shuffle([1, 2, 3])),
        ("numpy.random.shuffle", lambda: np.random.shuffle(np.arange(9))),
        ("os.urandom", lambda: np.random.default_rng().random()),
        ("random.Random.seed", lambda: random.Random().random()),
        ("os.urandom", lambda: uuid.uuid4().hex),
        ("os.urandom", lambda: random.SystemRandom().random()),
        ("os.getpid", lambda: os.getpid()),
        ("time.time", lambda: time.time()),
        ("time.monotonic_ns", lambda: time.monotonic_ns()),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_line_is_noted_and_held_it_gives_the_same(name: str, call: Callable[[], Any]) -> None:
    def at_this_line() -> Any:
        return call()

    _, seen = watched(at_this_line)
    assert [each["name"] for each in seen] == [name]
    file, line, _ = seen[0]["place"]
    assert file == HERE
    first, again = (watched(at_this_line, (name, file, line)) for _ in range(2))
    assert first == again


def test_what_a_finalizer_asks_while_garbage_is_collected_is_not_noted() -> None:
    """urllib3 empties the queue of a pool that nobody holds, at whatever line Python collects."""

    class Pool:
        def __init__(self) -> None:
            self.itself = self
            connections: queue.LifoQueue[None] = queue.LifoQueue()
            connections.put(None)
            weakref.finalize(self, connections.get, block=False)

    def collect_in_cycle() -> int:
        Pool()
        return gc.collect()

    gc.collect()
    collected, seen = watched(collect_in_cycle)
    assert collected
    assert seen == []


def test_afterwards_all_is_as_it_was() -> None:
    names = [name for row in load_makers() for name in row.functions]
    before = [getattr(*_find_owner(name), None) for name in names]
    collected = list(gc.callbacks)
    watched(random.random)
    assert gc.callbacks == collected
    assert [getattr(*_find_owner(name), None) for name in names] == before
    assert multiprocessing.pool.IMapUnorderedIterator.__next__.__module__ == "multiprocessing.pool"


def test_a_generator_with_a_seed_is_not_noted() -> None:
    assert watched(lambda: random.Random(7).random())[1] == []


def test_what_a_library_asks_the_clock_is_not_noted() -> None:
    assert [each["name"] for each in watched(lambda: queue.Queue().join())[1]] == []


def test_a_loop_ends_that_waits_for_a_clock_of_which_another_line_is_held() -> None:
    """`end` came from a clock of its own, 53 years ahead of the loop's."""

    def waited() -> int:
        calls, end = 0, time.perf_counter() + 0.002
        while time.perf_counter() < end:
            calls += 1
        return calls

    line = waited.__code__.co_firstlineno
    now = time.perf_counter()
    for held in (line + 1, line + 2):
        seen = Makers(
            Places(str(Path(__file__).parent)), lambda: 3, Held([("time.perf_counter", HERE, held)], (now, now))
        )
        with seen.watch():
            assert waited() >= 0


def test_each_clock_that_is_held_begins_where_it_was() -> None:
    held = Held((), (1_700_000_000.5, 5_000.25))
    assert held.read_clock("time.time") == 1_700_000_000.501
    assert held.read_clock("time.time_ns") == 1_700_000_000_502_000_000
    assert held.read_clock("time.perf_counter") == 5_000.253
    assert held.read_clock("time.monotonic_ns") == 5_000_254_000_000
    assert held.read_clock("time.process_time") == 0.005


def test_what_an_import_draws_is_marked_and_suspected_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "drawing_module.py").write_text("import os\nos.urandom(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    places = Places(str(Path(__file__).parent))
    # As a library's: no line of it is the user's.
    monkeypatch.setattr(places, "find_name", lambda file: HERE if file == __file__ else None)
    seen = Makers(places, lambda: 3)
    with seen.watch():
        importlib.import_module("drawing_module")
        os.urandom(3)
    assert sorted((each["name"], each["importing"]) for each in seen.to_json()) == [
        ("os.urandom", False),
        ("os.urandom", True),
    ]
    ends = [
        {"makers": [{**noted("os.urandom", draw, number=9), "importing": True}, noted("time.time", draw, line=2)]}
        for draw in ("a", "b")
    ]
    assert [each.title for each in find_candidates(ends, 3)] == ["time.time at train.py:2", "os.urandom at train.py:7"]


def test_what_gave_the_same_in_runs_with_other_results_is_no_candidate() -> None:
    ends = [
        {"makers": [noted("os.urandom", draw), noted("time.time", clock, line=2)]} for draw, clock in ("ab", "cd", "ce")
    ]
    assert [each.name for each in find_candidates(ends, 3, (0, 1, 2))] == ["time.time"]
    assert len(find_candidates(ends, 3, (0, 1, 1))) == 2
    unknown = [{"makers": [noted("queue.Queue.get", None, draw)]} for draw in "ab"] + [{"makers": []}]
    assert len(find_candidates([*unknown, {"makers": []}], 3, (0, 1, 2, 3))) == 0
    assert len(find_candidates([*unknown, *unknown[:1]], 3, (0, 1, 2, 3))) == 1


def test_a_seed_goes_before_what_is_drawn_and_leads_to_what_made_it() -> None:
    ends = [
        {
            "makers": [
                noted("time.time", draw, line=1, number=1),
                noted("random.seed", draw, line=2, number=2),
                noted("random.random", draw, line=3, number=3),
            ]
        }
        for draw in ("a", "b")
    ]
    found = find_candidates(ends, 3)
    assert [each.name for each in found] == ["random.seed", "random.random", "time.time"]
    assert [each.name for each in list_sources(found[0], found)] == ["time.time"]


@pytest.mark.parametrize("seed", [random.seed, np.random.seed])
def test_a_seed_is_noted_by_its_number_and_held_to_one(seed: Callable[[int], None]) -> None:
    names = {random.seed: "random.seed", np.random.seed: "numpy.random.seed"}
    first, seen = watched(lambda: call_of(names[seed])(5))
    assert (first, [each["name"] for each in seen]) == (None, [names[seed]])
    other = watched(lambda: call_of(names[seed])(6))[1]
    assert other[0]["calls"] != seen[0]["calls"]
    file, line, _ = seen[0]["place"]
    assert watched(lambda: call_of(names[seed])(6), (names[seed], file, line))[0] is None


def call_of(name: str) -> Callable[..., Any]:
    """Return a function as a program finds it while it is watched."""
    found: Callable[..., Any] = getattr(*_find_owner(name))
    return found


def test_the_seed_of_keras_has_its_name() -> None:
    def set_random_seed(number: int) -> None:
        random.seed(number)

    assert [each["name"] for each in watched(lambda: set_random_seed(5))[1]] == ["set_random_seed"]


def test_a_loop_that_waits_for_a_clock_that_is_held_comes_to_its_end() -> None:
    def an_hour_later() -> int:
        calls, now, end = 0, 0.0, 0.0
        while not calls or now < end:
            now = time.monotonic()
            calls, end = calls + 1, end or now + 3_600
        return calls

    seen = watched(lambda: time.monotonic())[1]
    line = an_hour_later.__code__.co_firstlineno + 3
    calls, _ = watched(an_hour_later, ("time.monotonic", seen[0]["place"][0], line))
    assert calls == 3_797


def test_futures_are_noted_by_their_number_and_held_in_the_order_of_submission() -> None:
    def slowly() -> int:
        time.sleep(0.05)
        return 1

    def taken() -> list[int]:
        with futures.ThreadPoolExecutor(2) as pool:
            slow = pool.submit(slowly)
            fast = pool.submit(lambda: 2)
            return [each.result() for each in futures.as_completed([slow, fast])]

    given, seen = watched(taken)
    (one,) = [each for each in seen if each["name"] == "concurrent.futures.as_completed"]
    assert (given, [call[2] for call in one["calls"]]) == ([2, 1], ["1", "0"])
    held, _ = watched(taken, (one["name"], one["place"][0], one["place"][1]))
    assert held == [1, 2]


def test_a_queue_shows_what_it_delivers_but_no_objects() -> None:
    ready: queue.Queue[Any] = queue.Queue()
    for each in (1, 1, ("a", 2.0), object()):
        ready.put(each)
    _, seen = watched(lambda: [ready.get() for _ in range(4)])
    prints = [call[2] for call in seen[0]["calls"]]
    assert (prints[0] == prints[1], prints[3]) == (True, None)
    assert prints[2] not in (None, prints[0])


def test_only_what_differs_before_the_difference_is_a_candidate() -> None:
    ends = [
        {
            "makers": [
                noted("random.random", "same", line=1),
                noted("os.urandom", draw, line=2, entries=1),
                noted("time.time", draw, line=3, entries=4),
                noted("numpy.random.rand", draw, line=4, entries=9),
            ]
        }
        for draw in ("a", "b", "a")
    ]
    assert [each.title for each in find_candidates(ends, 4)] == ["time.time at train.py:3", "os.urandom at train.py:2"]
    assert [each.held for each in find_candidates(ends, 3)] == [("os.urandom", "train.py", 2)]


def test_a_random_number_goes_before_a_clock_and_the_last_call_before_an_earlier_one() -> None:
    ends = [
        {
            "makers": [
                noted("random.random", draw, line=1, number=1),
                noted("random.random", draw, line=2, number=2),
                noted("time.time", draw, line=3, number=3),
            ]
        }
        for draw in ("a", "b")
    ]
    assert [each.place.line for each in find_candidates(ends, 3)] == [2, 1, 3]


def test_a_line_that_only_some_runs_come_to_is_a_candidate() -> None:
    assert [each.name for each in find_candidates([{"makers": [noted("os.getpid", "1")]}, {}], 3)] == ["os.getpid"]


def test_a_file_that_an_earlier_run_wrote_is_noted_where_it_is_read(tmp_path: Path) -> None:
    since = time.time() - 100
    seen = Makers(Places(str(Path(__file__).parent)), lambda: 3, since=since)
    ages = {"left": since + 1, "other": since + 2, "older": since - 1, "own": time.time() + 1}
    for name, when in ages.items():
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (when, when))
    with seen.watch():
        before = sys._getframe().f_lineno
        (tmp_path / "left").read_text()
        np.fromfile(tmp_path / "left", "uint8")
        (tmp_path / "other").open().close()
        (tmp_path / "older").read_text()
        (tmp_path / "own").read_text()
        (tmp_path / "left").open("a").close()
        SourceFileLoader("left", "").get_data(str(tmp_path / "left"))
        os.close(os.open(tmp_path, os.O_RDONLY))
        os.fdopen(os.open(tmp_path / "left", os.O_RDONLY)).close()
    noted: list[dict[str, Any]] = seen.to_json()
    prints = {each["place"][1] - before: each["calls"][0][2] for each in noted}
    # An import reads what it has compiled: line 7.
    assert ({each["name"] for each in noted}, [*prints]) == ({"open"}, [1, 2, 3, 9])
    assert (prints[1] == prints[2] == prints[9], prints[1] != prints[3], None not in prints.values()) == (True,) * 3
    # Whoever does not know when the first run began knows nothing of earlier ones.
    unknown = Makers(Places(str(Path(__file__).parent)), lambda: 3)
    with unknown.watch():
        (tmp_path / "left").read_text()
    assert unknown.to_json() == []


def test_a_module_that_is_imported_later_is_watched_before_a_name_is_taken_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [each for each in sys.modules if each.startswith("concurrent.futures")]:
        monkeypatch.delitem(sys.modules, name)
    finders = list(sys.meta_path)
    seen = Makers(Places(str(Path(__file__).parent)), lambda: 3)
    with seen.watch(), _watch_imports(seen.watch_module):
        exec("from concurrent.futures import as_completed", globals())  # as a program's own line does
        done: futures.Future[int] = futures.Future()
        done.set_result(7)
        assert [each.result() for each in globals()["as_completed"]([done])] == [7]
    assert sys.meta_path == finders
    monkeypatch.delitem(sys.modules, "concurrent.futures")
    with _watch_imports(seen.watch_module):
        assert len(sys.meta_path) > len(finders)
        sys.meta_path[:] = finders  # a program may take out what it does not know
    assert sys.meta_path == finders
    # Once: the package has it from its module.
    names = [each["name"] for each in seen.to_json() for _ in list(each["calls"])]  # type: ignore[call-overload]
    assert names == ["concurrent.futures.as_completed"]
