"""Start a program of `envlock/numerics/child` in the user's interpreter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import envlock
from envlock.lock.interpreter import BORROWED
from envlock.runtime.errors import UsageError


def start(
    program: str,
    asked: Mapping[str, Any],
    *,
    python: Path | None,
    output: int | IO[bytes],
    errors: int | IO[bytes],
    environ: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Return the process in which `program`, a module with a `main()`, does what is asked, in a session of its own.

    Over there `import envlock` is this envlock, so a script's `envlock.record()` reaches us, and envlock need not be
    installed; no other module of this environment is seen.

    Raises:
        UsageError: there is no such interpreter.
    """
    code = f"{BORROWED}\nfrom {program} import main\nmain()\n"
    command = [str(python or sys.executable), "-c", code, str(Path(envlock.__file__).parent), json.dumps(asked)]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=None if environ is None else dict(environ),
            start_new_session=True,
        )
    except OSError as error:
        hint = "name the interpreter of an environment, such as .venv/bin/python"
        raise UsageError(f"cannot run {command[0]}: {error.strerror}", hint=hint) from None


def end(child: subprocess.Popen[bytes]) -> None:
    """End a child and what it has started; the wait is bounded."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):  # a task stuck in a driver answers to nothing
        child.wait(5)


def ending(code: int) -> str:
    """Return how a process that gave no reason ended."""
    if code >= 0:
        return f"the process exited with code {code}"
    with suppress(ValueError):
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process was ended by signal {-code}"
