"""`envlock vendor`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envlock.cli.options import (
    IndexOption,
    LockArgument,
    QuietOption,
    RequireAllOption,
    left_out,
    source,
)
from envlock.cli.output import Terminal, talk
from envlock.cli.parser import Command, new_app
from envlock.runtime.errors import OutsideError, UsageError
from envlock.runtime.report import clean, count

app = new_app()
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

    Every file is checked against its SHA-256. After an interruption, run it again: finished files are kept, and partial
    downloads are resumed.

    \b
    Examples:
      envlock vendor                                        fill ./wheelhouse
      envlock export -f pylock --wheelhouse wheelhouse -o pylock.toml
                                                            then: uv pip install --offline -r pylock.toml
    """
    from envlock.workflows.vendor import vendor as fill

    found = fill(
        source(lock),
        output,
        indexes=index_url or (),
        require_all=require_all,
        progress=Terminal(quiet),
    )
    left_out(found.left_out, "vendored", required=require_all, quiet=quiet)
    came = ", ".join(f"{found.how[word]} {words}" for word, words in HOW.items() if found.how[word])
    talk(
        f"{output}: {count(found.how.total(), 'wheel')}{f' ({came})' if came else ''}", quiet=quiet
    )
    _others(output, found.others, prune=prune, quiet=quiet)
    if found.missing:
        talk("\n".join(f"  {each}" for each in found.missing))
        wheels = count(len(found.missing) + found.how.total(), "wheel")
        raise OutsideError(
            f"{len(found.missing)} of {wheels} could not be downloaded (listed above)",
            hint="run it again: finished files are kept, and partial downloads are resumed",
        )


def _others(folder: Path, others: list[Path], *, prune: bool, quiet: bool) -> None:
    """Remove the wheels that are not the lockfile's, or say that there are some."""
    if others and not prune:
        talk(
            f"{folder} also holds {count(len(others), 'wheel')} of other locks; --prune removes them",
            quiet=quiet,
        )
    for file in others if prune else []:
        talk(f"removing {clean(str(file))}", quiet=quiet)
        try:
            file.unlink()
        except OSError as error:
            raise UsageError(f"cannot remove {file}: {error.strerror}") from None
