"""What a killed writer has left: files and folders beside their place, which were never renamed."""

from __future__ import annotations

import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

PREFIX, SUFFIX = ".envlock.", ".tmp"
AGE = 60
"""Seconds; a younger draft may be one whose maker has not locked it yet."""


def hold(handle: int) -> None:
    """Keep a draft from being swept; where the file system knows no locks, nothing is swept either."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pass


def sweep(folder: Union[str, os.PathLike[str]]) -> None:
    """Remove the drafts in a folder that are this user's and nobody's any more: a lock on each ends with its maker."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name.startswith(PREFIX) and name.endswith(SUFFIX):
            try:
                _remove(os.path.join(folder, name))
            except OSError:
                pass


def _remove(draft: str) -> None:
    import fcntl
    from shutil import rmtree

    found = os.lstat(draft)
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
            rmtree(draft)
        else:
            os.unlink(draft)
    finally:
        os.close(handle)
