"""`envlock canary`"""

from __future__ import annotations

from pathlib import Path

import envlock
from envlock.cli.options import (
    FormatOption,
    LockArgument,
    PythonOption,
    find_source,
    load_config,
    show,
)
from envlock.cli.output import Terminal
from envlock.cli.parser import Command, make_app
from envlock.runtime.lockfile import find

app = make_app()


@app.command(cls=Command)
def canary(
    lock: LockArgument = None,
    python: PythonOption = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Run a fixed set of operations and compare the results with the lockfile, bit for bit.

    Exit 0: the same bits. Exit 1: different bits, with the most likely cause. Exit 4: not
    comparable.

    The operations run in a child process with fixed thread counts and op determinism, so that
    machines can be compared. Everything else (oneDNN, XLA, the CPU) is left as it is: its effect
    is what the canary compares.

    \b
    Examples:
      envlock canary                     compare this machine with what `envlock capture --canary` wrote
      envlock canary other.lock -f json  for programs
    """
    show(envlock.canary(_find_lock(lock), python=python, progress=Terminal()), format)


def _find_lock(lock: str | None) -> str | bytes | None:
    """Return the lockfile to use; None if none was found."""
    project = load_config()
    if lock is None and project.lock is None and find(str(Path.cwd())) is None:
        return None
    return find_source(lock, project)
