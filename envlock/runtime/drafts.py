"""Remove files and folders of interrupted writers: drafts that were never renamed to their final
name.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from shutil import rmtree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

PREFIX, SUFFIX = ".envlock.", ".tmp"
AGE = 60
"""Seconds; the process that makes a younger draft may not have locked it yet."""


def hold(handle: int) -> None:
    """Keep a draft from being removed by `sweep`; on a file system without locks, nothing is
    removed either.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pass


def sweep(folder: Union[str, os.PathLike[str]]) -> None:
    """Remove this user's drafts in a folder that no process has locked."""
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
    status = os.lstat(draft)
    is_folder = stat.S_ISDIR(status.st_mode)
    if not (is_folder or stat.S_ISREG(status.st_mode)) or status.st_uid != os.geteuid():
        return
    if time.time() - status.st_mtime < AGE:
        return
    # A lock ends with its process, so a draft that can be locked is one whose process has
    # ended.
    handle = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_folder:
            rmtree(draft)
        else:
            os.unlink(draft)
    finally:
        os.close(handle)
