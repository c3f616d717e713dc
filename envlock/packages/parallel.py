"""Several tasks in parallel, in threads that end with the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Generic, TypeVar

Advance = Callable[[int], None]
"""Called with the number of new bytes, and now and then with 0; it stops a task that takes too
long.
"""

TIMEOUT = 3600.0
"""Seconds that reading or downloading all packages may take by default."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Moved(Generic[T]):
    """A task has read or written more bytes."""

    task: T
    size: int


@dataclass(frozen=True)
class Done(Generic[T, R]):
    """A task has ended: it returned a result, or raised an error of an expected kind."""

    task: T
    result: R | None
    error: Exception | None


class _StopWork(BaseException):
    """The caller no longer waits. Not an Exception, which a task could catch."""


def run_all(
    tasks: Sequence[T],
    work: Callable[[T, Advance], R],
    *,
    jobs: int,
    expected: tuple[type[Exception], ...],
    seconds: float = inf,
) -> Iterator[Moved[T] | Done[T, R]]:
    """Yield the progress and the results of tasks, while `work` is called with each in threads.

    A caller that stops iterating (Ctrl-C) does not have to wait: the threads end when they next
    report progress, or with the process.

    Args:
        tasks: the arguments for `work`.
        work: called with a task and a function that reports its progress.
        jobs: how many tasks run in parallel.
        expected: errors that end their own task only.
        seconds: how long all tasks together may take.

    Raises:
        Exception: an unexpected error of a task, unchanged.
        TimeoutError: some tasks have not ended after this many seconds.
    """
    stop = Event()
    todo: SimpleQueue[T] = SimpleQueue()
    events: SimpleQueue[Moved[T] | Done[T, R]] = SimpleQueue()
    for task in tasks:
        todo.put(task)
    for _ in range(min(jobs, len(tasks))):
        Thread(target=_run_tasks, args=(work, todo, events, stop), daemon=True).start()
    unfinished = len(tasks)
    until = time.monotonic() + seconds
    try:
        while unfinished:
            # A queue does not take an infinite timeout.
            timeout = max(until - time.monotonic(), 0) if seconds != inf else None
            try:
                event = events.get(timeout=timeout)
            except Empty:
                raise TimeoutError from None
            if isinstance(event, Done):
                unfinished -= 1
                if event.error is not None and not isinstance(event.error, expected):
                    raise event.error
            yield event
    finally:
        stop.set()


def _run_tasks(
    work: Callable[[T, Advance], R],
    todo: SimpleQueue[T],
    events: SimpleQueue[Moved[T] | Done[T, R]],
    stop: Event,
) -> None:
    def advance(task: T, size: int) -> None:
        if stop.is_set():
            raise _StopWork
        if size:
            events.put(Moved(task, size))

    while not stop.is_set():
        try:
            task = todo.get_nowait()
        except Empty:
            return
        try:
            events.put(Done(task, work(task, partial(advance, task)), None))
        except _StopWork:
            return
        except Exception as error:  # raised again by `run_all`, or part of its result
            events.put(Done(task, None, error))
