"""`envlock sync`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    FormatOption,
    LockArgument,
    PolicyOption,
    QuietOption,
    find_source,
    list_left_out,
    name_interpreter,
    refuse_both,
)
from envlock.cli.output import Terminal, emit, get_width, has_color
from envlock.cli.parser import Command, make_app
from envlock.reports import render

app = make_app()


@app.command(cls=Command)
def sync(
    lock: LockArgument = None,
    new: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of a new environment. [default: .venv beside the lockfile, else .venv-locked]",
        ),
    ] = None,
    # Without a variable and without a search: an environment is only changed where it is named.
    python: Annotated[
        Path | None,
        typer.Option(
            "--python",
            callback=name_interpreter,
            help="Interpreter or folder of an existing environment, which is changed.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; say what would be done.")
    ] = False,
    policy: PolicyOption = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
    quiet: QuietOption = False,
) -> None:
    """Install the locked packages: into a new environment, or the one that is named.

    Exit 0: the environment is the locked one. Exit 1: it is not, or a package was left out.

    uv or pip installs, each package by its locked hash, or without one (`envlock capture --hashes`) by version,
    URL or commit; the project itself as it is now. Packages that are not locked are removed from
    an environment that is named. If the installer fails, a new environment is removed, and a named
    one is as it was, or the message says what it holds.

    \b
    Examples:
      envlock sync                               a new environment beside the lockfile
      envlock sync --new /tmp/locked             one in another folder
      envlock sync --python .venv/bin/python     change this environment
      envlock sync --python .venv/bin/python --dry-run   say what would be changed
    """
    refuse_both({"--new": new, "--python": python}, {})
    request = envlock.SyncRequest(new, python, dry_run)
    done = envlock.sync(find_source(lock), request, policy, progress=Terminal(quiet))
    code = 0
    if done.report is not None:
        emit(render(done.report, format, color=has_color(), width=get_width()))
        code = done.report.exit_code
    if done.left_out:
        list_left_out(done.left_out, "installed")
        code = code or 1
    raise typer.Exit(code)
