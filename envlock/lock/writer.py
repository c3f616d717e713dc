"""Write a file whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from envlock.lock.drafts import draft_file
from envlock.runtime.errors import WriteError


def write_atomically(path: Path, data: bytes, what: str = "lockfile") -> None:
    """Replace `path` by `data`, as `replacing` does.

    Raises:
        WriteError: it cannot be written; what was there is untouched.
    """
    with replacing(path, what) as stream:
        stream.write(data)


@contextlib.contextmanager
def replacing(path: Path, what: str) -> Iterator[BinaryIO]:
    """Yield a stream whose bytes replace `path` in the end: whoever reads it sees the old ones or the new ones.

    That holds after a crash too: a draft in the same folder is written, flushed to the disk and renamed. A symbolic
    link is followed, and the mode of an existing file is kept. `what` is what messages call it. Where the block raises,
    nothing is replaced.

    Raises:
        WriteError: it cannot be written; what was there is untouched.
    """
    if "\0" in str(path):
        raise WriteError(f"cannot write {what} {str(path)!r}: not a path", hint="check the path")
    try:
        mode = _mode(path, what)
        target = Path(os.path.realpath(path))
        with draft_file(target.parent) as (stream, draft):
            yield stream
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
            draft.replace(target)
    except OSError as error:
        raise _failure(path, what, error) from None
    _sync_folder(target.parent)


def _mode(path: Path, what: str) -> int:
    """Return the mode the written file gets; links are followed here, since `realpath` stops in a circle of them."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return 0o666 & ~_umask()
    if not stat.S_ISREG(mode):
        raise WriteError(
            f"cannot write {what} {path}: it is not a regular file", hint="name a file"
        )
    return mode & 0o777


def _failure(path: Path, what: str, error: OSError) -> WriteError:
    hint = "the old file, if there was one, is untouched"
    if error.errno == errno.ELOOP:
        hint = "remove one of the symbolic links: they form a loop"
    return WriteError(f"cannot write {what} {path}: {error.strerror}", hint=hint)


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(
        OSError
    ):  # not every file system syncs folders; the rename is done by now
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
