"""`envlock run`"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    LockArgument,
    PolicyOption,
    PythonOption,
    QuietOption,
    find_source,
)
from envlock.cli.output import Terminal, talk
from envlock.cli.parser import Command, make_app
from envlock.runtime.activation import MAX_SEED
from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean, count
from envlock.workflows.observed_run import find_lock_with_entry_points
from envlock.workflows.observed_run import observe as run_observed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typer._click.core import Context

    from envlock.workflows.run import Prepared

app = make_app()


class RunCommand(Command):
    """Hides the command to run from the parser: it begins after `--`, else at its first word."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the words before the command.

        Raises:
            UsageError: there is more than a lockfile before `--`.
        """
        if "--" in args:
            end = args.index("--")
            words = list(self._find_words(ctx, args[:end]))
            _need_lockfile([args[word] for word in words])
            command = args[end + 1 :]
        else:
            words = list(self._find_words(ctx, args))
            end = words[0] if words else len(args)
            command = _parse_command(args[end:])
        ctx.meta["envlock.command"] = command
        return list(super().parse_args(ctx, args[:end]))

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """Return the words of the usage line, with CMD for what the parser does not see."""
        return ["[OPTIONS]", "[LOCK --]", "CMD ..."]

    def _find_words(self, ctx: Context, args: list[str]) -> Iterator[int]:
        """Yield the indexes of words that are neither an option of this command nor the value of
        one.
        """
        valued: set[str] = set()
        for param in self.get_params(ctx):
            if not getattr(param, "is_flag", True):
                valued.update(param.opts)
        is_value = False
        for number, arg in enumerate(args):
            if is_value:
                is_value = False
            # `-m` is not an option of `run`: a command begins with it, as with a script.
            elif not arg.startswith("-") or arg == "-" or arg.startswith("-m"):
                yield number
            else:
                is_value = _needs_value(arg, valued)


def _needs_value(option: str, valued: set[str]) -> bool:
    """Return whether the value of an option is the next word; `valued` are the options with a
    value.
    """
    if option.startswith("--"):
        return option in valued
    # Short options can be combined: the rest of the word is the value of the first one that has a
    # value.
    for place, letter in enumerate(option):
        if f"-{letter}" in valued:
            return place == len(option) - 1
    return False


def _need_lockfile(words: list[str]) -> None:
    """Refuse words before `--` that are not a single lockfile.

    Raises:
        UsageError: they are a command.
    """
    if len(words) > 1 or any(word.startswith("-m") or word.endswith(".py") for word in words):
        raise UsageError(
            f"`{' '.join(words)}` stands before `--`, where only a lockfile can stand",
            hint="leave out `--`, or write it before the command: envlock run -- python train.py",
        )


def _parse_command(words: list[str]) -> list[str]:
    """Return the command that is given without `--`: a script and `-m MODULE` are run with Python.

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
    if is_script or words[0].startswith("-m"):
        return ["python", *words]
    return words


@app.command(cls=RunCommand)
def run(
    context: typer.Context,
    lock: LockArgument = None,
    policy: PolicyOption = None,
    python: PythonOption = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Also turn on op determinism.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            max=MAX_SEED,
            help="Seed for calls of `envlock.activate()` without a seed.",
        ),
    ] = None,
    observe: Annotated[
        bool,
        typer.Option(
            "--observe",
            help="Write into the lockfile which packages the run uses, to hold them, too.",
        ),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Run a command in the locked environment, or refuse.

    CMD is a command, a SCRIPT.py, or -m MODULE. It starts at the first word that is not an option
    of `run`, and every later word belongs to it. With `--`, CMD starts after the first `--` and is
    run as written, and only a lockfile can precede it. A command with a `--` of its own needs
    another one in front.

    The determinism variables are set and unset as locked, the thread counts and Python's hash seed
    are fixed, and the rest is verified, with what a process loads if the lockfile has that. The
    command then replaces this process; with `--observe`,
    it is a child, and its signals and exit code are passed on. A bare `python` is the
    environment's.

    \b
    Examples:
      envlock run train.py --epochs 10              a script, with the nearest lockfile
      envlock run -m trainer --epochs 10            a module
      envlock run --seed 7 python train.py          a program that calls envlock.activate()
      envlock run gpu.lock -- python train.py       another lockfile
      envlock run --observe train.py                also hold packages that are imported only at run time
    """
    command: list[str] = context.meta.get("envlock.command", [])
    if not command:
        hint = (
            "write one: envlock run python train.py, or after `--`: envlock run -- python train.py"
        )
        raise UsageError("no command to run", hint=hint)
    source = find_source(lock)
    # Before the command runs, perhaps for hours: not every lockfile can take what is observed.
    observed = find_lock_with_entry_points(source) if observe else None
    prepared = envlock.prepare(
        command,
        source,
        policy=policy,
        python=python,
        deterministic=deterministic,
        seed=seed,
        progress=Terminal(quiet),
    )
    if not prepared.report.match:
        talk(prepared.report.to_text())
        raise typer.Exit(prepared.report.exit_code)
    _explain(prepared, quiet=quiet)
    if observed is not None:
        _observe(prepared, observed, python, quiet=quiet)
    prepared.execute()


def _observe(prepared: Prepared, lock: Path, python: Path | None, *, quiet: bool) -> None:
    """Run the command as a child, print what its lockfile now holds, and exit as the command did."""
    found = run_observed(prepared, lock, python)
    if found.new:
        before = f"{len(found.new)} of them not held before: {', '.join(found.new)}"
    else:
        before = "all held before"
    talk(f"observed {count(len(found.used), 'package')}, {before}", quiet=quiet)
    raise typer.Exit(found.code)


def _explain(prepared: Prepared, *, quiet: bool) -> None:
    """Print which variables are set and unset, and where the lockfile's value is used instead of
    the one for determinism.
    """
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
