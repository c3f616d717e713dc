"""`envlock merge`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.output import talk
from envlock.cli.parser import Command, make_app
from envlock.runtime.report import count

app = make_app()

BaseArgument = Annotated[
    Path, typer.Argument(help="Lockfile before both changes.", show_default=False)
]
OursArgument = Annotated[
    Path, typer.Argument(help="Lockfile of our side; receives the result.", show_default=False)
]
TheirsArgument = Annotated[
    Path, typer.Argument(help="Lockfile of the other side.", show_default=False)
]


@app.command(cls=Command)
def merge(base: BaseArgument, ours: OursArgument, theirs: TheirsArgument) -> None:
    """Merge the changes of two lockfiles; a merge driver for git.

    Facts that only one side changed are taken from that side. Where both sides changed a fact, ours
    stays, the fact is printed, and the exit code is 1. A canary or an image of other facts is
    dropped. The result describes an environment that no machine has captured yet: check it with
    `envlock verify`.

    \b
    Examples:
      git config merge.envlock.driver "envlock merge %O %A %B"  make it known to git
      echo "envlock.lock merge=envlock" >> .gitattributes       use it for lockfiles
      envlock merge base.lock ours.lock theirs.lock             merge by hand, into ours.lock
    """
    merged = envlock.merge(base, ours, theirs)
    # Git gives a merge driver copies of its own, so nothing else changes this file meanwhile:
    # https://git-scm.com/docs/gitattributes#_defining_a_custom_merge_driver
    envlock.save(merged.lock, ours)
    if merged.exempt:
        talk(f"warning: more may differ than before: {', '.join(merged.exempt)}")
    if merged.conflicts:
        talk(
            f"{count(len(merged.conflicts), 'conflict')}, ours kept: {', '.join(merged.conflicts)}"
        )
        raise typer.Exit(1)
