"""`envlock diff`"""

from __future__ import annotations

from typing import Annotated

import typer

from envlock import api
from envlock.cli.options import FormatOption, one_of
from envlock.cli.output import color, emit
from envlock.reports import FORMATS
from envlock.runtime.policy import names

LIVE = "live"


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A lockfile, or `live`.")],
    b: Annotated[str, typer.Argument(metavar="B", help="A lockfile, or `live`.")],
    policy: Annotated[str, typer.Option("--policy", "-p", help="How closely to compare.")] = "strict",
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Show what differs between two lockfiles, or one and the live environment.

    Exit 1 when something differs that the policy holds.

    \b
    Examples:
      envlock diff alice.lock bob.lock  why do these two get different numbers?
      envlock diff old.lock live        what has changed here since?
    """
    one_of(format, list(FORMATS), "format")
    one_of(policy, names(), "policy")
    sides = [api.capture() if name == LIVE else api.load(name) for name in (a, b)]
    report = api.diff(sides[0], sides[1], policy)
    report.expected_name, report.actual_name = a, b
    emit(FORMATS[format](report, color=color()))
    raise typer.Exit(report.exit_code)
