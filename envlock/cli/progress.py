"""A progress bar on stderr, where a person is watching."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]
"""Takes by how much the work got further."""


@contextmanager
def bar(title: str, total: int, *, quiet: bool, in_bytes: bool = False) -> Iterator[Advance]:
    """Show how far something is while the block runs, if stderr is a terminal; threads may advance it.

    Args:
        title: what is going on.
        total: when it is done, in the unit that the block advances by.
        quiet: show nothing.
        in_bytes: the unit is bytes: show their rate, too.
    """
    if quiet or sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    amount = (DownloadColumn(), TransferSpeedColumn()) if in_bytes else (MofNCompleteColumn(),)
    columns = (TextColumn("{task.description}"), BarColumn(), *amount, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda amount: progress.advance(task, amount)
