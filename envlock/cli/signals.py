"""Signals that end a command: it ends its children, and says what it knows, as after Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import typer

from envlock.cli.output import say

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""What jobs, timeouts and terminals that close send, beside the SIGINT of Ctrl-C."""
BY_SIGNAL = 128
"""What a shell adds to the number of the signal that ended a process."""


class StoppedError(KeyboardInterrupt):
    """A signal came that ends the command; whoever can handle Ctrl-C can handle it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Stop:
    """The signal that has ended a command; Ctrl-C where no other one came."""

    def __init__(self) -> None:
        self.number: int = signal.SIGINT

    @property
    def exit_code(self) -> int:
        """The exit code of a command that it ended."""
        return BY_SIGNAL + self.number


@contextmanager
def interrupt_on_signals() -> Iterator[Stop]:
    """Let a signal that would end the process raise `StoppedError` inside; the second one ends it as ever.

    Raises:
        Exit: nothing inside has caught it.
    """
    stop = Stop()

    def end(number: int, frame: FrameType | None) -> NoReturn:
        stop.number = number
        signal.signal(number, signal.SIG_DFL)
        raise StoppedError(number)

    before = {}
    for number in ENDING:
        # What the caller lets the process ignore, as nohup does with SIGHUP, stays ignored.
        if signal.getsignal(number) is signal.SIG_DFL:
            before[number] = signal.signal(number, end)
    try:
        yield stop
    except StoppedError as error:
        # The parser would take it for Ctrl-C.
        say(f"error: stopped by {error}, before anything was known\n")
        raise typer.Exit(stop.exit_code) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
