"""`envlock policy`"""

from __future__ import annotations

import json

from envlock.cli.options import DATA_FORMATS, DataFormatOption, LockArgument, PolicyOption, source
from envlock.cli.output import color, emit
from envlock.cli.parser import Command, new_app

app = new_app()


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
    from envlock.lock.explanation import as_json
    from envlock.reports.policy import allowed
    from envlock.reports.text import paint
    from envlock.workflows.policy import allowed as ask

    found = ask(source(lock), policy)
    emit(
        json.dumps(as_json(found), indent=2)
        if format == "json"
        else paint(allowed(found), color=color())
    )
