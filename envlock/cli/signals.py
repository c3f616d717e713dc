"""Signals that end a command: it ends its children, and prints what it knows, as after Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import typer

from envlock.cli.output import say

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""The signals of job schedulers, timeouts and terminals that close, in addition to the SIGINT of
Ctrl-C.
"""
BY_SIGNAL = 128
"""The number that a shell adds to the signal that ended a process."""


class StoppedError(KeyboardInterrupt):
    """A signal arrived that ends the command; code that handles Ctrl-C can handle it, too."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Stop:
    """The signal that has ended a command; Ctrl-C if there was no other signal.

    It is the handler of these signals, too: the first one raises, a second one ends the process.
    """

    def __init__(self) -> None:
        self.number: int = signal.SIGINT

    def __call__(self, number: int, frame: FrameType | None) -> NoReturn:
        """Raise `StoppedError`."""
        self.number = number
        signal.signal(number, signal.SIG_DFL)
        raise StoppedError(number)

    @property
    def exit_code(self) -> int:
        """The exit code of a command that it ended."""
        return BY_SIGNAL + self.number


@contextmanager
def interrupt_on_signals() -> Iterator[Stop]:
    """Let a signal that would end the process raise `StoppedError` in the block; a second signal
    ends the process as usual.

    Blocks can be nested: the inner one gets the signal.

    Raises:
        Exit: the block has not caught it.
    """
    stop = Stop()
    before = {}
    for number in ENDING:
        handler = signal.getsignal(number)
        # A signal that the caller makes the process ignore, as nohup does with SIGHUP, is still
        # ignored.
        if handler is signal.SIG_DFL or isinstance(handler, Stop):
            before[number] = signal.signal(number, stop)
    try:
        yield stop
    except StoppedError as error:
        # The parser would treat it as Ctrl-C.
        say(f"error: stopped by {error}, before anything was known\n")
        raise typer.Exit(stop.exit_code) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
