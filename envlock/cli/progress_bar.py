"""A bar on a terminal, drawn by rich: most commands show none, and do without loading it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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

from envlock.reports.progress import Advance


@contextmanager
def draw_bar(title: str, total: int, *, in_bytes: bool) -> Iterator[Advance]:
    """Show on stderr how far something is while the block runs; threads may advance it."""
    columns = [TextColumn("{task.description}"), BarColumn()]
    if in_bytes:
        columns += [DownloadColumn(), TransferSpeedColumn()]
    else:
        columns.append(MofNCompleteColumn())
    columns.append(TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda amount: progress.advance(task, amount)
