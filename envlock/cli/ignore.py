"""`envlock ignore`"""

from __future__ import annotations

import itertools
from typing import Annotated

import typer

import envlock
from envlock.cli.options import LockOption, find_near
from envlock.cli.output import talk
from envlock.cli.parser import Command, make_app
from envlock.lock.settings_changes import find_settings
from envlock.lock.writer import restore_on_failure
from envlock.workflows.ignore import expand_name, is_kept

app = make_app()


@app.command(cls=Command)
def ignore(
    pattern: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="Path or pattern of facts, such as `environ.TZ`, or a name such as `six` or `machine`.",
        ),
    ],
    reason: Annotated[
        str,
        typer.Option("--reason", help="Why the facts may differ, in one line."),
    ],
    lock: LockOption = None,
) -> None:
    """Allow facts to differ: add an override to pyproject.toml and to the lockfile.

    The locked values stay as they are, and differences are still listed. `envlock verify
    --no-overrides` disregards overrides.

    \b
    Examples:
      envlock ignore six --reason "used by no training code"
      envlock ignore cpu.quota --reason "it only throttles"
    """
    path = find_near(lock)
    patterns = expand_name(pattern, path)
    before = envlock.load(path) if path is not None else None
    # Both files or none: a rule in one of them would look like an edit of the other.
    with restore_on_failure(find_settings()):
        file, changed = envlock.ignore(pattern, reason, path)
        if changed is not None and path is not None:
            # What another command has written since `before` was read is kept.
            envlock.save(changed, path, before)
    for each in filter(is_kept, patterns):
        talk(f'no rule for "{each}": it is about software that computes, and is compared as before')
    for each in itertools.filterfalse(is_kept, patterns):
        talk(f'wrote {file}: "{each}" = "ignore"')
    if changed is not None and path is not None:
        talk(f"wrote {path}: policy {changed.policy.name}")
