"""`envlock canary`"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from envlock.cli.options import STDIN, FormatOption, LockArgument, PythonOption, QuietOption, config, show, source
from envlock.cli.output import Terminal, emit, talk
from envlock.cli.parser import Command, choice, new_app
from envlock.numerics.canary import ENVIRONMENT
from envlock.runtime.errors import UsageError
from envlock.runtime.lockfile import find
from envlock.workflows.locks import lock_of

app = new_app()
DETERMINISM = {"on": True, "off": False, ENVIRONMENT: None}
MOST, DIGITS = 4096, 10

UpdateOption = Annotated[bool, typer.Option("--update", help="Write the results into the lockfile.")]
CheckOption = Annotated[
    bool, typer.Option("--check", help="Require a canary in the lockfile. [default: compare if it has one]")
]
ThreadsOption = Annotated[
    str | None,
    typer.Option(
        "--threads",
        metavar=f"N|{ENVIRONMENT}",
        help="Intra-op and inter-op threads, or `environment` to leave them alone. [default: the lockfile's, else 2]",
        show_default=False,
    ),
]
DeterminismOption = Annotated[
    str | None,
    choice(
        tuple(DETERMINISM),
        "state of op determinism",
        "--determinism",
        help=f"Op determinism, or `{ENVIRONMENT}` to leave it alone. [default: the lockfile's, else on]",
        show_default=False,
    ),
]


@app.command(cls=Command)
def canary(
    lock: LockArgument = None,
    update: UpdateOption = False,
    check: CheckOption = False,
    python: PythonOption = None,
    threads: ThreadsOption = None,
    determinism: DeterminismOption = None,
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
      envlock canary --threads environment --determinism environment
                                               with nothing fixed, as a program runs
    """
    from envlock.workflows.canary import canary as compute
    from envlock.workflows.canary import settings_of

    if update and check:
        raise UsageError("`--update` and `--check` exclude each other", hint="use one of them")
    progress, pinned = Terminal(quiet), _pinned(threads, determinism)
    wanted = _source(lock, needed=update or check)
    if update:
        _update(lock, wanted, pinned, python, progress, quiet=quiet)
        return
    model = None if wanted is None else lock_of(wanted)
    pins = replace(settings_of(None if model is None else model.numerics), **pinned)
    show(compute(wanted, python=python, pinned=pins, required=check, progress=progress), format)


def _source(lock: str | None, *, needed: bool) -> str | bytes | None:
    """Return the lockfile that is meant; None where there is none and none was asked for."""
    project = config()
    if lock is None and project.lock is None and not needed and find(str(Path.cwd())) is None:
        return None
    return source(lock, project)


def _pinned(threads: str | None, determinism: str | None) -> dict[str, Any]:
    """Return what was asked for on the command line, as fields of `Settings`."""
    pinned: dict[str, Any] = {} if determinism is None else {"determinism": DETERMINISM[determinism]}
    if threads == ENVIRONMENT:
        return {**pinned, "threads": None}
    if threads is None:
        return pinned
    plain = threads.isascii() and threads.isdigit() and len(threads) < DIGITS
    if not plain or not 1 <= int(threads) <= MOST:
        raise UsageError(f"invalid number of threads: {threads}", hint=f"choose 1 to {MOST}, or `{ENVIRONMENT}`")
    return {**pinned, "threads": int(threads)}


def _update(
    lock: str | None,
    wanted: str | bytes | None,
    pinned: dict[str, Any],
    python: Path | None,
    progress: Terminal,
    *,
    quiet: bool,
) -> None:
    from envlock.lock.document import dump, save
    from envlock.numerics.canary.run import Settings
    from envlock.workflows.canary import summary, update_canary

    read = lock_of(wanted)
    new = update_canary(read, python=python, pinned=replace(Settings(), **pinned), progress=progress)
    if lock == STDIN or not isinstance(wanted, str):
        emit(dump(new))
        return
    save(new, wanted, read)
    talk(f"wrote {wanted}: {summary(new)}", quiet=quiet)
