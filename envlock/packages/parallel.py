"""Several tasks at once, in threads that nobody has to wait for."""

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
"""Told the number of bytes since it was called last, and called now and then with 0 where there are none."""

TIMEOUT = 3600.0
"""Seconds that reading or downloading all packages may take, where nobody says otherwise."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Moved(Generic[T]):
    """So many bytes more of a task are dealt with."""

    task: T
    size: int


@dataclass(frozen=True)
class Done(Generic[T, R]):
    """A task is through: it returned something, or raised an error of a kind that was expected."""

    task: T
    result: R | None
    error: Exception | None


class _StopWork(BaseException):
    """Nobody waits for it any more; not an Exception, since no worker is to go on after it."""


def run_all(
    tasks: Sequence[T],
    work: Callable[[T, Advance], R],
    *,
    jobs: int,
    expected: tuple[type[Exception], ...],
    seconds: float = inf,
) -> Iterator[Moved[T] | Done[T, R]]:
    """Yield what happens while `work` is called with every task, `jobs` at a time, in threads.

    Who stops iterating (Ctrl-C) need not wait: the threads end at their next word of progress, or with the process.

    Raises:
        Exception: what a task raised that was not expected, as it is.
        TimeoutError: some tasks are not done after this many seconds, whatever they are doing.
    """
    stop = Event()
    todo: SimpleQueue[T] = SimpleQueue()
    events: SimpleQueue[Moved[T] | Done[T, R]] = SimpleQueue()
    for task in tasks:
        todo.put(task)
    for _ in range(min(jobs, len(tasks))):
        Thread(target=_worker, args=(work, todo, events, stop), daemon=True).start()
    left = len(tasks)
    until = time.monotonic() + seconds
    try:
        while left:
            try:
                event = events.get(
                    timeout=None if seconds == inf else max(until - time.monotonic(), 0)
                )
            except Empty:
                raise TimeoutError from None
            if isinstance(event, Done):
                left -= 1
                if event.error is not None and not isinstance(event.error, expected):
                    raise event.error
            yield event
    finally:
        stop.set()


def _worker(
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
        except Exception as error:  # raised again by the one who iterates, or told
            events.put(Done(task, None, error))
