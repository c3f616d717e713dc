"""Let a child process show in which state TensorFlow is, with a bounded wait."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from envlock.runtime.errors import FactError, UsageError

TIMEOUT = 300.0  # seconds: 4 are usual, half of that is `import tensorflow`
_MARK = "envlock-proof:"


def observe(python: Path | None, setup: str | None, timeout: float = TIMEOUT) -> dict[str, Any]:
    """Return what `proof_program` sees in the interpreter `python`, after running the lines of `setup`.

    Raises:
        UsageError: there is no such interpreter, or the lines themselves fail.
        FactError: TensorFlow died, or did not answer in time; the message holds its last words.
    """
    program = files("envlock").joinpath("determinism", "proof_program.py").read_text(encoding="utf-8")
    command = [str(python or sys.executable), "-c", program, json.dumps({"setup": setup, "mark": _MARK})]
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        hint = "name the interpreter of an environment, such as .venv/bin/python"
        raise UsageError(f"cannot run {command[0]}: {error.strerror}", hint=hint) from None
    try:
        output, errors = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end(child)
        raise FactError(f"TensorFlow did not show its state within {timeout:g} s", hint="try again") from None
    except KeyboardInterrupt:
        end(child)
        raise
    return _answer(output.decode("utf-8", "replace"), errors.decode("utf-8", "replace"), child.returncode, setup)


def _answer(output: str, errors: str, code: int, setup: str | None) -> dict[str, Any]:
    line = output.rpartition(_MARK)[2].partition("\n")[0] if _MARK in output else ""
    try:
        seen: dict[str, Any] = json.loads(line)
    except ValueError:
        raise FactError(
            f"TensorFlow {ending(code)} before it could show its state: {last_words(errors)}",
            hint="`envlock doctor` without --prove tells which variable or flag it is",
        ) from None
    if "failed" in seen and setup is not None:
        raise UsageError(f"the lines given with --with, or TensorFlow's import, fail: {seen['failed']}")
    if "failed" in seen:
        hint = "name the interpreter of an environment with TensorFlow: --python .venv/bin/python"
        raise FactError(f"TensorFlow cannot be imported: {seen['failed']}", hint=hint)
    return seen


def ending(code: int) -> str:
    """Return how a process ended, for a sentence that begins with its name."""
    return f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"


def last_words(errors: str) -> str:
    """Return the line of stderr that tells most of why a process died."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith("F0") or "Error" in line or "Unknown flag" in line]
    return ((fatal or lines or ["it said nothing"])[0].rpartition("] ")[2])[:300]


def end(child: subprocess.Popen[bytes]) -> None:
    """End the child and what it has started; no wait here is unbounded."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):  # a task stuck in the driver answers to nothing
        child.wait(5)
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()
