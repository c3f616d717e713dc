"""Download a file completely or not at all.

An interrupted download continues from `NAME.part`, which only one process uses at a time.
"""

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

from envlock.packages.indexes.page import get_local_path
from envlock.packages.indexes.ranges import RANGE
from envlock.runtime.errors import OutsideError, UsageError
from envlock.runtime.report import clean
from envlock.web.client import Client, Stream, make_refusal
from envlock.web.web_errors import WebError, show_url

FRUITLESS = 4
"""How often in a row a download may be interrupted before another `CHUNK` has arrived."""
CHUNK = 1024 * 1024
"""Bytes that are read or written at a time."""
OPEN_ATTEMPTS = 10
"""How often a part is opened again after another process has finished it in the meantime."""


class WrongFileError(OutsideError):
    """A file differs from the expected one."""


@dataclass(frozen=True)
class Downloaded:
    """Hash and size of a download, both computed from all of its bytes."""

    sha256: str
    size: int


@dataclass(frozen=True)
class _Request:
    """A file, its expected hash and size as far as they are known, and the function that is called
    with new bytes.
    """

    url: str
    sha256: str | None
    size: int | None
    on_bytes: Callable[[int], None]


def download(
    client: Client,
    url: str,
    target: Path,
    *,
    sha256: str | None,
    size: int | None,
    on_bytes: Callable[[int], None] | None = None,
) -> Downloaded:
    """Download a file to `target`, which appears only when the file is complete and the expected
    one.

    If the download is interrupted, its bytes stay in `target.part`, and the next call continues
    from there if the server still has the same file. A process that downloads the same file at the
    same time uses a file of its own.

    Args:
        client: the HTTP client.
        url: that of the file; a `file:` URL is copied.
        target: the path of the download; its folder exists.
        sha256, size: the expected values, as far as they are known.
        on_bytes: called with the number of new bytes; a negative number if the download starts
            again.

    Raises:
        WrongFileError: the file differs from the expected one; nothing is kept.
        WebError: the server cannot be reached, refuses, or interrupts the download repeatedly.
        UsageError: it cannot be written.
    """
    request = _Request(url, sha256, size, on_bytes or (lambda count: None))
    with open_part(target) as part:
        try:
            _get(client, request, part)
        except WrongFileError:
            part.forget()
            raise
        part.finish(target)
        return Downloaded(part.sha256, part.size)


def _get(client: Client, request: _Request, part: Part) -> None:
    if request.url.startswith("file:"):
        part.begin()
        _copy(request, part)
        _check(request, part)
        return
    part.resume(request.url, trusted=request.sha256 is not None)
    request.on_bytes(part.size)
    was_resumed = part.size > 0
    try:
        _persist(client, request, part)
        _check(request, part)
    except WrongFileError:
        if not was_resumed:
            raise
    else:
        return
    # The bytes of the earlier download may come from another file, so it starts again once.
    _begin(request, part)
    _persist(client, request, part)
    _check(request, part)


def _persist(client: Client, request: _Request, part: Part) -> None:
    """Fetch the missing bytes, and continue after an interruption."""
    fruitless = 0
    while True:
        before = part.size
        try:
            return _fetch(client, request, part)
        except WebError as error:
            fruitless += 1
            if part.size - before >= CHUNK:
                fruitless = 0
            if not error.passing or error.status is not None or fruitless == FRUITLESS:
                raise


def _fetch(client: Client, request: _Request, part: Part) -> None:
    if part.size and part.size == request.size:
        return
    headers = {}
    if part.size:
        headers["Range"] = f"bytes={part.size}-"
        if part.validator:
            headers["If-Range"] = part.validator
    with client.stream(request.url, headers=headers) as answer:
        if part.size and answer.status == HTTPStatus.PARTIAL_CONTENT:
            _check_place(answer, part)
        elif part.size and answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            _begin(request, part)
            raise WebError(
                f"{show_url(request.url)} became shorter", hint="try again", passing=True
            )
        elif answer.status == HTTPStatus.OK:
            _begin(request, part)
        else:
            raise make_refusal(answer)
        part.note(request.url, _get_validator(answer))
        _append(answer.chunks, request, part)


def _append(chunks: Iterator[bytes], request: _Request, part: Part) -> None:
    for chunk in chunks:
        part.append(chunk)
        request.on_bytes(len(chunk))
        if request.size is not None and part.size > request.size:
            raise _describe_wrong_file(request, f"it has more than {request.size} bytes")


def _copy(request: _Request, part: Part) -> None:
    path = get_local_path(request.url)
    try:
        stream = path.open("rb")
    except OSError as error:
        raise WebError(f"cannot read {path}: {error.strerror}", hint="check the index") from None
    with stream:
        _append(_read_chunks(stream), request, part)


def _read_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK):
        yield chunk


def _begin(request: _Request, part: Part) -> None:
    request.on_bytes(-part.size)
    part.begin()


