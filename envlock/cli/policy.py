"""`envlock policy`"""

from __future__ import annotations

import json

import envlock
from envlock.cli.options import (
    DATA_FORMATS,
    DataFormatOption,
    LockArgument,
    PolicyOption,
    find_source,
)
from envlock.cli.output import emit, has_color
from envlock.cli.parser import Command, make_app
from envlock.lock.explanation import serialize
from envlock.reports.policy_text import list_allowed
from envlock.reports.text import paint

app = make_app()


@app.command(cls=Command)
def policy(
    lock: LockArgument = None,
    policy: PolicyOption = None,
    format: DataFormatOption = DATA_FORMATS[0],  # noqa: A002 (the option's name)
) -> None:
    """List the facts of a lockfile that may differ under its policy, and why.

    \b
    Examples:
      envlock policy               under the lockfile's own policy and overrides
      envlock policy -p same-arch  under another policy
    """
    found = envlock.allowed(find_source(lock), policy)
    if format == "json":
        emit(json.dumps(serialize(found), indent=2))
    else:
        emit(paint(list_allowed(found), color=has_color()))
