"""`envlock vendor`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    IndexOption,
    LockArgument,
    QuietOption,
    find_source,
    refuse_left_out,
)
from envlock.cli.output import Terminal, talk
from envlock.cli.parser import Command, make_app
from envlock.runtime.errors import OutsideError
from envlock.runtime.report import count

app = make_app()
HOW = {"fetched": "fetched", "cached": "from the cache", "there": "already there"}

FolderOption = Annotated[Path, typer.Option("--output", "-o", help="Folder to fill.")]


@app.command(cls=Command)
def vendor(
    lock: LockArgument = None,
    *,
    output: FolderOption = Path("wheelhouse"),
    index_url: IndexOption = None,
    quiet: QuietOption = False,
) -> None:
    """Download the wheels that a lockfile names.

    Every file is checked against its SHA-256. After an interruption, run it again: finished files
    are kept, and partial downloads are resumed.

    Exit 1: the lockfile does not name the wheel of a package that a policy compares; it is listed,
    and the others are downloaded. Exit 5: a wheel could not be downloaded.

    \b
    Examples:
      envlock vendor                                        fill ./wheelhouse
      envlock export -f pylock --wheelhouse wheelhouse -o pylock.toml
                                                            then: uv pip install --offline -r pylock.toml
    """
    found = envlock.vendor(
        find_source(lock),
        output,
        indexes=index_url or (),
        progress=Terminal(quiet),
    )
    amount = count(found.how.total(), "wheel")
    ways = [f"{found.how[word]} {words}" for word, words in HOW.items() if found.how[word]]
    if ways:
        amount += f" ({', '.join(ways)})"
    talk(f"{output}: {amount}", quiet=quiet)
    if found.others:
        others = count(len(found.others), "wheel")
        talk(f"{output} also holds {others} of other locks", quiet=quiet)
    if found.missing:
        for package in found.missing:
            talk(f"  {package}")
        wheels = count(len(found.missing) + found.how.total(), "wheel")
        raise OutsideError(
            f"{len(found.missing)} of {wheels} could not be downloaded (listed above)",
            hint="run it again: finished files are kept, and partial downloads are resumed",
        )
    refuse_left_out(found.left_out, "vendored")
