"""`envlock run`"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from envlock.cli.options import LockArgument, PolicyOption, PythonOption, QuietOption, source
from envlock.cli.output import talk
from envlock.cli.parser import Command, new_app
from envlock.runtime.activation import MAX_SEED
from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source
    from envlock.workflows.run import Prepared

app = new_app()


class RunCommand(Command):
    """Keeps the command to run away from the parser: it begins after `--`, or else at its first word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what stands before the command.

        Raises:
            UsageError: more than a lockfile stands before `--`, or two are named.
        """
        at = args.index("--") if "--" in args else None
        words = list(self._words(ctx, args[:at]))
        if at is not None:
            _need_lockfile([args[word] for word in words])
            ctx.meta["envlock.command"] = args[at + 1 :]
        else:
            at = words[0] if words else len(args)
            ctx.meta["envlock.command"] = _command(args[at:])
        rest = super().parse_args(ctx, args[:at])
        if words and ctx.params.get("named") and ctx.params.get("lock") == args[words[0]]:
            raise UsageError("--lock and LOCK both name a lockfile", hint="use one of them")
        return list(rest)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage line's words: what the parser does not see is CMD."""
        return ["[OPTIONS]", "[LOCK --]", "CMD ..."]

    def _words(self, ctx: Any, args: list[str]) -> Iterator[int]:
        """Yield the places of what is neither an option of this command nor the value of one."""
        valued = {
            flag
            for each in self.get_params(ctx)
            if not getattr(each, "is_flag", True)
            for flag in each.opts
        }
        value = False
        for number, arg in enumerate(args):
            if value:
                value = False
            elif not arg.startswith("-") or arg == "-" or arg.startswith("-m"):
                yield number
            elif arg.startswith("--"):
                value = arg in valued
            else:  # short ones may be written together, and a value with them
                takers = [at for at, letter in enumerate(arg) if f"-{letter}" in valued]
                value = takers[:1] == [len(arg) - 1]


def _need_lockfile(words: list[str]) -> None:
    """Refuse words before `--` that cannot be one lockfile.

    Raises:
        UsageError: they are a command.
    """
    if len(words) > 1 or any(word.startswith("-m") or word.endswith(".py") for word in words):
        raise UsageError(
            f"`{' '.join(words)}` stands before `--`, where only a lockfile can stand",
            hint="leave out `--`, or write it before the command: envlock run -- python train.py",
        )


def _command(words: list[str]) -> list[str]:
    """Return the command that is written without `--`: a script and `-m MODULE` are for Python.

    Raises:
        UsageError: its first word is a lockfile.
    """
    if not words:
        return []
    if words[0].endswith(".lock"):
        raise UsageError(
            f"`{words[0]}` is a lockfile, not a command",
            hint=f"write `--` after it: envlock run {words[0]} -- python train.py",
        )
    is_script = words[0].endswith(".py") and Path(words[0]).is_file()
    return ["python", *words] if is_script or words[0].startswith("-m") else words


DeterministicOption = Annotated[
    bool, typer.Option("--deterministic", help="Also turn on op determinism.")
]
RunSeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, max=MAX_SEED, help="Seed for calls of `envlock.activate()` without a seed."
    ),
]
UnverifiedOption = Annotated[
    bool,
    typer.Option("--unverified", help="Set the variables, print the differences, and run anyway."),
]


ObserveOption = Annotated[
    bool,
    typer.Option(
        "--observe", help="Write into the lockfile which packages the run uses, to hold them, too."
    ),
]
LockOption = Annotated[
    str | None,
    typer.Option("--lock", metavar="LOCK", help="Lockfile, as before `--`.", show_default=False),
]


@app.command(cls=RunCommand)
def run(
    context: typer.Context,
    lock: LockArgument = None,
    named: LockOption = None,
    policy: PolicyOption = None,
    python: PythonOption = None,
    deterministic: DeterministicOption = False,
    seed: RunSeedOption = None,
    unverified: UnverifiedOption = False,
    observe: ObserveOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a command in the locked environment, or refuse.

    CMD is a command, a SCRIPT.py, or -m MODULE. It starts at the first word that is not an option of `run`, and every
    later word belongs to it. With `--`, CMD starts after the first `--` and is run as written, and only a lockfile can
    precede it. A command with a `--` of its own needs another one in front.

    The determinism variables are set and unset as locked, the thread counts and Python's hash seed are fixed, and the
    rest is verified. The command then replaces this process; with `--observe`, it is a child. A bare `python` is the
    environment's.

    \b
    Examples:
      envlock run train.py --epochs 10              a script, with the nearest lockfile
      envlock run -m trainer --epochs 10            a module
      envlock run --seed 7 python train.py          a program that calls envlock.activate()
      envlock run --lock gpu.lock python train.py   another lockfile
      envlock run gpu.lock -- python train.py       the same
      envlock run --observe train.py                also hold packages that are imported only at run time
    """
    from envlock.workflows.run import prepare

    command: list[str] = context.meta.get("envlock.command", [])
    if not command:
        hint = (
            "write one: envlock run python train.py, or after `--`: envlock run -- python train.py"
        )
        raise UsageError("no command to run", hint=hint)
    wanted = source(named or lock)
    target = _target(wanted) if observe else None
    prepared = prepare(
        command, wanted, policy=policy, python=python, deterministic=deterministic, seed=seed
    )
    if not prepared.report.match:
        talk(prepared.report.to_text())
        if not unverified:
            raise typer.Exit(prepared.report.exit_code)
        talk("warning: running anyway, although this is not the locked environment", quiet=quiet)
    _explain(prepared, quiet=quiet)
    if target is not None:
        _observe(prepared, target, python, quiet=quiet)
    prepared.execute()


def _target(wanted: Source | None) -> Path:
    from envlock.workflows.observe import lock_with_entry_points

    return lock_with_entry_points(wanted)


def _observe(prepared: Prepared, target: Path, python: Path | None, *, quiet: bool) -> None:
    """Run the command as a child, say what its lockfile now holds, and exit as the command did."""
    from envlock.workflows.observe import observe

    found = observe(prepared, target, python)
    more = (
        f", {len(found.new)} of them not held before: {', '.join(found.new)}"
        if found.new
        else ", all held before"
    )
    talk(f"observed {count(len(found.used), 'package')}{more}", quiet=quiet)
    raise typer.Exit(found.code)


def _explain(prepared: Prepared, *, quiet: bool) -> None:
    """Say which variables are set and unset, and where the lockfile wins over determinism."""
    assigned = [f"{name}={clean(value)}" for name, value in prepared.changes if value is not None]
    removed = [name for name, value in prepared.changes if value is None]
    for verb, names in (("set", assigned), ("unset", removed)):
        if names:
            talk(f"{verb} {', '.join(names)}", quiet=quiet)
    for name, held, needed in prepared.overruled:
        talk(
            f"warning: {name}: locked {held}, but determinism needs {needed or 'it unset'}",
            quiet=quiet,
        )
