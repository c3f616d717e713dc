"""The process in which a user's script or function runs, and what it says of the runs.

It stays for the next ones: to import TensorFlow costs more than a few steps.
"""

from __future__ import annotations

import json
import math
import select
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from envlock.guest import launch
from envlock.guest.session import DONE
from envlock.guest.target import Target
from envlock.guest.training.store import LOG
from envlock.runtime.errors import FactError
from envlock.runtime.report import clean

PROGRAM = "session"
OUTPUT = "output"
"""The file with what the program printed."""
TAIL = 20_000
"""Bytes at the end of the output in which the last words are looked for."""
# What a process has forked can hold the connection open after it has ended.
LOOK = 0.5
"""Seconds between looks at whether a process lives."""


@dataclass(frozen=True)
class Host:
    """Where a program runs.

    Attributes:
        python: the interpreter; None for this one.
        environ: its variables; those of this process when not given.
        stream: where the program's output goes; None for the file that `make_runs` is given.
    """

    python: Path | None
    environ: Mapping[str, str] | None = None
    stream: int | None = None


class Session:
    """Has one process at most, as each may take all of a GPU's memory."""

    def __init__(self) -> None:
        self._child: _Child | None = None

    def make_runs(
        self,
        asked: Mapping[str, Any],
        host: Host,
        timeout: float = math.inf,
        output: Path | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> dict[str, Any]:
        """Have runs made, and return what the log says of these: see `read_log`.

        A process that lives gets the request, if it has the same host and mode: built graphs and shapes of
        collectives stay from other runs.
        Where the process dies, the run and its last words are written down as its end.

        Args:
            asked: what `envlock/guest/session.py` does; the log is in its `folder`.
            host: where.
            timeout: the most seconds that a run may take.
            output: the file for what a new process prints; one beside the log when not given.
            advance: gets 1 after each run.

        Raises:
            UsageError: there is no such interpreter.
            TimeoutError: a run took too long, and the process has been ended.
        """
        log = Path(asked["folder"]) / LOG
        start = log.stat().st_size if log.exists() else 0
        key = host, bool(asked.get("serial")), str(asked.get("mode"))
        if self._child is not None and self._child.key != key:
            self.close()
        child = self._child
        if child is None:
            self._child = child = _start(key, asked, host, output or log.with_name(OUTPUT))
        else:
            with suppress(OSError):  # it has ended in the meantime
                child.line.sendall(json.dumps(asked).encode() + b"\n")
        code: int | None = -1
        try:
            code = _wait(child, timeout, advance)
        finally:  # also of an interrupt
            if code is not None:
                self.kill()
        if code is not None:
            _write_end(log, start, asked["runs"], code, child.output)
        return read_log(log, start)

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
    """A process, what makes it this one, the connection to it, and the file with what it prints."""

    key: tuple[Host, bool, str]
    process: subprocess.Popen[bytes]
    line: socket.socket
    output: Path


def run_once(
    target: Target, asked: Mapping[str, Any], host: Host, timeout: float
) -> dict[str, Any]:
    """Have one run of a program made in a new process, and return what was seen there.

    Args:
        target: the program.
        asked: what `envlock/guest/session.py` does with it.
        host: where.
        timeout: the most seconds that it may take.

    Raises:
        UsageError: it cannot be run so, or there is no such interpreter.
        FactError: it fails, or takes too long.
    """
    with closing(Session()) as session:
        try:
            said = session.make_runs({**target.to_json(), **asked, "runs": [0]}, host, timeout)
        except TimeoutError:
            said = read_log(Path(asked["folder"]) / LOG)
    if "unusable" in said:
        raise target.unusable(said["unusable"], "repeat")
    late = {"end": "failed", "message": f"it did not answer within {timeout:g} s"}
    end: dict[str, Any] = said["ends"].get(0, late)
    if end["end"] == "failed":
        message = f"{target} failed: {clean(end['message'])[:300]}"
        raise FactError(message, hint=f"try `envlock repeat {target}`")
    return end


def _start(key: tuple[Host, bool, str], asked: Mapping[str, Any], host: Host, path: Path) -> _Child:
    words = launch.bind_to_parent(launch.build_module_arguments(PROGRAM, asked))
    program = host.python
    with ExitStack() as undo:
        ours, theirs = map(undo.enter_context, socket.socketpair())
        with path.open("ab") as output:
            process = launch.start(
                words,
                program,
                stdin=theirs.fileno(),
                output=output if host.stream is None else host.stream,
                errors=subprocess.STDOUT,
                environ=host.environ,
            )
        undo.pop_all()
    theirs.close()
    return _Child(key, process, ours, path)


def _wait(child: _Child, timeout: float, advance: Callable[[int], None]) -> int | None:
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
            advance(1)
            # A run is over: the next one has a limit of its own.
            until = time.monotonic() + timeout
        elif ready or child.process.poll() is not None:
            with suppress(subprocess.TimeoutExpired):  # it may have closed the line, and go on
                return child.process.wait(left)
    raise TimeoutError(timeout)


def _write_end(log: Path, start: int, runs: Sequence[int], code: int, output: Path) -> None:
    """Write down in which run a process died, and its last words."""
    said = read_log(log, start)
    missing = [number for number in runs if number not in said["ends"]]
    if not missing or "unusable" in said:
        return
    with output.open("rb") as file:
        file.seek(max(0, output.stat().st_size - TAIL))
        words = clean(launch.pick_error_line(file.read().decode("utf-8", "replace")))
    message = f"the process {launch.describe_exit(code)}; its last output: {words}"
    end = {"run": missing[0], "end": "failed", "message": message, "traceback": ""}
    with log.open("ab") as lines:
        lines.write(json.dumps(end).encode("ascii") + b"\n")


def read_log(log: Path, start: int = 0) -> dict[str, Any]:
    """Return what a log says from a byte on: the `ends` of runs, and what else was seen, later lines
    over earlier ones.
    """
    said: dict[str, Any] = {"ends": {}}
    if not log.exists():
        return said
    with log.open("rb") as lines:
        lines.seek(start)
        for text in lines:
            # Looked at as text: a line with the values of a step can be long, and slow to parse.
            if not text.endswith(b"\n") or (text.startswith(b'{"run"') and b'"end": "' not in text):
                continue
            line = json.loads(text)
            if "run" in line:
                said["ends"][line["run"]] = line
            else:
                said.update(line)
    return said
