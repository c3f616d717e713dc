"""Drafts: what is written beside its place and then renamed; the next run removes what a killed one has left."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from envlock.runtime.errors import WriteError

PREFIX, SUFFIX = ".envlock.", ".tmp"
AGE = 60
"""Seconds; a younger draft may be one whose maker has not locked it yet."""


@contextlib.contextmanager
def draft_file(folder: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Yield a new file in a folder, and its path; it is removed at the end, unless it was renamed.

    Raises:
        OSError: there can be none.
    """
    sweep(folder)
    handle, name = tempfile.mkstemp(prefix=PREFIX, suffix=SUFFIX, dir=folder)
    try:
        with os.fdopen(handle, "wb") as stream:
            _hold(handle)
            yield stream, Path(name)
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()


@contextlib.contextmanager
def draft_folder(parent: Path | None) -> Iterator[Path]:
    """Yield a new folder in another one, or in the system's temporary folder; it is removed, unless it was renamed.

    What others left there that were killed is removed first: gigabytes, where one of them built an image.

    Raises:
        WriteError: there can be none.
    """
    place = parent or Path(tempfile.gettempdir())
    sweep(place)
    try:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, suffix=SUFFIX, dir=place))
    except OSError as error:
        hint = "check its permissions" if parent else "set TMPDIR to another folder"
        raise WriteError(f"cannot create a folder in {place}: {error.strerror}", hint=hint) from None
    handle = os.open(folder, os.O_RDONLY)
    try:
        _hold(handle)
        yield folder
    finally:
        os.close(handle)
        shutil.rmtree(folder, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove the drafts in a folder that are this user's and nobody's any more: a lock on each ends with its maker."""
    with contextlib.suppress(OSError):
        for each in folder.glob(f"{PREFIX}*{SUFFIX}"):
            with contextlib.suppress(OSError):
                _remove(each)


def _remove(draft: Path) -> None:
    found = draft.lstat()
    is_folder = stat.S_ISDIR(found.st_mode)
    if (
        found.st_uid != os.geteuid()
        or time.time() - found.st_mtime < AGE
        or not (is_folder or stat.S_ISREG(found.st_mode))
    ):
        return
    handle = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_folder:
            shutil.rmtree(draft)
        else:
            draft.unlink()
    finally:
        os.close(handle)


def _hold(handle: int) -> None:
    """Keep a draft from being swept; where the file system knows no locks, nothing is swept either."""
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
