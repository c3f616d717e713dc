"""Replace files atomically: drafts are written under another name and then renamed. Each writer
removes the drafts that a killed process has left.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from contextlib import contextmanager, suppress
from shutil import rmtree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Iterator, Optional, Tuple, Union

PREFIX, SUFFIX = ".envlock.", ".tmp"
AGE = 60
"""Seconds; the process that makes a younger draft may not have locked it yet."""


@contextmanager
def replace_atomically(
    path: Union[str, os.PathLike[str]], mode: Optional[int] = None, *, is_lasting: bool = True
) -> Iterator[BinaryIO]:
    """Yield a stream whose bytes replace the file at `path` at the end of the block.

    A reader sees either the old bytes or the new ones, also after a crash. A symbolic link is
    followed, and the mode of an existing file is kept unless another one is given. If the block
    raises, nothing is replaced.

    Args:
        path: the file.
        mode: of the new file.
        is_lasting: wait for the disk. Without that, a crash of the machine may leave half of the file,
            which is good enough for a note that can be made again.

    Raises:
        OSError: it cannot be written; the old file is unchanged.
    """
    target = os.path.realpath(path)
    if mode is None:
        try:
            mode = stat.S_IMODE(os.stat(target).st_mode)
        except FileNotFoundError:
            mode = 0o666 & ~_read_umask()
    with open_draft_file(os.path.dirname(target)) as (stream, draft):
        yield stream
        # Flushed to the disk before it is renamed, so that after a crash the name stands for a
        # complete file.
        stream.flush()
        # Before the name is given: a draft is its owner's alone, and readers may be others.
        os.fchmod(stream.fileno(), mode)
        if is_lasting:
            os.fsync(stream.fileno())
        os.replace(draft, target)
    if is_lasting:
        _sync_folder(os.path.dirname(target))


@contextmanager
def open_draft_file(folder: Union[str, os.PathLike[str]]) -> Iterator[Tuple[BinaryIO, str]]:
    """Yield a new file in a folder, and its path; it is removed at the end unless it was renamed.

    Raises:
        OSError: it cannot be created.
    """
    sweep(folder)
    handle, name = tempfile.mkstemp(prefix=PREFIX, suffix=SUFFIX, dir=os.fspath(folder))
    try:
        with os.fdopen(handle, "w+b") as stream:
            hold(handle)
            yield stream, name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def _read_umask() -> int:
    # The umask can only be read by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: str) -> None:
    # Not every file system can sync folders; the file is already renamed.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


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
