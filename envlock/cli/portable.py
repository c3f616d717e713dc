"""`envlock portable`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import FormatOption, show
from envlock.cli.parser import Command, make_app

app = make_app()

LocksArgument = Annotated[
    list[Path], typer.Argument(metavar="LOCK...", help="Lockfiles of all machines.")
]


@app.command(cls=Command)
def portable(
    locks: LocksArgument,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Find variables under which machines of different processors compute the same bits.

    Exit 0: their canaries are equal. Exit 1: they are not, or no cap fits. Exit 4: proposed, and not proven yet.

    The cap is the widest set of instructions that all machines have. Only the canary on each machine, computed
    with these variables set, proves it; `envlock run` then sets them.

    \b
    Examples:
      envlock portable a.lock b.lock        what to export, and what is proven
      envlock portable team/*.lock -f json  for programs
    """
    report = envlock.portable(locks)
    show(report, format)
