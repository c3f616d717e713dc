"""`envlock diff`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    LIVE,
    STDIN,
    FormatOption,
    PythonOption,
    VerboseOption,
    find_source,
    show,
)
from envlock.cli.parser import Command, make_app, make_choice
from envlock.lock.models import Lockfile
from envlock.lock.settings import Config
from envlock.runtime.errors import UsageError
from envlock.runtime.policies import names
from envlock.workflows.data_capture import add_live_data
from envlock.workflows.model import read_lock
from envlock.workflows.pastes import load_side

app = make_app()

SideArgument = Annotated[
    str,
    typer.Argument(help="Lockfile, stamped model, pasted text, - for stdin, or `live`."),
]


@app.command(cls=Command)
def diff(
    a: SideArgument,
    b: SideArgument,
    policy: Annotated[
        str,
        make_choice(
            names(), "policy", "--policy", "-p", envvar="ENVLOCK_POLICY", help="Comparison policy."
        ),
    ] = "strict",
    python: PythonOption = None,
    verbose: VerboseOption = False,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Compare two lockfiles, or a lockfile and the live environment.

    Exit 1 if something differs that the policy does not allow. Of a pasted freeze, environment.yml,
    Dockerfile, nvidia-smi table or form of a bug report, what it states is compared.

    \b
    Examples:
      envlock diff alice.lock bob.lock  why two people get different numbers
      envlock diff old.lock live        what has changed here since
      envlock diff model.keras live     does what made this stamped model differ from here?
      envlock diff freeze.txt live      what of a pasted `pip freeze` differs from here?
    """
    if a == b == STDIN:
        raise UsageError("both sides are stdin", hint="name a file or `live` for one of them")
    one, other = load_side(_read_side(a, python)), load_side(_read_side(b, python))
    # The live environment has the data of the project here, at the paths that the other side names.
    if isinstance(one, Lockfile) and isinstance(other, Lockfile):
        if a == LIVE:
            one = add_live_data(one, other)
        elif b == LIVE:
            other = add_live_data(other, one)
    report = envlock.diff(
        one,
        other,
        policy,
        names=(_get_title(a), _get_title(b)),
        one_machine=LIVE in (a, b),
    )
    show(report, format, verbose=verbose)


def _get_title(name: str) -> str:
    """Return the name of a side in the report."""
    if name == STDIN:
        return "stdin"
    return name


def _read_side(name: str, python: Path | None) -> Lockfile | str | bytes:
    """Return the live environment, the lockfile in a model, or the path or content of a lockfile."""
    if name == LIVE:
        return envlock.capture(python=python)
    # The settings name the lockfile to use if none is given, but here both sides are given.
    return read_lock(name) or find_source(name, Config())
