"""`envlock upgrade`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    ArgsArgument,
    FormatOption,
    PythonOption,
    ScriptArgument,
    SeedOption,
)
from envlock.cli.output import Terminal, emit, get_width, has_color
from envlock.cli.parser import Command, make_app
from envlock.evidence.program import Program
from envlock.reports import render

app = make_app()


@app.command(cls=Command)
def upgrade(
    lock: Annotated[Path, typer.Argument(metavar="LOCK", help="Lockfile of this environment.")],
    script: ScriptArgument,
    args: ArgsArgument = None,
    seed: SeedOption = None,
    python: PythonOption = None,
    wanted: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="PACKAGE",
            help="Package to upgrade, `NAME` or `NAME==VERSION`, or `all`; repeatable.",
        ),
    ] = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Judge whether newer packages change the bits of a program.

    Exit 0: no bit changes. Exit 1: a value or a kernel differs. Exit 4: not provable.

    The installer resolves the versions and puts them into folders that Python looks in first;
    nothing is installed in this environment. Two things are compared: what the program records, as
    `envlock repeat` does it, and the operations of the canary. A function of a few steps is enough.

    \b
    Examples:
      envlock upgrade envlock.lock train.py:step --with keras==3.15.1   does this version change a bit?
      envlock upgrade envlock.lock train.py:step --with all             the newest of everything, one verdict each
      envlock upgrade envlock.lock train.py:step --with numpy -f json   for programs
    """
    program = Program(script, args or (), seed, python)
    report = envlock.upgrade(lock, program, wanted or [], progress=Terminal())
    emit(render(report, format, color=has_color(), width=get_width()))
    raise typer.Exit(report.exit_code)
