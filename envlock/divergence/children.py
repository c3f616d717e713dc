"""The process in which runs are made. It stays for the next ones: to import TensorFlow costs more than a few steps."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from envlock.guest import launch

PROGRAM = "tracing.trace_program"
LOOK = 0.5  # seconds between looks at whether a process lives: what it has forked can hold the connection open

Key = tuple[str, tuple[tuple[str, str], ...], bool, str]
"""An interpreter, the variables of its environment, whether graphs run one operation at a time, and the mode.

What stays of runs in another mode is in the way: built graphs of other modules, and shapes of collectives.
"""


class Children:
    """Has one process at most, as each may take all of a GPU's memory."""

    def __init__(self) -> None:
        self._child: _Child | None = None
        self.output = Path()
        """What the last process says, and writes of its errors."""

    def run(
        self,
        asked: Mapping[str, Any],
        python: Path | None,
        environ: Mapping[str, str],
        output: BinaryIO,
        timeout: float,
    ) -> int | None:
        """Return the exit code of a process that has ended over what it was asked for; None where it did that.

        A process that is there is asked again, if it is of that interpreter and environment; `output`: of a new one.

        Raises:
            UsageError: there is no such interpreter.
            TimeoutError: it took too long, and has been ended.
        """
        key = str(python), tuple(sorted(environ.items())), bool(asked["serial"]), str(asked["mode"])
        if self._child is not None and self._child.key != key:
            self.close()
        child = self._child
        if child is None:
            self._child = child = _start(key, asked, python, environ, output)
            self.output = Path(output.name)
        else:
            with suppress(OSError):  # it has ended in the meantime
                child.line.sendall(json.dumps(asked).encode() + b"\n")
        code: int | None = -1
        try:
            code = _wait(child, timeout)
        finally:  # also of an interrupt
            if code is not None:
                self._kill()
        return code

    def close(self) -> None:
        """Let the process end, if there is one."""
        if self._child is not None:
            self._child.line.close()
            with suppress(subprocess.TimeoutExpired):
                self._child.process.wait(launch.GRACE)
        self._kill()

    def _kill(self) -> None:
        if self._child is not None:
            launch.end(self._child.process)
            self._child.line.close()
        self._child = None


class _Child(NamedTuple):
    """A process, what it is, and the line to it."""

    key: Key
    process: subprocess.Popen[bytes]
    line: socket.socket


def _start(
    key: Key,
    asked: Mapping[str, Any],
    python: Path | None,
    environ: Mapping[str, str],
    output: BinaryIO,
) -> _Child:
    ours, theirs = socket.socketpair()
    with theirs:
        words = launch.module(PROGRAM, asked)
        stdin = theirs.fileno()
        child = launch.start(
            words, python, stdin=stdin, output=output, errors=subprocess.STDOUT, environ=environ
        )
    return _Child(key, child, ours)


def _wait(child: _Child, timeout: float) -> int | None:
    """Wait until a process has done what it was asked for (None), or has ended."""
    until = time.monotonic() + timeout
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([child.line], [], [], min(left, LOOK))
        with suppress(OSError):
            if ready and child.line.recv(1):
                return None
        if ready or child.process.poll() is not None:
            with suppress(subprocess.TimeoutExpired):  # it may have closed the line, and go on
                return child.process.wait(left)
    raise TimeoutError(timeout)
