"""Several tasks at once: all are told, errors that were expected too, and nobody is waited for who is not wanted."""

from __future__ import annotations

import threading
import time

import pytest

from envlock.packages.parallel import Advance, Done, Moved, run_all

EXPECTED = (KeyError,)


@pytest.mark.parametrize("jobs", [1, 3, 50])
def test_every_task_is_told_once_with_its_progress(jobs: int) -> None:
    def work(task: int, advance: Advance) -> int:
        advance(0)
        advance(task)
        if task == 7:
            raise KeyError(task)
        return task * 2

    events = list(run_all(range(20), work, jobs=jobs, expected=EXPECTED))
    done = {event.task: event for event in events if isinstance(event, Done)}
    assert sorted(done) == list(range(20))
    assert {task: event.result for task, event in done.items()} == {n: None if n == 7 else n * 2 for n in range(20)}
    assert [task for task, event in done.items() if event.error is not None] == [7]
    assert sorted((event.task, event.size) for event in events if isinstance(event, Moved)) == [
        (task, task) for task in range(1, 20)
    ]


def test_no_more_at_once_than_asked_for() -> None:
    running, most = set[int](), list[int]()
    lock = threading.Lock()
    together = threading.Barrier(3)

    def work(task: int, advance: Advance) -> None:
        with lock:
            running.add(task)
            most.append(len(running))
        together.wait(60)
        time.sleep(0.01)
        with lock:
            running.remove(task)

    assert len(list(run_all(range(12), work, jobs=3, expected=()))) == 12
    assert max(most) == 3


def test_nothing_to_do() -> None:
    assert list(run_all([], lambda task, advance: None, jobs=4, expected=())) == []


def test_an_error_that_was_not_expected_is_raised_as_it_is() -> None:
    def work(task: int, advance: Advance) -> None:
        raise ValueError(task)

    with pytest.raises(ValueError, match="1"):
        list(run_all([1], work, jobs=1, expected=EXPECTED))


def test_who_stops_is_not_waited_for_and_no_worker_goes_on() -> None:
    started, ended = threading.Event(), threading.Event()
    begun = []

    def work(task: int, advance: Advance) -> None:
        begun.append(task)
        advance(1)
        started.set()
        try:
            while True:
                time.sleep(0.005)
                advance(0)
        finally:
            ended.set()

    events = run_all([1, 2, 3], work, jobs=1, expected=())
    assert next(events) == Moved(1, 1)
    assert started.wait(60)
    events.close()  # type: ignore[attr-defined]  # it is a generator
    assert ended.wait(60)
    time.sleep(0.05)
    assert begun == [1]
