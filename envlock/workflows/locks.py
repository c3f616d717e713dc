"""Which lockfile is meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from envlock.runtime import lockfile
from envlock.runtime.assertion import locate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile

    Source = Lockfile | str | os.PathLike[str] | bytes
    """A lockfile, the path of one, or its content."""

STDIN = "from stdin"


def load(path: str | os.PathLike[str] | None = None) -> Lockfile:
    """Return the lockfile at `path`, or the one that `assert_locked()` would use.

    Raises:
        LockfileError: it is missing, unreadable, invalid, or newer than this envlock.
    """
    from envlock.lock.document import load as read

    return read(locate(path))


def lock_of(source: Source | None) -> Lockfile:
    """Return the lockfile that a source stands for; None is the one that `assert_locked()` would use.

    Raises:
        LockfileError: it is missing, unreadable, invalid, or newer than this envlock.
    """
    if isinstance(source, bytes):
        from envlock.lock.document import parse

        return parse(source, STDIN)
    if source is None or isinstance(source, str | os.PathLike):
        return load(source)
    return source


def plain(source: Source | None) -> tuple[dict[str, Any], str]:
    """Return the lockfile as the runtime half reads it, and what a report calls its file.

    No model is needed for that, which saves 60 ms.

    Raises:
        LockfileError: it is missing, unreadable, invalid, or newer than this envlock.
    """
    if isinstance(source, bytes):
        return lockfile.parse(source, STDIN), subject_of(source)
    if source is None or isinstance(source, str | os.PathLike):
        path = locate(source)
        return lockfile.read_file(path), subject_of(path)
    return source.to_document(), subject_of(source)


def subject_of(source: Source | None) -> str:
    """Return what a report calls the file of the lockfile: its path from the current folder, where it lies below."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    return lockfile.NAME


def file_of(source: Source | None) -> Path:
    """Return the absolute path of a lockfile; that of one in the current folder where it is no file.

    Raises:
        LockfileError: there is no lockfile that `assert_locked()` would use.
    """
    named = (
        locate(source) if source is None or isinstance(source, str | os.PathLike) else lockfile.NAME
    )
    return Path(named).absolute()


def name_of(source: Source | None) -> str:
    """Return what a message calls the lockfile."""
    if isinstance(source, bytes):
        return "stdin"
    if source is None or isinstance(source, str | os.PathLike):
        return locate(source)
    return "the lockfile"
