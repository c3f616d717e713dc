"""The process in which runs are made.

It stays for the next ones: to import TensorFlow costs more than a few steps.
"""

from __future__ import annotations

import json
import select
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from envlock.guest import launch
from envlock.guest.tracing.trace_program import DONE

PROGRAM = "tracing.trace_program"
# What a process has forked can hold the connection open after it has ended.
LOOK = 0.5
"""Seconds between looks at whether a process lives."""

Key = tuple[str, tuple[tuple[str, str], ...], bool, str]
"""An interpreter, its variables, whether graphs run one operation at a time, and the mode.

Each mode has a process of its own: built graphs and shapes of collectives stay from other runs.
"""


class Children:
    """Has one process at most, as each may take all of a GPU's memory."""

    def __init__(self) -> None:
        self._child: _Child | None = None
        self.output = Path()
        """The file with the output and the errors of the last process."""

    def run(
        self,
        request: Mapping[str, object],
        python: Path | None,
        environ: Mapping[str, str],
        output: BinaryIO,
        timeout: float,
    ) -> int | None:
        """Return None where a process has done what is requested; its exit code where it has ended.

        A process that lives gets the request, if it has that interpreter and environment. `output` is for
        a new one, and each run may take `timeout` seconds.

        Raises:
            UsageError: there is no such interpreter.
            TimeoutError: a run took too long, and the process has been ended.
        """
        variables = tuple(sorted(environ.items()))
        key = str(python), variables, bool(request["serial"]), str(request["mode"])
        if self._child is not None and self._child.key != key:
            self.close()
        child = self._child
        if child is None:
            self._child = child = _start(key, request, python, environ, output)
            self.output = Path(output.name)
        else:
            with suppress(OSError):  # it has ended in the meantime
                child.line.sendall(json.dumps(request).encode() + b"\n")
        code: int | None = -1
        try:
            code = _wait(child, timeout)
        finally:  # also of an interrupt
            if code is not None:
                self.kill()
        return code

    def close(self) -> None:
        """Let the process end, if there is one."""
        if self._child is not None:
            self._child.line.close()
            with suppress(subprocess.TimeoutExpired):
                self._child.process.wait(launch.GRACE)
        self.kill()

    def kill(self) -> None:
        """End the process at once, and all that it has started."""
        if self._child is not None:
            launch.kill(self._child.process)
            self._child.line.close()
        self._child = None


class _Child(NamedTuple):
    """A process, its key, and the connection to it."""

    key: Key
    process: subprocess.Popen[bytes]
    line: socket.socket


def _start(
    key: Key,
    request: Mapping[str, object],
    python: Path | None,
    environ: Mapping[str, str],
    output: BinaryIO,
) -> _Child:
    ours, theirs = socket.socketpair()
    with theirs:
        child = launch.start(
            launch.bind_to_parent(launch.build_module_arguments(PROGRAM, request)),
            python,
            stdin=theirs.fileno(),
            output=output,
            errors=subprocess.STDOUT,
            environ=environ,
        )
    return _Child(key, child, ours)


def _wait(child: _Child, timeout: float) -> int | None:
    """Wait for a process; return None where it did what was requested, else its exit code."""
    until = time.monotonic() + timeout
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([child.line], [], [], min(left, LOOK))
        said = b""
        with suppress(OSError):
            if ready:
                said = child.line.recv(1)
        if said == DONE:
            return None
        if said:
            # A run is over: the next one has a limit of its own.
            until = time.monotonic() + timeout
        elif ready or child.process.poll() is not None:
            with suppress(subprocess.TimeoutExpired):  # it may have closed the line, and go on
                return child.process.wait(left)
    raise TimeoutError(timeout)
