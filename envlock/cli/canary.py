"""`envlock canary`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    FormatOption,
    LockArgument,
    PythonOption,
    QuietOption,
    find_source,
    load_config,
    show,
)
from envlock.cli.output import Terminal, emit, talk
from envlock.cli.parser import Command, make_app
from envlock.numerics.canary.canary_summary import describe_canary
from envlock.runtime.errors import UsageError
from envlock.runtime.lockfile import find
from envlock.workflows.locks import load_lock

app = make_app()

UpdateOption = Annotated[
    bool, typer.Option("--update", help="Write the results into the lockfile.")
]
RequireOption = Annotated[
    bool,
    typer.Option(
        "--require", help="Fail if the lockfile has no canary. [default: compare if it has one]"
    ),
]
AsOption = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="PROCESSOR",
        help="Estimate what this model would compute, such as Haswell: QEMU emulates it.",
        show_default=False,
    ),
]


@app.command(cls=Command)
def canary(
    lock: LockArgument = None,
    update: UpdateOption = False,
    require: RequireOption = False,
    emulated: AsOption = None,
    python: PythonOption = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
    quiet: QuietOption = False,
) -> None:
    """Run a fixed set of operations and compare the results with the lockfile, bit for bit.

    Exit 0: the same bits. Exit 1: different bits, with the most likely cause. Exit 4: not
    comparable.

    The operations run in a child process with fixed thread counts and op determinism, so that
    machines can be compared. Everything else (oneDNN, XLA, the CPU) is left as it is: its effect
    is what the canary compares.

    \b
    Examples:
      envlock canary --update                  write the results into the nearest lockfile
      envlock canary                           compare this machine with them
      envlock canary --as Haswell              estimate the bits of a processor that is not here
      envlock canary other.lock -f json        for programs
    """
    if update and require:
        raise UsageError("`--update` and `--require` exclude each other", hint="use one of them")
    progress = Terminal(quiet)
    source = _find_lock(lock, needed=update or require)
    if update:
        _update(source, python, emulated, progress, quiet=quiet)
        return
    report = envlock.canary(
        source, python=python, required=require, emulated=emulated, progress=progress
    )
    show(report, format)


def _find_lock(lock: str | None, *, needed: bool) -> str | bytes | None:
    """Return the lockfile to use; None if none was found and none is required."""
    project = load_config()
    if lock is None and project.lock is None and not needed and find(str(Path.cwd())) is None:
        return None
    return find_source(lock, project)


def _update(
    source: str | bytes | None,
    python: Path | None,
    emulated: str | None,
    progress: Terminal,
    *,
    quiet: bool,
) -> None:
    before = load_lock(source)
    new = envlock.update_canary(before, python=python, emulated=emulated, progress=progress)
    if not isinstance(source, str):
        emit(new.to_bytes())
        return
    envlock.save(new, source, before)
    talk(f"wrote {source}: {describe_canary(new)}", quiet=quiet)
