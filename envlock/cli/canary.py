"""`envlock canary`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envlock.cli.options import (
    STDIN,
    FormatOption,
    LockArgument,
    PythonOption,
    QuietOption,
    config,
    show,
    source,
)
from envlock.cli.output import Terminal, emit, talk
from envlock.cli.parser import Command, new_app
from envlock.runtime.errors import UsageError
from envlock.runtime.lockfile import find
from envlock.workflows.locks import lock_of

app = new_app()

UpdateOption = Annotated[
    bool, typer.Option("--update", help="Write the results into the lockfile.")
]
RequireOption = Annotated[
    bool,
    typer.Option(
        "--require", help="Fail if the lockfile has no canary. [default: compare if it has one]"
    ),
]


@app.command(cls=Command)
def canary(
    lock: LockArgument = None,
    update: UpdateOption = False,
    require: RequireOption = False,
    python: PythonOption = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
    quiet: QuietOption = False,
) -> None:
    """Run a fixed set of operations and compare the results with the lockfile, bit for bit.

    Exit 0: the same bits. Exit 1: different bits, with the most likely cause. Exit 4: not comparable.

    The operations run in a child process with fixed thread counts and op determinism, so that machines compare.
    Everything else (oneDNN, XLA, the CPU) is left as is, and is what the canary compares.

    \b
    Examples:
      envlock canary --update                  write the results into the nearest lockfile
      envlock canary                           compare this machine with them
      envlock canary other.lock -f json        for programs
    """
    from envlock.workflows.canary import canary as compute

    if update and require:
        raise UsageError("`--update` and `--require` exclude each other", hint="use one of them")
    progress = Terminal(quiet)
    wanted = _source(lock, needed=update or require)
    if update:
        _update(lock, wanted, python, progress, quiet=quiet)
        return
    show(compute(wanted, python=python, required=require, progress=progress), format)


def _source(lock: str | None, *, needed: bool) -> str | bytes | None:
    """Return the lockfile that is meant; None where there is none and none was asked for."""
    project = config()
    if lock is None and project.lock is None and not needed and find(str(Path.cwd())) is None:
        return None
    return source(lock, project)


def _update(
    lock: str | None,
    wanted: str | bytes | None,
    python: Path | None,
    progress: Terminal,
    *,
    quiet: bool,
) -> None:
    from envlock.lock.document import dump, save
    from envlock.workflows.canary import summary, update_canary

    read = lock_of(wanted)
    new = update_canary(read, python=python, progress=progress)
    if lock == STDIN or not isinstance(wanted, str):
        emit(dump(new))
        return
    save(new, wanted, read)
    talk(f"wrote {wanted}: {summary(new)}", quiet=quiet)
