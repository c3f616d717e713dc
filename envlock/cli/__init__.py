"""The command line: one file for each command, and the only code that exits. A command is loaded
when it is called.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from envlock.cli.output import fail, make_disk_error, make_stream_error, say, settle
from envlock.cli.parser import Group, ParserError, complain
from envlock.cli.signals import interrupt_on_signals
from envlock.runtime.errors import EnvlockError, UsageError, WriteError
from envlock.runtime.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typer._click.core import Command, Context
    from typer._click.formatting import HelpFormatter

# EX_SOFTWARE, which nothing else here ends with: https://man.openbsd.org/sysexits.3
BUG = 70
# As a shell reports an end by SIGINT.
INTERRUPTED = 130
DISK = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EIO,
    errno.EACCES,
    errno.EPERM,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
)
"""Failures of a disk or the system at any file that the program opens: not a bug of the program."""
NO_TEMPORARY = "No usable temporary directory"
"""The beginning of the error of `tempfile.gettempdir`, whose number is that of a missing file."""

HEADINGS = {
    "Lock": {
        "init": "Add envlock's settings to pyproject.toml, and print files for pre-commit, GitHub and make.",
        "capture": "Write the live environment into a lockfile.",
        "show": "Show the contents of a lockfile.",
        "diff": "Compare two lockfiles, or a lockfile and the live environment.",
        "explain": "Explain facts: both values, the rule of each policy, why it matters and how that is known.",
        "ignore": "Allow facts to differ: add an override to pyproject.toml and to the lockfile.",
    },
    "Check": {
        "verify": "Check that this environment is the locked one.",
        "sync": "Install the locked packages: into a new environment, or the one that is named.",
        "run": "Run a command in the locked environment, or refuse.",
        "fleet": "Check that all ranks of a job have the same environment, and that it is the locked one.",
        "doctor": "Find defects and sources of nondeterminism in an environment.",
    },
    "Determinism": {
        "lint": "Find code that makes TensorFlow results differ between runs.",
        "repeat": "Run a training several times and compare the results bit for bit.",
        "diverge": "Find the first operation that makes runs differ, and its line.",
    },
    "Evidence": {
        "canary": "Run a fixed set of operations and compare the results with the lockfile, bit for bit.",
        "bisect": "Find which differences between two lockfiles moved the bits of a program.",
        "upgrade": "Judge whether newer packages change the bits of a program.",
    },
    "Ship": {
        "build": "Build a container that is the locked environment, and verify it inside.",
        "images": "List base images, ranked for a lockfile.",
        "export": "Export a lockfile in a format of other tools.",
    },
}
"""The commands of the help by heading, each with its first line. The module of a command has its
name.
"""
COMMANDS = {name: line for rows in HEADINGS.values() for name, line in rows.items()}


class Program(Group):
    """Loads a command when it is called: loading all of them takes a quarter of a second."""

    def invoke(self, ctx: Context) -> object:
        """Run a command; a signal that ends it ends what it has started, as Ctrl-C does."""
        with interrupt_on_signals():
            return super().invoke(ctx)

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names of the commands, in order."""
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Return a command, or None if there is no command with this name."""
        if cmd_name not in COMMANDS:
            return None
        return typer.main.get_command(import_module(f"envlock.cli.{cmd_name}").app)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the list of commands, without loading them."""
        for heading, rows in HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl(list(rows.items()))


app = typer.Typer(
    name="envlock",
    cls=Program,
    help="Lock everything below a TensorFlow script that can change its bits, and refuse to start when it changed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # plain help: the same in every terminal and every version of rich
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"envlock {__version__}")
        raise typer.Exit


@app.callback()
def _check_folder(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    try:
        Path.cwd()
    except OSError:
        raise UsageError(
            "the current folder does not exist any more", hint="change to another folder"
        ) from None


def main() -> None:
    """Run the program and exit: 0 to 6 as docs/reference/formats.md says, 70 for a bug, 130 after
    an interrupt.
    """
    # If stderr is closed, the parser would print its error on stdout, or fail.
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (for the whole process)
    # Not standalone: the parser would choose the exit codes, and print what it was given unescaped.
    try:
        sys.exit(app(prog_name="envlock", standalone_mode=False))
    except ParserError as error:
        sys.exit(complain(error))
    except EnvlockError as error:
        fail(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        sys.exit(_handle_unexpected(error))


def _handle_unexpected(error: Exception) -> int:
    """Return the exit code for an interrupt, a stream that could not be written by the parser, or a
    bug, and print which of these it was.

    A crash must never look like "does not match", which is Python's own exit code for a crash.
    """
    # The message of pydantic for an interrupt that came while it created a model.
    if "KeyboardInterrupt" in str(error):
        return INTERRUPTED
    if isinstance(error, OSError):
        if traceback.extract_tb(error.__traceback__)[-1].name == "echo":
            settle()
            # If stderr itself has failed, this is lost.
            fail(make_stream_error(error))
            return UsageError.exit_code
        if error.errno in DISK or str(error.strerror).startswith(NO_TEMPORARY):
            fail(make_disk_error(error))
            return WriteError.exit_code
    say(traceback.format_exc())
    say(f"error: this is a bug in envlock {__version__}; please report it with the lines above\n")
    return BUG
