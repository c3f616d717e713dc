"""Data on stdout, talk and progress on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TextIO

from envlock.runtime.errors import EnvlockError, UsageError, WriteError
from envlock.runtime.report import clean, clean_lines
from envlock.workflows.progress import Advance


def emit(data: str | bytes) -> None:
    """Print data; a reader that has gone away (`| head`) is no error, and must not change the exit code.

    Raises:
        UsageError: stdout is closed, or cannot take it (a full disk).
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "replace") + b"\n"
    if sys.stdout is None:
        raise UsageError(
            "cannot write to stdout: it is closed",
            hint="open it, or use `-o FILE` if the command has it",
        )
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
    except OSError as error:
        _discard(sys.stdout)
        raise make_stream_error(error) from None


def settle() -> None:
    """Drop what a stream did not take, or Python would try once more when it exits, and change the exit code."""
    _settle(sys.stdout)
    _settle(sys.stderr)


def _settle(stream: TextIO | None) -> None:
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        _discard(stream)


def make_stream_error(error: OSError) -> UsageError:
    """Return the error to end with when stdout did not take all of it."""
    return UsageError(
        f"cannot write to stdout: {error.strerror}", hint="check the redirection of stdout"
    )


def make_disk_error(error: OSError) -> WriteError:
    """Return the error to end with when the disk or the system fails at a file that nobody expected to fail."""
    place = "a file"
    if isinstance(error.filename, str | bytes):
        place = clean(os.fsdecode(error.filename))
    return WriteError(
        f"cannot use {place}: {error.strerror}",
        hint="check permissions, free space and limits; files are replaced whole or not at all",
    )


def say(text: str) -> None:
    """Print text on stderr, where no name in it moves a terminal; one that is closed or full changes no exit code."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(clean_lines(text))
        sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)


def talk(message: str, *, quiet: bool = False) -> None:
    """Print a message for people, unless they asked for silence."""
    if not quiet:
        say(f"{message}\n")


def fail(error: EnvlockError) -> None:
    """Print an error: what is wrong, and what to do; details such as a traceback come first."""
    if error.details:
        say("".join(f"{line}\n" for line in error.details.splitlines()))
    say(f"error: {error.message}\n")
    if error.hint is not None:
        say(f"hint: {error.hint}\n")


def _discard(stream: TextIO) -> None:
    """Let what is still in the buffer go nowhere, or Python would try once more when it exits, and fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def has_color() -> bool:
    """Return whether stdout is a terminal that wants colours (https://no-color.org)."""
    return (
        sys.stdout is not None
        and sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


PERIOD = 10.0
"""Seconds between two lines of progress where nobody watches a bar."""


class Terminal:
    """Shows progress on stderr: sentences always, bars and all lines of another program where a person is watching."""

    def __init__(self, quiet: bool) -> None:
        """Say nothing at all with `quiet`."""
        self.quiet = quiet
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self.watched = is_terminal and os.environ.get("TERM") != "dumb" and not quiet
        self._last = monotonic()

    def say(self, text: str) -> None:
        """Print a sentence about what happens now."""
        talk(text, quiet=self.quiet)

    def line(self, text: str) -> None:
        """Print a line of another program; where nobody is watching, one every `PERIOD` seconds."""
        if self.watched:
            talk(text)
            return
        if not text.strip():
            return
        now = monotonic()
        if now - self._last >= PERIOD:
            self._last = now
            self.say(text)

    def _make_advance(self, title: str, total: int) -> Advance:
        """Return a function that says how far something is, a line every `PERIOD` seconds: people read logs, too."""
        done, last = 0, monotonic()

        def advance(amount: int) -> None:
            nonlocal done, last
            done += amount
            if total and monotonic() - last >= PERIOD:
                last = monotonic()
                self.say(f"{title}: {100 * done // total} %")

        return advance

    @contextmanager
    def bar(self, title: str, total: int, *, in_bytes: bool = False) -> Iterator[Advance]:
        """Show how far something is while the block runs; threads may advance it."""
        if not self.watched:
            yield self._make_advance(title, total)
            return
        if not total:
            yield lambda _: None
            return
        # Start-up time: rich takes 60 ms; most commands show no bar, and logs and pipes never do.
        from envlock.cli.progress_bar import draw_bar

        with draw_bar(title, total, in_bytes=in_bytes) as advance:
            yield advance
