"""How a workflow says what is going on: the caller decides whether, and where, it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Advance = Callable[[int], None]
"""Takes how much of the work was done since the last call."""


class Progress(Protocol):
    """Shows what is going on."""

    def say(self, text: str) -> None:
        """Take a sentence about what happens now."""
        ...

    def line(self, text: str) -> None:
        """Take a line that another program printed."""
        ...

    def bar(
        self, title: str, total: int, *, in_bytes: bool = False
    ) -> AbstractContextManager[Advance]:
        """Return what shows how far something is while it is open; threads may advance it.

        Args:
            title: what is going on.
            total: when it is done, in the unit that it advances by.
            in_bytes: the unit is bytes.
        """
        ...


class Silent:
    """Shows nothing."""

    def say(self, text: str) -> None:
        """Take a sentence about what happens now."""

    def line(self, text: str) -> None:
        """Take a line that another program printed."""

    @contextmanager
    def bar(self, title: str, total: int, *, in_bytes: bool = False) -> Iterator[Advance]:
        """Yield what does nothing."""
        yield lambda _: None


SILENT = Silent()
