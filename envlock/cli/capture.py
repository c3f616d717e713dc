"""`envlock capture`"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from envlock.cli import config as settings
from envlock.cli.hashing import carry_over, find, found
from envlock.cli.options import PythonOption, QuietOption, target
from envlock.cli.output import emit, talk
from envlock.lock.capture import capture as take
from envlock.lock.capture import warnings
from envlock.lock.document import dump
from envlock.lock.live import live
from envlock.lock.models import Lockfile
from envlock.lock.writer import write_atomically
from envlock.runtime.capture import Snapshot
from envlock.runtime.errors import LockfileError, UsageError
from envlock.runtime.lockfile import SIZE_LIMIT, read_file

OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", envvar="ENVLOCK_LOCK", help="Where to write; - is stdout.", show_default=False),
]
NewPolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        "-p",
        envvar="ENVLOCK_POLICY",
        help="How closely: strict, same-arch or functional. Default: the project's, else that of the lock renewed, "
        "else strict.",
        show_default=False,
    ),
]
HashesOption = Annotated[
    bool, typer.Option("--hashes", help="Also find the exact wheel of every package, as `envlock hash` does.")
]
CanaryOption = Annotated[
    bool, typer.Option("--canary", help="Also compute the canary in TensorFlow, as `envlock canary --update` does.")
]
CheckOption = Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if the file would change.")]


def capture(
    output: OutputOption = None,
    policy: NewPolicyOption = None,
    python: PythonOption = None,
    hashes: HashesOption = False,
    canary: CanaryOption = False,
    check: CheckOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the live environment into a lockfile.

    Nothing of TensorFlow is imported (but with --canary), no secret and no name of user or host is recorded, and the
    same environment always gives the same bytes.

    \b
    Examples:
      envlock capture                            write ./envlock.lock, or renew the nearest one
      envlock capture -o gpu.lock -p same-arch   another file, another policy
      envlock capture --python .venv/bin/python  of an environment that has no envlock
      envlock capture --hashes                   with the sha256 of every package's wheel
      envlock capture --canary                   with the exact results of a battery of operations
      envlock capture --check                    in CI: exit 1 when the committed lock is out of date
    """
    config = settings.load(Path.cwd())
    if output is not None and str(output) == "-":
        if check:
            raise UsageError("--check compares with a file, and `-` is stdout", hint="name the file")
        facts = live(python)
        lock = _with_hashes(take(*settings.policy(policy, config, None), facts), python, hashes, quiet)
        emit(dump(_with_canary(lock, None, python, facts, canary, quiet)))
        return
    path, facts = target(output, config), live(python)
    lock = carry_over(take(*settings.policy(policy, config, path), facts), path, python)
    lock = _with_canary(_with_hashes(lock, python, hashes, quiet), path, python, facts, canary, quiet)
    if check:
        _check(path, dump(lock), quiet)
        return
    write_atomically(path, dump(lock))
    talk(f"wrote {path}: {_summary(lock)}", quiet=quiet)
    for sentence in [f"warning: {each}" for each in warnings(lock)] + (list(found(lock)) if hashes else []):
        talk(sentence, quiet=quiet)


def _with_hashes(lock: Lockfile, python: Path | None, wanted: bool, quiet: bool) -> Lockfile:
    return find(lock, python, quiet=quiet) if wanted else lock


def _with_canary(
    lock: Lockfile, path: Path | None, python: Path | None, found: Snapshot, wanted: bool, quiet: bool
) -> Lockfile:
    """Return the lock with its canary: computed, or else that of the lock at `path` where it still holds."""
    if wanted:
        from envlock.cli.numerics import with_canary
        from envlock.numerics.canary.run import Settings

        return with_canary(lock, python, found, Settings(), quiet=quiet)
    if path is None:
        return lock
    from envlock.cli.numerics import kept

    return kept(lock, path, quiet=quiet)


def _check(path: Path, data: bytes, quiet: bool) -> None:
    try:
        old = _head(path) if path.is_file() else None
    except OSError:  # below, the reader of lockfiles says what is wrong
        old = None
    if old == data:
        talk(f"{path} is up to date", quiet=quiet)
        return
    talk(f"{path} would change:{_changes(path, data) if os.path.lexists(path) else ' it does not exist'}", quiet=quiet)
    raise typer.Exit(1)


def _head(path: Path) -> bytes:
    """Return as much of a file as a lockfile can have, and one byte more."""
    with path.open("rb") as stream:
        return stream.read(SIZE_LIMIT + 1)


def _changes(path: Path, data: bytes) -> str:
    from envlock.api import diff
    from envlock.lock.document import parse

    try:
        read_file(str(path))
        report = diff(path, parse(data, "to be written"))
    except LockfileError as error:
        return f" it is not a valid lockfile ({error.message})"
    report.actual_name = "live"
    return "\n" + report.to_text() if report.findings else " its policy, its writer or its layout is another"


def _summary(lock: Lockfile) -> str:
    facts = lock.facts
    parts = [f"{len(facts.packages or {})} packages"]
    if facts.tensorflow is not None:
        parts.insert(0, f"TensorFlow {facts.tensorflow.version or '(version unknown)'}")
    if lock.identity is not None:
        proven = sum(each.wheel is not None for each in lock.identity.packages.values())
        parts[-1] += f" ({proven} with a proven wheel)"
    if lock.unavailable:
        number = len(lock.unavailable)
        parts.append(f"{number} {'fact' if number == 1 else 'facts'} could not be told (`envlock show` lists them)")
    return ", ".join(parts) + f", policy {lock.policy.name}"
