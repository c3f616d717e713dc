"""`envlock run`"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from envlock.cli import config as settings
from envlock.cli.options import LockArgument, PolicyOption, QuietOption, read_document
from envlock.cli.output import talk
from envlock.reports import FORMATS
from envlock.runtime.capture import snapshot
from envlock.runtime.collectors.environ import record
from envlock.runtime.errors import UsageError
from envlock.runtime.host import Host
from envlock.runtime.tables import table
from envlock.runtime.verify import judge


class RunCommand(TyperCommand):
    """Keeps what stands behind `--` away from the parser, which would swallow the dashes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what stands before `--`; the rest is the command to run."""
        if "--" in args:
            at = args.index("--")
            ctx.meta["envlock.command"] = args[at + 1 :]
            args = args[:at]
        return list(super().parse_args(ctx, args))


def run(
    context: typer.Context,
    lock: LockArgument = None,
    policy: PolicyOption = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Set the variables, say what differs, and run all the same.")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Run a command in the locked environment, or refuse.

    Usage: envlock run [LOCK] -- CMD ...

    The determinism variables are set and unset as the lock has them, the rest is verified, and the command takes
    this process's place. A bare python is this environment's.

    \b
    Examples:
      envlock run -- python train.py                         in the environment of the nearest lockfile
      envlock run gpu.lock -- python -m trainer --epochs 10  of another one
    """
    command: list[str] = context.meta.get("envlock.command", [])
    if not command:
        raise UsageError("no command to run", hint="write it behind two dashes: envlock run -- python train.py")
    name, document = read_document(lock, settings.load(Path.cwd()))
    environ = locked_environ(dict(os.environ), document["facts"].get("environ"))
    environ["PATH"] = os.pathsep.join([str(Path(sys.prefix) / "bin"), environ.get("PATH", os.defpath)])
    program = _program(command[0], environ["PATH"])
    report = judge(document, snapshot(Host(environ=environ, started_with=environ)), policy)
    if not report.match:
        talk(FORMATS["text"](report))
        if not unverified:
            raise typer.Exit(report.exit_code)
        talk(f"warning: going on although this is not the environment of {name}", quiet=quiet)
    _replace(program, command, environ)


def locked_environ(environ: dict[str, str], locked: Any) -> dict[str, str]:
    """Return `environ` with the determinism variables as the lock has them.

    A value known only by its hash is left. So is one that no capture can have recorded as it stands: a lockfile must
    not be able to set LD_PRELOAD to a path, or PATH at all.
    """
    if not isinstance(locked, dict):
        return environ
    for row in table("environ"):
        name, value = row["name"], locked.get(row["name"], "")
        if value is None:
            environ.pop(name, None)
        elif name in locked and isinstance(value, str) and "sha256:" not in value and _could_be(value, row):
            environ[name] = value
    return environ


def _could_be(value: str, row: Any) -> bool:
    return record(value, row) == value


def _program(name: str, path: str) -> str:
    found = shutil.which(name, path=path)
    if found is None:
        raise UsageError(f"there is no command `{name}`", hint="check its spelling and PATH")
    folder = Path(found).parent
    is_python = Path(found).name.startswith("python")
    if is_python and folder.resolve() != (Path(sys.prefix) / "bin").resolve():
        raise UsageError(
            f"{found} is not the Python of the environment that envlock verifies ({sys.prefix})",
            hint="install envlock into that environment, or write a bare `python`",
        )
    return found


def _replace(program: str, command: list[str], environ: dict[str, str]) -> None:
    try:
        os.execve(program, command, environ)  # noqa: S606 (the point: no shell)
    except OSError as error:
        raise UsageError(f"cannot run `{command[0]}`: {error.strerror}", hint="is it an executable?") from None
