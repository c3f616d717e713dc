"""`envlock hash`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    IndexOption,
    LockArgument,
    PythonOption,
    QuietOption,
    find_source,
)
from envlock.cli.output import Terminal, emit, talk
from envlock.cli.parser import Command, make_app, spread_groups
from envlock.packages.proofs import describe_proofs
from envlock.workflows.hash import HashRequest

app = make_app()

OfflineOption = Annotated[
    bool, typer.Option("--offline", help="Use no index; record only local facts.")
]
BuildOption = Annotated[
    bool,
    typer.Option(
        "--build", help="Build the packages that no index has from their sources; runs their code."
    ),
]
WheelOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--add-wheel",
        help="Wheel, or folder of wheels, for packages that no index has (repeatable).",
    ),
]


@dataclass(frozen=True)
class IndexOptions:
    """The indexes that are asked."""

    index_url: IndexOption = None
    offline: OfflineOption = False


USUAL_INDEXES = IndexOptions()


@app.command(cls=Command)
@spread_groups
def hash(  # noqa: A001 (the command's name)
    lock: LockArgument = None,
    python: PythonOption = None,
    indexes: IndexOptions = USUAL_INDEXES,
    build: BuildOption = False,
    add_wheel: WheelOption = None,
    quiet: QuietOption = False,
) -> None:
    """Find the wheel of every installed package and record its SHA-256.

    A wheel is proven by its RECORD, which must list exactly the installed files with their hashes,
    and by the files themselves. If its publisher's RECORD is wrong, the files are compared with those
    in its archive. Its SHA-256 is computed from all its bytes. A package without a proven wheel is
    recorded with the reason. A checkout or a folder gets a wheel with `--build`: its sources are copied and
    built, and the wheel is kept for `envlock vendor`.

    Nothing is written on exit 1 (another environment, or a package has lost its proof) and 5 (an
    index failed).

    \b
    Examples:
      envlock hash                        the nearest lockfile, and the indexes of pip's and uv's settings
      envlock hash --build                with the wheels of checkouts and of the project itself
      envlock hash --offline              local facts only
    """
    source = find_source(lock)
    before = None if isinstance(source, bytes) else envlock.load(source)
    request = HashRequest(
        indexes.index_url or (),
        indexes.offline,
        build=build,
        wheels=add_wheel or (),
    )
    new = envlock.hash_packages(source, request, python=python, progress=Terminal(quiet))
    if isinstance(source, bytes):
        emit(new.to_bytes())
    else:
        envlock.save(new, source, before)
    for line in describe_proofs(new):
        talk(line, quiet=quiet)
