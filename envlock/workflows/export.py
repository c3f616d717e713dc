"""Write a lockfile in the formats of installers, scanners and deployment tools."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path

from envlock.image.forms import FORMS
from envlock.lock.locks import get_name, load_lock
from envlock.packages import export_formats as packages
from envlock.packages.export_formats import FORMATS, PYLOCK_NAME, Wheelhouse, Written
from envlock.packages.wheelhouse import measure_wheels
from envlock.runtime.errors import UsageError, make_choice_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source

PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+~-]+")
"""The paths that a requirements file can have without quotes, which not every reader supports."""


def export(
    lock: Source | None = None,
    *,
    to: str,
    output: Path | None = None,
    wheelhouse: Path | None = None,
    hashes: bool = True,
) -> Written:
    """Return the text of the file and the packages that it leaves out; nothing is written.

    Args:
        lock: the lockfile; the one that `assert_locked()` would use when not given.
        to: the format, one of `envlock.packages.export_formats.FORMATS` or `envlock.image.forms.FORMS`.
        output: the path that the text will be written to; paths of wheels are relative to its
            folder.
        wheelhouse: a folder of wheels to refer to instead of those on the web.
        hashes: write only packages whose wheel is proven, with its hash; else all by version, for
            `requirements`.

    Raises:
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
        UsageError: there is no such format or folder, or a path cannot be written in this format.
    """
    if not hashes:
        if to != "requirements" or wheelhouse is not None:
            raise UsageError(
                "only `--format requirements` without `--wheelhouse` can be without hashes",
                hint="leave out `--no-hashes`",
            )
        return packages.export_versions(load_lock(lock))
    check_destination(to, output, wheelhouse)
    if to in FORMS:
        # It is of the whole lockfile, and leaves out no package.
        text: str = import_module(FORMS[to]).render(load_lock(lock))
        return Written(text, [], [])
    house = _open_wheelhouse(wheelhouse, output, to) if wheelhouse is not None else None
    return packages.export(load_lock(lock), get_name(lock), to, house)


def check_destination(to: str, output: Path | None, wheelhouse: Path | None) -> None:
    """Check that a format can be written to a path, with wheels from a folder.

    Raises:
        UsageError: there is no such format, or a path cannot be written in it.
    """
    if to in FORMS:
        if wheelhouse is not None:
            raise UsageError(
                f"`--format {to}` reads no wheelhouse", hint="leave out `--wheelhouse`"
            )
        return
    if to not in FORMATS:
        raise make_choice_error("format", to, (*FORMATS, *FORMS))
    if output is not None and to == "pylock" and not PYLOCK_NAME.fullmatch(output.name):
        raise UsageError(
            f"installers do not accept the name {output.name} for this format",
            hint="name it pylock.toml or pylock.NAME.toml",
        )
    if wheelhouse is not None:
        _describe_path(wheelhouse, output, to)


def _describe_path(folder: Path, output: Path | None, to: str) -> str:
    """Return the path of a folder of wheels relative to the file that is written.

    Raises:
        UsageError: it cannot be written in this format.
    """
    start = output.parent if output is not None else Path()
    path = os.path.relpath(folder, start)
    can_be_written = (
        PLAIN_PATH.fullmatch(path) is not None if to == "requirements" else path.isprintable()
    )
    if not can_be_written:
        raise UsageError(
            f"the path {path!r} cannot be written in this format",
            hint="use a folder with a plain name",
        )
    return path


def _open_wheelhouse(folder: Path, output: Path | None, to: str) -> Wheelhouse:
    """Return the contents of a folder of wheels, with its path relative to the file that is
    written.
    """
    if not folder.is_dir():
        raise UsageError(
            f"folder not found: {folder}", hint="`envlock export --wheelhouse` fills one"
        )
    return Wheelhouse(_describe_path(folder, output, to), measure_wheels(folder))
