"""`envlock canary`"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from envlock.cli import config as settings
from envlock.cli.options import (
    STDIN,
    FormatOption,
    LockArgument,
    PythonOption,
    QuietOption,
    one_of,
    read_document,
)
from envlock.cli.output import color, emit, talk
from envlock.lock.live import live
from envlock.reports import FORMATS
from envlock.reports.canary import lines
from envlock.reports.json import dump as dump_json
from envlock.reports.text import paint
from envlock.runtime.errors import UsageError
from envlock.runtime.lockfile import find
from envlock.runtime.report import REPORT_VERSION

ENVIRONMENT = "environment"
DETERMINISM = {"on": True, "off": False, ENVIRONMENT: None}
MOST, DIGITS = 4096, 10

UpdateOption = Annotated[bool, typer.Option("--update", help="Write the results into the lock.")]
CheckOption = Annotated[
    bool, typer.Option("--check", help="Compare with the lock, which must have a canary. Default where it has one.")
]
ThreadsOption = Annotated[
    str | None,
    typer.Option(
        "--threads",
        help="How many, of both kinds; `environment`: as programs get them here. Default: the lock's, else 2.",
        show_default=False,
    ),
]
DeterminismOption = Annotated[
    str | None,
    typer.Option(
        "--determinism",
        help="Op determinism: on, off, or `environment`. Default: the lock's, else on.",
        show_default=False,
    ),
]


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
    """Compute a fixed battery of operations: are their bits those of the lock?

    Exit 0: yes, 1: no, with the operations and the likeliest cause, 4: they cannot be compared.

    It runs in a child process, with threads and op determinism pinned, so that machines compare. All else (oneDNN,
    XLA, the processor) is as programs have it here: it is what is being compared.

    \b
    Examples:
      envlock canary --update                  write the exact results into the nearest lock
      envlock canary                           compare this machine with them
      envlock canary other.lock -f json        for programs
      envlock canary --threads environment --determinism environment
                                               nothing pinned: as a program has it
    """
    one_of(format, ["text", "json"], "format")
    if update and check:
        raise UsageError("--update writes and --check compares", hint="give one of them")
    pinned = _pinned(threads, determinism)
    name, document = _read(lock, needed=update or check)
    if update:
        _update(lock, name, document, pinned, python, quiet=quiet)
    else:
        _compare(name, document, pinned, python, format=format, quiet=quiet, needed=check)


def _read(lock: str | None, *, needed: bool) -> tuple[str, dict[str, Any]]:
    """Return name and document of the lock; nothing where there is none, and none was asked for."""
    config = settings.load(Path.cwd())
    if lock is None and config.lock is None and not needed and find(str(Path.cwd())) is None:
        return "", {}
    return read_document(lock, config)


def _pinned(threads: str | None, determinism: str | None) -> dict[str, Any]:
    """Return what was asked for on the command line, as fields of `Settings`."""
    pinned: dict[str, Any] = {}
    if (
        threads is not None
        and threads != ENVIRONMENT
        and not (threads.isascii() and threads.isdigit() and len(threads) < DIGITS)
    ):
        raise UsageError(f"--threads takes a number or `{ENVIRONMENT}`, not `{threads}`", hint="--threads 2")
    if threads is not None:
        pinned["threads"] = None if threads == ENVIRONMENT else _number(int(threads))
    if determinism is not None:
        one_of(determinism, list(DETERMINISM), "state of op determinism")
        pinned["determinism"] = DETERMINISM[determinism]
    return pinned


def _number(threads: int) -> int:
    if not 1 <= threads <= MOST:
        raise UsageError(f"--threads takes 1 to {MOST}, not {threads}", hint="--threads 2")
    return threads


def _update(
    lock: str | None, name: str, document: dict[str, Any], pinned: dict[str, Any], python: Path | None, *, quiet: bool
) -> None:
    """Write the canary into the lock, if this is the environment that it describes."""
    from envlock.cli.hashing import refuse_another_environment
    from envlock.cli.numerics import settings_of, summary, with_canary
    from envlock.lock.document import dump, validate
    from envlock.lock.writer import write_atomically

    old, found = validate(document, name), live(python)
    refuse_another_environment(document, found)
    new = with_canary(old, python, found, replace(settings_of(None), **pinned), quiet=quiet)
    if lock == STDIN:
        emit(dump(new))
        return
    write_atomically(Path(name), dump(new))
    talk(f"wrote {name}: {summary(new)}", quiet=quiet)


def _compare(
    name: str,
    document: dict[str, Any],
    pinned: dict[str, Any],
    python: Path | None,
    *,
    format: str,  # noqa: A002 (the option's name)
    quiet: bool,
    needed: bool,
) -> None:
    """Print what differs from the lock's canary and exit by it; where there is none, print the canary."""
    from envlock.cli.numerics import against, measured, required, settings_of
    from envlock.lock.document import numerics_of

    locked = required(document, name) if needed else numerics_of(document, name)
    found = measured(replace(settings_of(locked), **pinned), python, live(python), quiet=quiet)
    section = found.numerics.model_dump(mode="json", exclude_unset=True)
    told = {"numerics": section, "seconds": found.seconds, "cpu_seconds": found.cpu_seconds}
    if locked is None:
        text = dump_json({"report_version": REPORT_VERSION, **told})
        emit(text if format == "json" else paint(lines(section), color=color()))
        return
    report, compared = against(document, locked, found.numerics)
    causes = [each.to_json() for each in compared.suspects]
    text = dump_json({**report.to_json(), "causes": causes, **told})
    emit(text if format == "json" else FORMATS["text"](report, color=color()))
    raise typer.Exit(report.exit_code)
