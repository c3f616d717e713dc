"""Several tasks in parallel, in threads that end with the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from math import inf
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TypeVar

from envlock.runtime.errors import EnvlockError

TIMEOUT = 3600.0
"""Seconds that reading or downloading all packages may take by default."""

T = TypeVar("T")
R = TypeVar("R")


def run_all(
    tasks: Sequence[T], work: Callable[[T], R], *, jobs: int, seconds: float = inf
) -> Iterator[tuple[T, R | EnvlockError]]:
    """Yield each task with its result, or with its error, while `work` is called in threads.

    A caller that stops iterating (Ctrl-C) does not have to wait: the threads end with the process.

    Args:
        tasks: the arguments for `work`.
        work: called with a task.
        jobs: how many tasks run in parallel.
        seconds: how long all tasks together may take.

    Raises:
        Exception: an unexpected error of a task, unchanged.
        TimeoutError: some tasks have not ended after this many seconds.
    """
    stop = Event()
    todo: SimpleQueue[T] = SimpleQueue()
    ended: SimpleQueue[tuple[T, R | Exception]] = SimpleQueue()
    for task in tasks:
        todo.put(task)

    def run() -> None:
        while not stop.is_set():
            try:
                task = todo.get_nowait()
            except Empty:
                return
            try:
                ended.put((task, work(task)))
            except Exception as error:  # raised again below, or part of the result
                ended.put((task, error))

    for _ in range(min(jobs, len(tasks))):
        Thread(target=run, daemon=True).start()
    until = time.monotonic() + seconds
    try:
        for _ in tasks:
            # A queue does not take an infinite timeout.
            timeout = max(until - time.monotonic(), 0) if seconds != inf else None
            try:
                task, result = ended.get(timeout=timeout)
            except Empty:
                raise TimeoutError from None
            if isinstance(result, Exception) and not isinstance(result, EnvlockError):
                raise result
            yield task, result
    finally:
        stop.set()
