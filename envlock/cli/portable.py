"""`envlock portable`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import FormatOption, PythonOption, QuietOption, show
from envlock.cli.output import Terminal
from envlock.cli.parser import Command, make_app

app = make_app()

LocksArgument = Annotated[
    list[Path], typer.Argument(metavar="LOCK...", help="Lockfiles of all machines.")
]
EstimateOption = Annotated[
    bool,
    typer.Option(
        "--estimate",
        help="Also compute the canary here and on an emulated processor, under the cap. Takes minutes.",
    ),
]


@app.command(cls=Command)
def portable(
    locks: LocksArgument,
    estimate: EstimateOption = False,
    python: PythonOption = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
    quiet: QuietOption = False,
) -> None:
    """Find variables under which machines of different processors compute the same bits.

    Exit 0: their canaries are equal. Exit 1: they are not, or no cap fits. Exit 4: proposed, and not proven yet.

    The cap is the widest set of instructions that all machines have. Only the canary on each machine, computed
    with these variables set, proves it; `envlock run` then sets them.

    \b
    Examples:
      envlock portable a.lock b.lock              what to export, and what is proven
      envlock portable a.lock b.lock --estimate   which operations it reaches, by emulation
      envlock portable team/*.lock -f json        for programs
    """
    report = envlock.portable(locks, estimate=estimate, python=python, progress=Terminal(quiet))
    show(report, format)
