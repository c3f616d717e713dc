"""Write a file atomically."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from envlock.runtime.drafts import open_draft_file, replace_atomically
from envlock.runtime.errors import WriteError


def write_atomically(
    path: Path, data: bytes, what: str = "lockfile", *, mode: int | None = None
) -> None:
    """Replace the file at `path` as `replace_file` does; `what` is its name in messages.

    Raises:
        WriteError: it cannot be written; the old file is unchanged.
    """
    with replace_file(path, what, mode=mode) as stream:
        stream.write(data)


@contextlib.contextmanager
def replace_file(path: Path, what: str, *, mode: int | None = None) -> Iterator[BinaryIO]:
    """Yield a stream whose bytes replace the file at `path` as `replace_atomically` does; `what` is
    its name in messages.

    Raises:
        WriteError: it cannot be written; the old file is unchanged.
    """
    if "\0" in str(path):
        raise WriteError(f"cannot write {what} {str(path)!r}: not a path", hint="check the path")
    try:
        _check_regular(path, what)
        with replace_atomically(path, mode) as stream:
            yield stream
    except OSError as error:
        raise _make_error(path, what, error) from None


@contextlib.contextmanager
def restore_on_failure(path: Path) -> Iterator[None]:
    """Give a file its old content back if the block raises; a file that did not exist is removed.

    The old content is copied before the block, since a full disk has no room for it afterwards.

    Raises:
        WriteError: it cannot be copied.
    """
    target = Path(os.path.realpath(path))
    try:
        with open_draft_file(target.parent) as (_, draft):
            existed = target.is_file()
            if existed:
                shutil.copyfile(target, draft)
                shutil.copymode(target, draft)
            try:
                yield
            except BaseException:
                if existed:
                    Path(draft).replace(target)
                else:
                    target.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise _make_error(path, "settings", error) from None


def _check_regular(path: Path, what: str) -> None:
    # `stat` follows links, and raises if they form a cycle, which `realpath` does not.
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise WriteError(
                f"cannot write {what} {path}: it is not a regular file", hint="name a file"
            )


def _make_error(path: Path, what: str, error: OSError) -> WriteError:
    hint = "the old file, if there was one, is untouched"
    if error.errno == errno.ELOOP:
        hint = "remove one of the symbolic links: they form a loop"
    elif error.errno == errno.ENOENT and not path.absolute().parent.is_dir():
        hint = f"create the folder first: {path.parent}"
    return WriteError(f"cannot write {what} {path}: {error.strerror}", hint=hint)
