"""A file that is being downloaded: `NAME.part`, held by one process, and beside it what it is a part of."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean

CHUNK = 1024 * 1024


class Part:
    """The bytes so far. What is written is hashed too, so that the end is known at once.

    Args:
        file: open for reading and writing.
        path: where it is.
        notes: where to write what it is a part of; None when nobody is to go on with it.
    """

    def __init__(self, file: IO[bytes], path: Path, notes: Path | None) -> None:
        self._file = file
        self._path = path
        self._notes = notes
        self._digest = hashlib.sha256()
        self.size = 0
        self.validator: str | None = None

    @property
    def sha256(self) -> str:
        """The hash of what is there."""
        return self._digest.hexdigest()

    def resume(self, url: str, *, trusted: bool) -> None:
        """Take over what an earlier download of the same URL has left.

        Args:
            url: of the file.
            trusted: whether it can be told in the end that the parts belong together; if not, the server must be
                able to tell.
        """
        try:
            notes = json.loads(self._notes.read_bytes()) if self._notes is not None else {}
            same, validator = notes["url"] == _digest(url), notes["validator"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            same, validator = False, None
        self.validator = validator if isinstance(validator, str) and same else None
        if not same or (self.validator is None and not trusted):
            return self.begin()
        self._file.seek(0)
        while chunk := self._file.read(CHUNK):
            self._digest.update(chunk)
            self.size += len(chunk)
        return None

    def begin(self) -> None:
        """Throw away what is there."""
        self._file.seek(0)
        self._file.truncate()
        self._digest = hashlib.sha256()
        self.size = 0
        self.validator = None

    def note(self, url: str, validator: str | None) -> None:
        """Remember what this is a part of: not the URL itself, which may hold a signature."""
        self.validator = validator
        if self._notes is not None:
            self._notes.write_text(json.dumps({"url": _digest(url), "validator": validator}), encoding="utf-8")

    def append(self, chunk: bytes) -> None:
        """Write what came."""
        self._file.write(chunk)
        self._digest.update(chunk)
        self.size += len(chunk)

    def finish(self, target: Path) -> None:
        """Give it its name; from then on it is there after a crash too."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._path.replace(target)
        self._drop_notes()

    def forget(self) -> None:
        """Remove it: it is not what it should be."""
        self._path.unlink(missing_ok=True)
        self._drop_notes()

    def _drop_notes(self) -> None:
        if self._notes is not None:
            self._notes.unlink(missing_ok=True)


def _digest(url: str) -> str:
    return hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()


@contextmanager
def part_of(target: Path) -> Iterator[Part]:
    """Give `target.part` to this process alone; to the next one a file of its own, which does not outlive a failure.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        with _opened(target) as part:
            yield part
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = "make room; what has come is kept" if full else "name a folder that can be written"
        raise UsageError(f"cannot write {clean(str(target))}: {error.strerror}", hint=hint) from None


@contextmanager
def _opened(target: Path) -> Iterator[Part]:
    path, notes = target.with_name(f"{target.name}.part"), target.with_name(f"{target.name}.part.json")
    for _ in range(10):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        with os.fdopen(handle, "r+b") as file:
            if not _locked(handle):
                break
            if _is_at(path, handle):
                yield Part(file, path, notes)
                return
        # whoever had it has finished in between: what was opened is his file by now
    own = target.with_name(f".envlock.{secrets.token_hex(8)}.part")
    handle = os.open(own, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    with os.fdopen(handle, "r+b") as file:
        try:
            yield Part(file, own, None)
        finally:
            own.unlink(missing_ok=True)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody has it, or the file system has no locks
        return False
    return True


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False
