"""Write a file atomically."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from envlock.lock.temporary import open_draft_file
from envlock.runtime.errors import WriteError


def write_atomically(path: Path, data: bytes, what: str = "lockfile") -> None:
    """Replace the file at `path` as `replace_file` does; `what` is its name in messages.

    Raises:
        WriteError: it cannot be written; the old file is unchanged.
    """
    with replace_file(path, what) as stream:
        stream.write(data)


@contextlib.contextmanager
def replace_file(path: Path, what: str) -> Iterator[BinaryIO]:
    """Yield a stream whose bytes replace the file at `path` at the end of the block.

    A reader sees either the old bytes or the new ones, also after a crash. A symbolic link is
    followed, and the mode of an existing file is kept. `what` is the name of the file in messages.
    If the block raises, nothing is replaced.

    Raises:
        WriteError: it cannot be written; the old file is unchanged.
    """
    if "\0" in str(path):
        raise WriteError(f"cannot write {what} {str(path)!r}: not a path", hint="check the path")
    try:
        mode = _get_mode(path, what)
        target = Path(os.path.realpath(path))
        with open_draft_file(target.parent) as (stream, draft):
            yield stream
            # Flushed to the disk before it is renamed, so that after a crash the name stands for a
            # complete file.
            stream.flush()
            # Before the name is given: a draft is its owner's alone, and readers may be others.
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
            draft.replace(target)
    except OSError as error:
        raise _make_error(path, what, error) from None
    _sync_folder(target.parent)


def _get_mode(path: Path, what: str) -> int:
    """Return the mode of the file that is written."""
    try:
        # This follows links, and raises if they form a cycle, which `realpath` does not.
        mode = path.stat().st_mode
    except FileNotFoundError:
        return 0o666 & ~_read_umask()
    if not stat.S_ISREG(mode):
        raise WriteError(
            f"cannot write {what} {path}: it is not a regular file", hint="name a file"
        )
    return mode & 0o777


def _make_error(path: Path, what: str, error: OSError) -> WriteError:
    hint = "the old file, if there was one, is untouched"
    if error.errno == errno.ELOOP:
        hint = "remove one of the symbolic links: they form a loop"
    elif error.errno == errno.ENOENT and not path.absolute().parent.is_dir():
        hint = f"create the folder first: {path.parent}"
    return WriteError(f"cannot write {what} {path}: {error.strerror}", hint=hint)


def _read_umask() -> int:
    # The umask can only be read by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    # Not every file system can sync folders; the file is already renamed.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
