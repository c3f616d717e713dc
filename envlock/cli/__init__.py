"""The command line: one file a command. This file builds the program, and is the only place that exits."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from envlock import __version__
from envlock.cli import (
    build,
    canary,
    capture,
    diff,
    diverge,
    doctor,
    export,
    hashes,
    images,
    lint,
    repeat,
    run,
    show,
    vendor,
    verify,
)
from envlock.cli.output import fail, lost, say, settle
from envlock.runtime.errors import EnvlockError, UsageError

BUG = 70
INTERRUPTED = 130

app = typer.Typer(
    name="envlock",
    help="Lock everything below a TensorFlow script that can change its bits, and refuse to start when it changed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # plain help: the same in every terminal and every version of rich
)
app.command()(capture.capture)
app.command()(build.build)
app.command()(show.show)
app.command()(verify.verify)
app.command()(diff.diff)
app.command("hash")(hashes.hashes)
app.command(cls=run.RunCommand)(run.run)
app.command()(doctor.doctor)
app.command()(export.export)
app.command()(vendor.vendor)
app.command()(images.images)
app.command()(lint.lint)
app.command()(canary.canary)
app.command()(repeat.repeat)
app.add_typer(diverge.app, name="diverge")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"envlock {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    try:
        Path.cwd()
    except OSError:
        raise UsageError("the current folder is gone", hint="change into one that is there") from None


def main() -> None:
    """Run the program and exit: 0 to 5 as the README's table says, 70 for a bug, 130 when interrupted."""
    if sys.stderr is None:  # closed: the parser would put its complaints on stdout, or fail
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (for the whole process)
    try:
        app(prog_name="envlock")
    except EnvlockError as error:
        fail(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        sys.exit(_unexpected(error))


def _unexpected(error: Exception) -> int:
    """Return the exit code for a stream that did not take the parser's own text, or for a bug, and say which.

    A crash must never read as "does not match", which is Python's own exit code for it.
    """
    if isinstance(error, OSError) and traceback.extract_tb(error.__traceback__)[-1].name == "echo":
        settle()
        fail(lost(error))  # where it was stderr, this goes nowhere
        return UsageError.exit_code
    say(traceback.format_exc())
    say(f"error: this is a bug in envlock {__version__}; please report it with the lines above\n")
    return BUG
