"""`envlock bisect`"""

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
def bisect(
    a: Annotated[Path, typer.Argument(metavar="A", help="Lockfile whose bits are the first.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Lockfile whose bits are the second.")],
    script: ScriptArgument,
    args: ArgsArgument = None,
    seed: SeedOption = None,
    python: PythonOption = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Find which differences between two lockfiles moved the bits of a program.

    Exit 0: none did. Exit 1: these did. Exit 4: a side varies or fails, or a difference cannot be put on this machine.

    The program runs with some of the differences at a time, as overlays of packages and as variables over the live
    environment, which is not changed. What it records is compared, as `envlock repeat` does.

    \b
    Examples:
      envlock bisect old.lock new.lock train.py:step           the smallest set that turns the bits
      envlock bisect a.lock b.lock train.py:step --seed 1 -f json  for programs
    """
    program = Program(script, args or (), seed, python)
    report = envlock.bisect(a, b, program, progress=Terminal())
    emit(render(report, format, color=has_color(), width=get_width()))
    raise typer.Exit(report.exit_code)
