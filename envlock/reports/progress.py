"""How a workflow reports progress: the caller decides whether and where it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Advance = Callable[[int], None]
"""Called with how much of the work was done since the last call."""


class Progress(Protocol):
    """Shows the progress of a command."""

    def say(self, text: str) -> None:
        """Show a sentence about the current step."""
        ...

    def line(self, text: str) -> None:
        """Show a line that another program printed."""
        ...

    def bar(
        self, title: str, total: int, *, in_bytes: bool = False
    ) -> AbstractContextManager[Advance]:
        """Return a context manager that shows the progress of one task; threads may advance it.

        Args:
            title: the task.
            total: the amount of work, in the unit in which it advances.
            in_bytes: the unit is bytes.
        """
        ...


class Silent:
    """Shows nothing."""

    def say(self, text: str) -> None:
        """Ignore a sentence about the current step."""

    def line(self, text: str) -> None:
        """Ignore a line that another program printed."""

    @contextmanager
    def bar(self, title: str, total: int, *, in_bytes: bool = False) -> Iterator[Advance]:
        """Yield a function that does nothing."""
        yield lambda _: None


SILENT = Silent()
