"""`envlock run`"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from envlock.cli import config as settings
from envlock.cli.options import LockArgument, PolicyOption, QuietOption, read_document
from envlock.cli.output import talk
from envlock.reports import FORMATS
from envlock.runtime.activation import MAX_SEED
from envlock.runtime.capture import snapshot
from envlock.runtime.collectors import tensorflow
from envlock.runtime.errors import UsageError
from envlock.runtime.host import Host
from envlock.runtime.recipe import recipe_for
from envlock.runtime.report import clean
from envlock.runtime.tables import table
from envlock.runtime.variables import NAME as HASH_SEED
from envlock.runtime.variables import Variables, is_number, plan
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
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Also switch op determinism on, for a program that does not.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=MAX_SEED, help="What envlock.activate() seeds with where the program names none."),
    ] = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Set the variables, say what differs, and run all the same.")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Run a command in the locked environment, or refuse.

    Usage: envlock run [LOCK] -- CMD ...

    The determinism variables are set and unset as the lock has them, the threads and Python's hash seed are fixed,
    the rest is verified, and the command takes this process's place. A bare python is this environment's.

    \b
    Examples:
      envlock run -- python train.py                         in the environment of the nearest lockfile
      envlock run gpu.lock -- python -m trainer --epochs 10  of another one
      envlock run --seed 7 -- python train.py                for a program that calls envlock.activate()
    """
    command: list[str] = context.meta.get("envlock.command", [])
    if not command:
        raise UsageError("no command to run", hint="write it behind two dashes: envlock run -- python train.py")
    name, document = read_document(lock, settings.load(Path.cwd()))
    wanted = _variables(document["facts"], deterministic=deterministic, seed=seed)
    program = _program(command[0], wanted.environ["PATH"])
    report = judge(document, snapshot(Host(environ=wanted.environ, started_with=wanted.environ)), policy)
    if not report.match:
        talk(FORMATS["text"](report))
        if not unverified:
            raise typer.Exit(report.exit_code)
        talk(f"warning: going on although this is not the environment of {name}", quiet=quiet)
    for line in _told(wanted):
        talk(line, quiet=quiet)
    _replace(program, command, wanted.environ)


def _variables(facts: Mapping[str, Any], *, deterministic: bool, seed: int | None) -> Variables:
    """Return the variables for the command, and what of them to tell."""
    environ = dict(os.environ)
    environ["PATH"] = os.pathsep.join([str(Path(sys.prefix) / "bin"), environ.get("PATH", os.defpath)])
    installed = tensorflow.collect(Host())
    version = installed.get("version") if isinstance(installed, dict) else None
    recipe = recipe_for(version) if isinstance(version, str) else None
    needed = {**recipe.set, **(recipe.by_variable if deterministic else {})} if recipe else {}
    wanted = plan(environ, facts, needed, recipe.unset if recipe and deterministic else [])
    own = {} if is_number(environ.get(HASH_SEED, "")) else table("determinism_recipes")["always"]
    own = own if seed is None else {**own, "ENVLOCK_SEED": str(seed)}
    changes = [*wanted.changes, *((name, value, "") for name, value in own.items())]
    return Variables({**wanted.environ, **own}, sorted(changes), wanted.kept)


def _told(wanted: Variables) -> list[str]:
    """Return what to say of variables: what is set, what is unset, and where the lock has won."""
    set_ = [f"{name}={clean(value)}" for name, value, _ in wanted.changes if value is not None]
    unset = [name for name, value, _ in wanted.changes if value is None]
    lines = [f"{verb} {', '.join(names)}" for verb, names in (("set", set_), ("unset", unset)) if names]
    for name, held, other in wanted.kept:
        lines.append(f"warning: {name} is {held}, as the lock has it; determinism needs it {other or 'unset'}")
    return lines


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
