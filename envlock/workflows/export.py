"""Write what a lockfile proves in a format that installers read."""

from __future__ import annotations

import os
import re
from pathlib import Path

from envlock.packages.export import FORMATS, PYLOCK_NAME, Wheelhouse, Written
from envlock.packages.export import export as convert
from envlock.packages.wheelhouse import wheels_in
from envlock.runtime.errors import UsageError
from envlock.workflows.locks import lock_of, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source

PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+~-]+")
"""What can stand in a requirements file without quotes, which not every reader of it knows."""


def export(
    lock: Source | None = None, *, to: str, output: Path | None = None, wheelhouse: Path | None = None
) -> Written:
    """Return the text of the file, and which packages it leaves out; nothing is written.

    Args:
        lock: the lockfile; the one that `assert_locked()` would use when not given.
        to: the format, one of `envlock.packages.export.FORMATS`.
        output: where the file will be: a path of wheels is relative to its folder.
        wheelhouse: a folder of wheels to name in the place of those on the web.

    Raises:
        LockfileError: the lock is missing, unreadable, invalid, or newer than this envlock.
        UsageError: there is no such format or folder, or a path cannot be written in this format.
    """
    if to not in FORMATS:
        raise UsageError(f"unknown format `{to}`", hint=f"choose from: {', '.join(FORMATS)}")
    if output is not None and to == "pylock" and not PYLOCK_NAME.fullmatch(output.name):
        raise UsageError(
            f"installers do not accept the name {output.name} for this format",
            hint="name it pylock.toml or pylock.NAME.toml",
        )
    house = None if wheelhouse is None else _house(wheelhouse, output, to)
    return convert(lock_of(lock), name_of(lock), to, house)


def _house(folder: Path, output: Path | None, to: str) -> Wheelhouse:
    """Return what is in a folder of wheels, by its path as seen from the file that is written."""
    if not folder.is_dir():
        raise UsageError(f"folder not found: {folder}", hint="run `envlock vendor` to fill one")
    path = os.path.relpath(folder, output.parent if output is not None else ".")
    if not (PLAIN_PATH.fullmatch(path) if to == "requirements" else path.isprintable()):
        raise UsageError(f"the path {path!r} cannot be written in this format", hint="use a folder with a plain name")
    return Wheelhouse(path, wheels_in(folder))
