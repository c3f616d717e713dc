"""Data on stdout, talk on stderr."""

from __future__ import annotations

import os
import sys

from envlock.runtime.errors import EnvlockError, UsageError


def emit(data: str | bytes) -> None:
    """Print data; a reader that has gone away (`| head`) is no error, and must not change the exit code.

    Raises:
        UsageError: stdout is closed, or cannot take it (a full disk).
    """
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "replace") + b"\n"
    if sys.stdout is None:
        raise UsageError("cannot write to stdout: it is closed", hint="open it, or use -o FILE where there is one")
    try:
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _discard()
    except OSError as error:
        _discard()
        raise UsageError(f"cannot write to stdout: {error.strerror}", hint="look where it leads to") from None


def _discard() -> None:
    """Let what is still in the buffer go nowhere, or Python would try once more when it exits, and fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def talk(message: str, *, quiet: bool = False) -> None:
    """Print a message for people, unless they asked for silence."""
    if not quiet:
        print(message, file=sys.stderr)


def fail(error: EnvlockError) -> None:
    """Print an error: what is wrong, and what to do."""
    print(f"error: {_line(error.message)}", file=sys.stderr)
    if error.hint is not None:
        print(f"hint: {_line(error.hint)}", file=sys.stderr)


def color() -> bool:
    """Return whether stdout is a terminal that wants colours (https://no-color.org)."""
    return (
        sys.stdout is not None
        and sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def _line(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
