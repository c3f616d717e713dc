"""Download a file whole or not at all: `NAME.part` goes on where it broke off, held by one process at a time."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO

from envlock.packages.indexes.page import local_path
from envlock.packages.indexes.ranges import RANGE
from envlock.runtime.errors import OutsideError, UsageError
from envlock.runtime.report import clean
from envlock.web.client import Client, Stream, refusal
from envlock.web.errors import WebError, shown

FRUITLESS = 4
"""How often in a row it may break off before another `CHUNK` has come."""


class WrongFileError(OutsideError):
    """A file is not the one that it was said to be."""


@dataclass(frozen=True)
class Downloaded:
    """What was downloaded: both computed from all of its bytes."""

    sha256: str
    size: int


@dataclass(frozen=True)
class _Wanted:
    url: str
    sha256: str | None
    size: int | None
    tell: Callable[[int], None]


def download(
    client: Client,
    url: str,
    target: Path,
    *,
    sha256: str | None,
    size: int | None,
    on_bytes: Callable[[int], None] | None = None,
) -> Downloaded:
    """Download a file to `target`, which appears when all of it is there and is right.

    What has come stays in `target.part` when it breaks off, and the next call goes on from there, if the server
    still has the same file. Who downloads the same file at the same time does it on his own.

    Args:
        client: asks.
        url: of the file; a `file:` URL is copied.
        target: where it is to be; its folder exists.
        sha256, size: what it must be, as far as that is known.
        on_bytes: gets the number of new bytes; a negative number where the download begins anew.

    Raises:
        WrongFileError: it is another file than it was said to be; nothing is kept.
        WebError: the server cannot be reached, refuses, or breaks off again and again.
        UsageError: it cannot be written.
    """
    wanted = _Wanted(url, sha256, size, on_bytes or (lambda count: None))
    with part_of(target) as part:
        try:
            _get(client, wanted, part)
        except WrongFileError:
            part.forget()
            raise
        part.finish(target)
        return Downloaded(part.sha256, part.size)


def _get(client: Client, wanted: _Wanted, part: Part) -> None:
    if wanted.url.startswith("file:"):
        part.begin()
        _copy(wanted, part)
        return _check(wanted, part)
    part.resume(wanted.url, trusted=wanted.sha256 is not None)
    wanted.tell(part.size)
    resumed = part.size > 0
    try:
        _persist(client, wanted, part)
        return _check(wanted, part)
    except WrongFileError:
        if not resumed:
            raise
    _anew(wanted, part)  # what was there before may have been of another file
    _persist(client, wanted, part)
    return _check(wanted, part)


def _persist(client: Client, wanted: _Wanted, part: Part) -> None:
    """Fetch what is missing, and go on where it breaks off."""
    fruitless = 0
    while True:
        before = part.size
        try:
            return _fetch(client, wanted, part)
        except WebError as error:
            fruitless = 0 if part.size - before >= CHUNK else fruitless + 1
            if not error.passing or error.status is not None or fruitless == FRUITLESS:
                raise


def _fetch(client: Client, wanted: _Wanted, part: Part) -> None:
    headers = {}
    if part.size and part.size == wanted.size:
        return
    if part.size:
        headers = {"Range": f"bytes={part.size}-"} | (
            {"If-Range": part.validator} if part.validator else {}
        )
    with client.stream(wanted.url, headers=headers) as answer:
        if part.size and answer.status == HTTPStatus.PARTIAL_CONTENT:
            _same_place(answer, part)
        elif answer.status == HTTPStatus.OK or (
            part.size and answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
        ):
            _anew(wanted, part)
        else:
            raise refusal(answer)
        if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise WebError(f"{shown(wanted.url)} became shorter", hint="try again", passing=True)
        part.note(wanted.url, _validator(answer))
        _append(answer.chunks, wanted, part)


def _append(chunks: Iterator[bytes], wanted: _Wanted, part: Part) -> None:
    for chunk in chunks:
        part.append(chunk)
        wanted.tell(len(chunk))
        if wanted.size is not None and part.size > wanted.size:
            raise _wrong(wanted, f"it has more than {wanted.size} bytes")


def _copy(wanted: _Wanted, part: Part) -> None:
    path = local_path(wanted.url)
    try:
        stream = path.open("rb")
    except OSError as error:
        raise WebError(f"cannot read {path}: {error.strerror}", hint="check the index") from None
    with stream:
        _append(iter(lambda: stream.read(CHUNK), b""), wanted, part)


def _anew(wanted: _Wanted, part: Part) -> None:
    wanted.tell(-part.size)
    part.begin()


def _same_place(answer: Stream, part: Part) -> None:
    match = RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
    if match is None or int(match[1]) != part.size:
        raise WebError(
            f"{shown(answer.url)} sent the wrong part of the file",
            hint="use another index: this server is faulty",
        )


def _validator(answer: Stream) -> str | None:
    """Return what If-Range takes: a strong tag, else a date."""
    tag = answer.headers.get("ETag")
    return tag if tag and not tag.startswith("W/") else answer.headers.get("Last-Modified")


def _check(wanted: _Wanted, part: Part) -> None:
    if wanted.size is not None and part.size != wanted.size:
        raise _wrong(wanted, f"it has {part.size} bytes, not {wanted.size}")
    if wanted.sha256 is not None and part.sha256 != wanted.sha256:
        raise _wrong(wanted, f"its sha256 is {part.sha256}, not {wanted.sha256}")


def _wrong(wanted: _Wanted, why: str) -> WrongFileError:
    place = (
        clean(str(local_path(wanted.url))) if wanted.url.startswith("file:") else shown(wanted.url)
    )
    return WrongFileError(
        f"{place} is not the expected file: {why}",
        hint="use another index; the download was discarded",
    )


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
        """The hash of what was downloaded so far."""
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
        """Throw away what was downloaded so far."""
        self._file.seek(0)
        self._file.truncate()
        self._digest = hashlib.sha256()
        self.size = 0
        self.validator = None

    def note(self, url: str, validator: str | None) -> None:
        """Remember what this is a part of: not the URL itself, which may hold a signature."""
        self.validator = validator
        if self._notes is not None:
            self._notes.write_text(
                json.dumps({"url": _digest(url), "validator": validator}), encoding="utf-8"
            )

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
        hint = (
            "free disk space, and run it again; partial downloads are kept"
            if full
            else "name a writable folder"
        )
        raise UsageError(f"cannot write {target}: {error.strerror}", hint=hint) from None


@contextmanager
def _opened(target: Path) -> Iterator[Part]:
    path, notes = (
        target.with_name(f"{target.name}.part"),
        target.with_name(f"{target.name}.part.json"),
    )
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
