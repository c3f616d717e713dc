"""Write a file whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path

from envlock.runtime.errors import LockfileError


def write_atomically(path: Path, data: bytes, what: str = "lockfile") -> None:
    """Replace `path` by `data`: whoever reads it sees the old bytes or the new ones, also after a crash.

    A temporary file in the same folder is written, flushed to the disk and renamed. A symbolic link is followed, and
    the mode of an existing file is kept. `what` is what messages call it.

    Raises:
        LockfileError: it cannot be written; what was there is untouched.
    """
    try:
        mode = _mode(path, what)
        target = Path(os.path.realpath(path))
        # its name is short and not made from `path`: the longest name plus a suffix would be too long
        handle, name = tempfile.mkstemp(prefix=".envlock.", suffix=".tmp", dir=target.parent)
        temporary = Path(name)
    except OSError as error:
        raise _failure(path, what, error) from None
    except ValueError:  # a NUL byte in the name
        raise LockfileError(f"cannot write {what} {str(path)!r}: not a path", hint="check the path") from None
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        temporary.replace(target)
    except OSError as error:
        raise _failure(path, what, error) from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
    _sync_folder(target.parent)


def _mode(path: Path, what: str) -> int:
    """Return the mode the written file gets; links are followed here, since `realpath` stops in a circle of them."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return 0o666 & ~_umask()
    if not stat.S_ISREG(mode):
        raise LockfileError(f"cannot write {what} {path}: it is not a regular file", hint="name a file")
    return mode & 0o777


def _failure(path: Path, what: str, error: OSError) -> LockfileError:
    hint = "the old file, if there was one, is untouched"
    if error.errno == errno.ELOOP:
        hint = "remove one of the symbolic links: they form a loop"
    return LockfileError(f"cannot write {what} {path}: {error.strerror}", hint=hint)


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system syncs folders; the rename is done by now
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
