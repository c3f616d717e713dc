"""How far something long has come: a bar on stderr, where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(title: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Return a context manager that gives a function to call with the number of bytes that are done by now.

    It shows nothing where people asked for silence or nobody watches. One thread only may call the function.
    """
    if quiet or not on_terminal():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, completed=done)


def on_terminal() -> bool:
    """Return whether somebody may be watching stderr."""
    return sys.stderr is not None and sys.stderr.isatty()
