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
    RequireAllOption,
    find_source,
    report_left_out,
)
from envlock.cli.output import Terminal, talk
from envlock.cli.parser import Command, make_app
from envlock.runtime.errors import OutsideError, UsageError
from envlock.runtime.report import clean, count

app = make_app()
HOW = {"fetched": "fetched", "cached": "from the cache", "there": "already there"}

FolderOption = Annotated[Path, typer.Option("--output", "-o", help="Folder to fill.")]
PruneOption = Annotated[
    bool, typer.Option("--prune", help="Remove wheels that the lockfile does not name.")
]


@app.command(cls=Command)
def vendor(
    lock: LockArgument = None,
    *,
    output: FolderOption = Path("wheelhouse"),
    index_url: IndexOption = None,
    prune: PruneOption = False,
    require_all: RequireAllOption = False,
    quiet: QuietOption = False,
) -> None:
    """Download the wheels that a lockfile names.

    Every file is checked against its SHA-256. After an interruption, run it again: finished files
    are kept, and partial downloads are resumed.

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
        require_all=require_all,
        progress=Terminal(quiet),
    )
    report_left_out(found.left_out, "vendored", required=require_all, quiet=quiet)
    amount = count(found.how.total(), "wheel")
    ways = [f"{found.how[word]} {words}" for word, words in HOW.items() if found.how[word]]
    if ways:
        amount += f" ({', '.join(ways)})"
    talk(f"{output}: {amount}", quiet=quiet)
    if prune:
        _remove(found.others, quiet=quiet)
    elif found.others:
        others = count(len(found.others), "wheel")
        talk(f"{output} also holds {others} of other locks; --prune removes them", quiet=quiet)
    if found.missing:
        for package in found.missing:
            talk(f"  {package}")
        wheels = count(len(found.missing) + found.how.total(), "wheel")
        raise OutsideError(
            f"{len(found.missing)} of {wheels} could not be downloaded (listed above)",
            hint="run it again: finished files are kept, and partial downloads are resumed",
        )


def _remove(wheels: list[Path], *, quiet: bool) -> None:
    for file in wheels:
        talk(f"removing {clean(str(file))}", quiet=quiet)
        try:
            file.unlink()
        except OSError as error:
            raise UsageError(f"cannot remove {file}: {error.strerror}") from None
