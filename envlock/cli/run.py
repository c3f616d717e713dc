"""`envlock run`"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from envlock.cli.options import LockArgument, PolicyOption, QuietOption, source
from envlock.cli.output import talk
from envlock.cli.parser import Command, new_app
from envlock.runtime.activation import MAX_SEED
from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.run import Prepared

app = new_app()


class RunCommand(Command):
    """Keeps what follows `--` away from the parser, which would swallow the dashes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what stands before `--`; the rest is the command to run."""
        if "--" in args:
            at = args.index("--")
            ctx.meta["envlock.command"] = args[at + 1 :]
            args = args[:at]
        return list(super().parse_args(ctx, args))


DeterministicOption = Annotated[
    bool, typer.Option("--deterministic", help="Also turn on op determinism, for programs that do not.")
]
RunSeedOption = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=MAX_SEED, help="Seed for envlock.activate() calls that name none."),
]
UnverifiedOption = Annotated[
    bool, typer.Option("--unverified", help="Set the variables, print the differences, and run anyway.")
]


@app.command(cls=RunCommand)
def run(
    context: typer.Context,
    lock: LockArgument = None,
    policy: PolicyOption = None,
    deterministic: DeterministicOption = False,
    seed: RunSeedOption = None,
    unverified: UnverifiedOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a command in the locked environment, or refuse.

    Usage: envlock run [LOCK] -- CMD ...

    The determinism variables are set and unset as locked, the thread counts and Python's hash seed are fixed, and the
    rest is verified. The command then replaces this process. A bare `python` is this environment's.

    \b
    Examples:
      envlock run -- python train.py                         the environment of the nearest lockfile
      envlock run gpu.lock -- python -m trainer --epochs 10  another lockfile
      envlock run --seed 7 -- python train.py                a program that calls envlock.activate()
    """
    from envlock.workflows.run import prepare

    command: list[str] = context.meta.get("envlock.command", [])
    if not command:
        raise UsageError("no command to run", hint="write it after two dashes: envlock run -- python train.py")
    prepared = prepare(command, source(lock), policy=policy, deterministic=deterministic, seed=seed)
    if not prepared.report.match:
        talk(prepared.report.to_text())
        if not unverified:
            raise typer.Exit(prepared.report.exit_code)
        talk("warning: running anyway, although this is not the locked environment", quiet=quiet)
    _explain(prepared, quiet=quiet)
    prepared.execute()


def _explain(prepared: Prepared, *, quiet: bool) -> None:
    """Say which variables are set and unset, and where the lockfile wins over determinism."""
    assigned = [f"{name}={clean(value)}" for name, value in prepared.changes if value is not None]
    removed = [name for name, value in prepared.changes if value is None]
    for verb, names in (("set", assigned), ("unset", removed)):
        if names:
            talk(f"{verb} {', '.join(names)}", quiet=quiet)
    for name, held, needed in prepared.overruled:
        talk(f"warning: {name} is locked as {held}; determinism needs it {needed or 'unset'}", quiet=quiet)
