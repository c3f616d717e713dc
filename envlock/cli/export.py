"""`envlock export`"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from envlock.cli import config as settings
from envlock.cli.options import STDIN, LockArgument, QuietOption, RequireAllOption, accept, one_of, read_document
from envlock.cli.output import emit, talk
from envlock.lock.document import validate
from envlock.lock.writer import write_atomically
from envlock.packages.export import FORMATS, PYLOCK_NAME, Wheelhouse
from envlock.packages.export import export as convert
from envlock.packages.wheelhouse import wheels_in
from envlock.runtime.errors import UsageError

PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+~-]+")
"""What can stand in a requirements file without quotes, which not every reader of it knows."""


def export(
    lock: LockArgument = None,
    *,
    to: Annotated[
        str, typer.Option("--to", "-t", help="pylock (PEP 751, for uv and pip) or requirements (with hashes, for pip).")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write. Default, and -: stdout.", show_default=False),
    ] = None,
    wheelhouse: Annotated[
        Path | None,
        typer.Option(
            help="Name the wheels in this folder, which `envlock vendor` has filled, not those on the web.",
            show_default=False,
        ),
    ] = None,
    require_all: RequireAllOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write what a lockfile proves in a format that installers read.

    Only packages whose exact wheel is known (`envlock hash`) are in it; the others are listed with the reason, in
    the file and on stderr.

    \b
    Examples:
      envlock export --to pylock -o pylock.toml              then: uv pip install -r pylock.toml
      envlock export --to requirements -o requirements.txt   then: pip install --no-deps --require-hashes -r ...
      envlock export --to pylock --wheelhouse wheelhouse     for machines without network
    """
    one_of(to, list(FORMATS), "format")
    output = None if str(output) == STDIN else output
    if output is not None:
        _fits(to, output)
    name, document = read_document(lock, settings.load(Path.cwd()))
    house = None if wheelhouse is None else _house(wheelhouse, output, to)
    written = convert(validate(document, name), name, to, house)
    accept(written.left_out, "exported", require_all=require_all, quiet=quiet)
    if output is None:
        emit(written.text.encode("utf-8"))
        return
    write_atomically(output, written.text.encode("utf-8"), "file")
    talk(f"wrote {output}", quiet=quiet)


def _fits(to: str, output: Path) -> None:
    if to == "pylock" and not PYLOCK_NAME.fullmatch(output.name):
        raise UsageError(
            f"installers do not take {output.name} for a file of this format",
            hint="call it pylock.toml or pylock.NAME.toml",
        )


def _house(folder: Path, output: Path | None, to: str) -> Wheelhouse:
    """Return what is in a folder of wheels, by its path as seen from the file that is written.

    Raises:
        UsageError: it is no folder, or its path cannot be written.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", hint="fill one: `envlock vendor`")
    path = os.path.relpath(folder, output.parent if output is not None else ".")
    if not (PLAIN_PATH.fullmatch(path) if to == "requirements" else path.isprintable()):
        raise UsageError(
            f"the path {path!r} cannot stand in a file of this format", hint="use a folder with a plain name"
        )
    return Wheelhouse(path, wheels_in(folder))