def _check_place(answer: Stream, part: Part) -> None:
    match = RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
    if match is None or int(match[1]) != part.size:
        raise WebError(
            f"{show_url(answer.url)} sent the wrong part of the file",
            hint="use another index: this server is faulty",
        )


def _get_validator(answer: Stream) -> str | None:
    """Return the value for If-Range: a strong tag, else a date."""
    tag = answer.headers.get("ETag")
    if tag and not tag.startswith("W/"):
        return tag
    return answer.headers.get("Last-Modified")


def _check(request: _Request, part: Part) -> None:
    if request.size is not None and part.size != request.size:
        raise _describe_wrong_file(request, f"it has {part.size} bytes, not {request.size}")
    if request.sha256 is not None and part.sha256 != request.sha256:
        raise _describe_wrong_file(request, f"its sha256 is {part.sha256}, not {request.sha256}")


def _describe_wrong_file(request: _Request, why: str) -> WrongFileError:
    place = show_url(request.url)
    if request.url.startswith("file:"):
        place = clean(str(get_local_path(request.url)))
    return WrongFileError(
        f"{place} is not the expected file: {why}",
        hint="use another index; the download was discarded",
    )


class Part:
    """The bytes so far, and their hash.

    Args:
        file: open for reading and writing.
        path: of the file.
        notes: the path of a file that records the URL and version of the download; None if no later
            download continues it.
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
        """The hash of the bytes so far."""
        return self._digest.hexdigest()

    def resume(self, url: str, *, trusted: bool) -> None:
        """Continue from the bytes of an earlier download of the same URL.

        Args:
            url: that of the file.
            trusted: whether the hash of the whole file is known, which shows in the end whether the
                parts belong together; without it, the server must confirm that.
        """
        is_same, self.validator = self._read_notes(url)
        if not is_same or (self.validator is None and not trusted):
            self.begin()
            return
        self._file.seek(0)
        while chunk := self._file.read(CHUNK):
            self._digest.update(chunk)
            self.size += len(chunk)

    def _read_notes(self, url: str) -> tuple[bool, str | None]:
        """Return whether the bytes come from a URL, and their value for If-Range."""
        if self._notes is None:
            return False, None
        try:
            notes = json.loads(self._notes.read_bytes())
            is_same = notes["url"] == _hash_url(url)
            validator = notes["validator"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return False, None
        if not is_same or not isinstance(validator, str):
            validator = None
        return is_same, validator

    def begin(self) -> None:
        """Discard the bytes so far."""
        self._file.seek(0)
        self._file.truncate()
        self._digest = hashlib.sha256()
        self.size = 0
        self.validator = None

    def note(self, url: str, validator: str | None) -> None:
        """Record the URL and the version of the file."""
        self.validator = validator
        if self._notes is not None:
            # The hash of the URL, not the URL itself, which may contain a signature.
            notes = {"url": _hash_url(url), "validator": validator}
            self._notes.write_text(json.dumps(notes), encoding="utf-8")

    def append(self, chunk: bytes) -> None:
        """Write the next bytes."""
        self._file.write(chunk)
        self._digest.update(chunk)
        self.size += len(chunk)

    def finish(self, target: Path) -> None:
        """Rename the file to `target`."""
        # Synced before it is renamed, so that after a crash there is either a whole file or none.
        self._file.flush()
        os.fsync(self._file.fileno())
        self._path.replace(target)
        self._drop_notes()

    def forget(self) -> None:
        """Remove the bytes, which are not those of the expected file."""
        self._path.unlink(missing_ok=True)
        self._drop_notes()

    def _drop_notes(self) -> None:
        if self._notes is not None:
            self._notes.unlink(missing_ok=True)


def _hash_url(url: str) -> str:
    return hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()


@contextmanager
def open_part(target: Path) -> Iterator[Part]:
    """Yield `target.part` to one process at a time.

    A second process gets a file of its own, which is removed if the download fails.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        with _open_part(target) as part:
            yield part
    except OSError as error:
        hint = "name a writable folder"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            hint = "free disk space, and run it again; partial downloads are kept"
        raise UsageError(f"cannot write {target}: {error.strerror}", hint=hint) from None


@contextmanager
def _open_part(target: Path) -> Iterator[Part]:
    path = target.with_name(f"{target.name}.part")
    notes = target.with_name(f"{target.name}.part.json")
    for _ in range(OPEN_ATTEMPTS):
        # No link is followed: in a folder that others can write to, it could lead to a file of ours.
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        with os.fdopen(handle, "r+b") as file:
            if not _lock(handle):
                break
            if _is_at(path, handle):
                yield Part(file, path, notes)
                return
        # The process that had locked it has renamed it in the meantime: the opened file is its
        # finished one.
    own = target.with_name(f".envlock.{secrets.token_hex(8)}.part")
    handle = os.open(own, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    with os.fdopen(handle, "r+b") as file:
        try:
            yield Part(file, own, None)
        finally:
            own.unlink(missing_ok=True)


def _lock(handle: int) -> bool:
    """Lock a file for this process; return whether that succeeded."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process has locked it, or the file system has no locks
        return False
    return True


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False
