"""Data goes to stdout, messages and progress to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TextIO

from envlock.reports.progress import Advance
from envlock.runtime.errors import EnvlockError, UsageError, WriteError
from envlock.runtime.report import clean, clean_lines


def emit(data: str | bytes) -> None:
    """Print data; a reader that has ended (`| head`) is not an error, and must not change the exit
    code.

    Raises:
        UsageError: stdout is closed, or cannot be written (a full disk).
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
    """Discard what a stream could not write, or Python would try once more when it exits, and
    change the exit code.
    """
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
    """Return the error to exit with if stdout could not be written completely."""
    return UsageError(
        f"cannot write to stdout: {error.strerror}", hint="check the redirection of stdout"
    )


def make_disk_error(error: OSError) -> WriteError:
    """Return the error to exit with if the disk or the system fails at a file that is always
    expected to work.
    """
    place = (
        clean(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else "a file"
    )
    return WriteError(
        f"cannot use {place}: {error.strerror}",
        hint="check permissions, free space and limits; files are replaced whole or not at all",
    )


def say(text: str) -> None:
    """Print text on stderr with control characters escaped; a closed or full stderr does not change
    the exit code.
    """
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(clean_lines(text))
        sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)


def talk(message: str, *, quiet: bool = False) -> None:
    """Print a message, unless the user has asked for silence."""
    if not quiet:
        say(f"{message}\n")


def fail(error: EnvlockError) -> None:
    """Print an error: what is wrong, and a remedy; details such as a traceback come first."""
    if error.details:
        say("".join(f"{line}\n" for line in error.details.splitlines()))
    say(f"error: {error.message}\n")
    if error.hint is not None:
        say(f"hint: {error.hint}\n")


def _discard(stream: TextIO) -> None:
    """Discard what is still in the buffer, or Python would try once more when it exits, and fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def has_color() -> bool:
    """Return whether stdout is a terminal that shows colours (https://no-color.org)."""
    return (
        sys.stdout is not None
        and sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def get_width() -> int | None:
    """Return the columns of the terminal that shows stdout; None without a terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (OSError, ValueError):
        return None


PERIOD = 10.0
"""Seconds between two lines of progress if stderr is not a terminal."""


class Terminal:
    """Shows progress on stderr: always sentences; bars and all lines of another program only in a
    terminal.
    """

    def __init__(self, quiet: bool = False) -> None:
        """Print nothing at all with `quiet`."""
        self.quiet = quiet
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self.watched = is_terminal and os.environ.get("TERM") != "dumb" and not quiet
        self._last = monotonic()

    def say(self, text: str) -> None:
        """Print a sentence about the current step."""
        talk(text, quiet=self.quiet)

    def line(self, text: str) -> None:
        """Print a line of another program; if stderr is not a terminal, only one every `PERIOD`
        seconds.
        """
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
        """Return a function that prints the progress, a line every `PERIOD` seconds, for readers of
        logs.
        """
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
        """Show a progress bar while the block runs; threads may advance it."""
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
