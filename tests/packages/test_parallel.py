"""Several tasks at once: all are told, with their errors, and nobody is waited for who is not wanted."""

from __future__ import annotations

import threading
import time

import pytest

from envlock.packages.parallel import run_all
from envlock.runtime.errors import OutsideError


@pytest.mark.parametrize("jobs", [1, 3, 50])
def test_every_task_is_told_once_with_its_result_or_error(jobs: int) -> None:
    def work(task: int) -> int:
        if task == 7:
            raise OutsideError("it is not there")
        return task * 2

    ended = dict(run_all(range(20), work, jobs=jobs))
    assert isinstance(ended.pop(7), OutsideError)
    assert ended == {task: task * 2 for task in range(20) if task != 7}


def test_no_more_at_once_than_asked_for() -> None:
    running, most = set[int](), list[int]()
    lock = threading.Lock()
    together = threading.Barrier(3)

    def work(task: int) -> None:
        with lock:
            running.add(task)
            most.append(len(running))
        together.wait(60)
        time.sleep(0.01)
        with lock:
            running.remove(task)

    assert len(list(run_all(range(12), work, jobs=3))) == 12
    assert max(most) == 3


def test_an_error_that_was_not_expected_is_raised_as_it_is() -> None:
    def work(task: int) -> None:
        raise ValueError(task)

    with pytest.raises(ValueError, match="1"):
        list(run_all([1], work, jobs=1))


def test_who_stops_is_not_waited_for_and_no_worker_begins_another() -> None:
    go_on = threading.Event()
    begun = []

    def work(task: int) -> None:
        begun.append(task)
        if task > 1:
            go_on.wait(60)

    events = run_all([1, 2, 3], work, jobs=1)
    next(events)
    events.close()  # type: ignore[attr-defined]  # it is a generator
    go_on.set()
    time.sleep(0.05)
    assert 3 not in begun
