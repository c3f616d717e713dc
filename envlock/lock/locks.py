"""Find the lockfile that a command is about, and read it as a model, or as plain values as the
runtime half does.
"""

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
    return load_lock(path)


def load_lock(source: Source | None) -> Lockfile:
    """Return the lockfile that `source` is or names; for None, the one that `assert_locked()` would
    use.

    Raises:
        LockfileError: it is missing, unreadable, invalid, or newer than this envlock.
    """
    if source is None or isinstance(source, str | os.PathLike | bytes):
        # Start-up time: the models take 0.1 s, which `verify` and `run` do not need.
        from envlock.lock import document

        if isinstance(source, bytes):
            return document.parse(source, STDIN)
        return document.load(locate(source))
    return source


def load_document(source: Source | None) -> tuple[dict[str, Any], str]:
    """Return the lockfile as the runtime half reads it, and what a report calls its file.

    The models are not loaded for this, which saves 60 ms.

    Raises:
        LockfileError: it is missing, unreadable, invalid, or newer than this envlock.
    """
    if isinstance(source, bytes):
        return lockfile.parse(source, STDIN), get_subject(source)
    if source is None or isinstance(source, str | os.PathLike):
        path = locate(source)
        return lockfile.read_file(path), get_subject(path)
    return source.to_document(), get_subject(source)


def get_subject(source: Source | None) -> str:
    """Return what a report calls the file of the lockfile; relative if it is below the current folder."""
    if not isinstance(source, str | os.PathLike):
        return lockfile.NAME
    path = Path(source)
    if path.is_relative_to(Path.cwd()):
        return str(path.relative_to(Path.cwd()))
    return str(path)


def name_found_lock(source: Source | None, subject: str) -> list[str]:
    """Return a note that names a lockfile which was found elsewhere than in the current folder."""
    if source is None and subject != lockfile.NAME:
        return [f"lockfile: {subject}"]
    return []


def get_file(source: Source | None) -> Path:
    """Return the absolute path of the lockfile; `envlock.lock` in the current folder if the source
    is not a path.

    Raises:
        LockfileError: there is no lockfile that `assert_locked()` would use.
    """
    return Path(find_path(source) or lockfile.NAME).absolute()


def find_path(source: Source | None) -> str | None:
    """Return the path of the lockfile; None if the source is not a path.

    Raises:
        LockfileError: there is no lockfile that `assert_locked()` would use.
    """
    if source is None or isinstance(source, str | os.PathLike):
        return locate(source)
    return None


def get_name(source: Source | None) -> str:
    """Return what a message calls the lockfile."""
    if isinstance(source, bytes):
        return "stdin"
    if source is None or isinstance(source, str | os.PathLike):
        return locate(source)
    return "the lockfile"
