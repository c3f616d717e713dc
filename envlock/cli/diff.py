"""`envlock diff`"""

from __future__ import annotations

from typing import Annotated

import typer

from envlock import api
from envlock.cli.config import Config
from envlock.cli.options import STDIN, FormatOption, one_of, read_document
from envlock.cli.output import color, emit
from envlock.lock.document import validate
from envlock.lock.models import Lockfile
from envlock.reports import FORMATS
from envlock.runtime.errors import UsageError
from envlock.runtime.policy import names

LIVE = "live"


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A lockfile, `-` for stdin, or `live`.")],
    b: Annotated[str, typer.Argument(metavar="B", help="A lockfile, `-` for stdin, or `live`.")],
    policy: Annotated[
        str, typer.Option("--policy", "-p", envvar="ENVLOCK_POLICY", help="How closely to compare.")
    ] = "strict",
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
    if a == b == STDIN:
        raise UsageError("stdin can be one side only", hint="name a file or `live` for the other")
    report = api.diff(_side(a), _side(b), policy)
    report.expected_name, report.actual_name = ("stdin" if name == STDIN else name for name in (a, b))
    emit(FORMATS[format](report, color=color()))
    raise typer.Exit(report.exit_code)


def _side(name: str) -> Lockfile:
    return api.capture() if name == LIVE else _read(name)


def _read(name: str) -> Lockfile:
    shown, document = read_document(name, Config())
    return validate(document, shown)
