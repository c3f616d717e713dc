"""Engines that are commands: read the lines of a build while it runs, and always end it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from envlock.image.engines.container_run import Finished
from envlock.image.engines.engine_errors import EngineError, explain, strip_colors

STOP_SECONDS = 15
"""How long a client may take to end after each signal."""


def follow(
    command: Sequence[str], environ: Mapping[str, str], on_line: Callable[[str], None]
) -> list[str] | None:
    """Run a command and pass on its lines; return None if it succeeded, else its last lines.

    Raises:
        OSError: there is no such command.
    """
    last: deque[str] = deque(maxlen=1000)
    process = subprocess.Popen(
        command,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        # Ctrl-C then reaches only this process, which passes it on, once.
        start_new_session=True,
    )
    try:
        assert process.stdout is not None  # noqa: S101 (for the type checker)
        for raw in process.stdout:
            line = strip_colors(raw)
            last.append(line)
            on_line(line)
        code = process.wait()
    finally:
        _stop(process)
    if code == 0:
        return None
    return list(last)


def _stop(process: subprocess.Popen[str]) -> None:
    """End a client and its plugin if they are still running; the builder then stops its current
    step.
    """
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=STOP_SECONDS)
    if process.stdout is not None:
        process.stdout.close()


def ask(program: str, *arguments: str) -> Finished:
    """Run a command to its end; return its exit code and its output.

    Raises:
        EngineError: it is not installed.
    """
    try:
        done = subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise EngineError(
            f"cannot start {program}: {error.strerror}", hint=f"install {program}"
        ) from None
    return Finished(done.returncode, done.stdout, done.stderr)


def call(program: str, *arguments: str, image: str | None = None, about: str = "") -> str:
    """Return the output of a command.

    Args:
        program, arguments: the command.
        image: the image of the command, for an error.
        about: the beginning of an error, before the last line of the command; without it, all of
            its lines are used.

    Raises:
        EngineError: it is not installed, or failed.
    """
    done = ask(program, *arguments)
    if done.exit_code != 0:
        error = done.stderr.strip() or done.stdout.strip()
        if about:
            # A pull may have been tried several times: the last line is about the last attempt.
            error = about + error.rpartition("\n")[2].removeprefix("Error: ")
        raise explain(error, image=image, program=program)
    return done.stdout
