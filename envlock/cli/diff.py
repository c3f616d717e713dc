"""`envlock diff`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envlock.cli.options import LIVE, STDIN, FormatOption, PythonOption, show, source
from envlock.cli.parser import Command, choice, new_app
from envlock.runtime.errors import UsageError
from envlock.runtime.policy import names
from envlock.workflows.settings import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile

app = new_app()

SideArgument = Annotated[
    str, typer.Argument(help="Lockfile, stamped model, - for stdin, or `live`.", show_default=False)
]
TierOption = Annotated[
    str,
    choice(names(), "policy", "--policy", "-p", envvar="ENVLOCK_POLICY", help="Comparison policy."),
]


@app.command(cls=Command)
def diff(
    a: SideArgument,
    b: SideArgument,
    policy: TierOption = "strict",
    python: PythonOption = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Compare two lockfiles, or a lockfile and the live environment.

    Exit 1 if something differs that the policy does not allow.

    \b
    Examples:
      envlock diff alice.lock bob.lock  why two people get different numbers
      envlock diff old.lock live        what has changed here since
      envlock diff model.keras live     does what made this stamped model differ from here?
    """
    from envlock.workflows.diff import diff as compare

    if a == b == STDIN:
        raise UsageError("both sides are stdin", hint="name a file or `live` for one of them")
    called = ["stdin" if name == STDIN else name for name in (a, b)]
    sides = _side(a, python), _side(b, python)
    show(compare(*sides, policy, names=(called[0], called[1]), one_machine=LIVE in (a, b)), format)


def _side(name: str, python: Path | None) -> Lockfile | str | bytes:
    if name == LIVE:
        from envlock.workflows.capture import capture

        return capture(python=python)
    from envlock.workflows.model import lock_in

    return lock_in(name) or source(name, Config())
