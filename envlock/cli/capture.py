"""`envlock capture`"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from envlock.cli.options import PythonOption, QuietOption, config
from envlock.cli.output import Terminal, emit, talk
from envlock.cli.parser import Command, choice, new_app
from envlock.lock.writer import write_atomically
from envlock.runtime.errors import LockfileError, UsageError
from envlock.runtime.lockfile import SIZE_LIMIT
from envlock.runtime.policy import names
from envlock.runtime.report import Report, count
from envlock.workflows.settings import policy as policy_of
from envlock.workflows.settings import target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile

app = new_app()

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        envvar="ENVLOCK_LOCK",
        help="File to write; - for stdout. [default: the nearest lockfile, or ./envlock.lock]",
        show_default=False,
    ),
]
NewPolicyOption = Annotated[
    str | None,
    choice(
        names(),
        "policy",
        *("--policy", "-p"),
        envvar="ENVLOCK_POLICY",
        help="How closely to compare later. [default: the project's, else the renewed lockfile's, else strict]",
        show_default=False,
    ),
]
HashesOption = Annotated[bool, typer.Option("--hashes", help="Also find the wheel of every package: `envlock hash`.")]
CanaryOption = Annotated[bool, typer.Option("--canary", help="Also compute the canary: `envlock canary --update`.")]
CheckOption = Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if the file would change.")]


@app.command(cls=Command)
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

    TensorFlow is not imported (except with --canary). No secrets, user names or host names are recorded. The same
    environment always gives the same bytes.

    \b
    Examples:
      envlock capture                            write ./envlock.lock, or renew the nearest one
      envlock capture -o gpu.lock -p same-arch   another file and policy
      envlock capture --python .venv/bin/python  an environment without envlock
      envlock capture --hashes                   with the SHA-256 of every package's wheel
      envlock capture --canary                   with exact results of TensorFlow operations
      envlock capture --check                    in CI: exit 1 if the lockfile is out of date
    """
    from envlock.lock.document import dump
    from envlock.workflows.capture import capture as take

    project, to_stdout = config(), output is not None and str(output) == "-"
    if to_stdout and check:
        raise UsageError("--check compares with a file, and `-` is stdout", hint="name the file")
    path = None if to_stdout else target(output, project)
    earlier = None if path is None else _earlier(path)
    chosen = policy_of(policy, project, earlier)
    lock = take(*chosen, python=python, hashes=hashes, canary=canary, earlier=earlier, progress=Terminal(quiet))
    if path is None:
        emit(dump(lock))
    elif check:
        _check(path, lock, quiet)
    else:
        write_atomically(path, dump(lock))
        _report(path, lock, hashes=hashes, quiet=quiet)


def _earlier(path: Path) -> Lockfile | None:
    """Return the lock that is renewed; one that cannot be trusted is replaced."""
    from envlock.lock.document import load as read

    try:
        return read(path)
    except LockfileError:
        return None


def _report(path: Path, lock: Lockfile, *, hashes: bool, quiet: bool) -> None:
    from envlock.lock.capture import warnings

    talk(f"wrote {path}: {_summary(lock)}", quiet=quiet)
    for text in warnings(lock):
        talk(f"warning: {text}", quiet=quiet)
    if hashes:
        from envlock.workflows.hash import summary

        for line in summary(lock):
            talk(line, quiet=quiet)


def _check(path: Path, lock: Lockfile, quiet: bool) -> None:
    from envlock.lock.document import dump
    from envlock.workflows.capture import changes

    try:
        with path.open("rb") as stream:
            old = stream.read(SIZE_LIMIT + 1)  # as much as a lockfile can have, and one byte more
    except OSError:  # below, the reader of lockfiles says what is wrong
        old = None
    if old == dump(lock):
        talk(f"{path} is up to date", quiet=quiet)
        return
    found = changes(path, lock) if os.path.lexists(path) else "it does not exist"
    shown = f"\n{found.to_text()}" if isinstance(found, Report) else f" {found}"
    talk(f"{path} would change:{shown}", quiet=quiet)
    raise typer.Exit(1)


def _summary(lock: Lockfile) -> str:
    facts = lock.facts
    parts = [count(len(facts.packages or {}), "package")]
    if facts.tensorflow is not None:
        parts.insert(0, f"TensorFlow {facts.tensorflow.version or '(version unknown)'}")
    if lock.identity is not None:
        proven = sum(each.wheel is not None for each in lock.identity.packages.values())
        parts[-1] += f" ({proven} with a proven wheel)"
    if lock.unavailable:
        parts.append(f"{count(len(lock.unavailable), 'fact')} could not be collected (`envlock show` lists them)")
    return ", ".join([*parts, f"policy {lock.policy.name}"])
