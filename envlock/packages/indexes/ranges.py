"""Read a wheel's RECORD without the wheel: a file of which only those blocks are fetched that are read."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO, NamedTuple

from envlock.packages.indexes.page import IndexFile, local_path
from envlock.runtime.errors import OutsideError
from envlock.runtime.report import clean
from envlock.web.client import Answer, Client, refusal
from envlock.web.errors import WebError, shown

BLOCK = 64 * 1024
BUDGET = 64 * 1024 * 1024
"""Bytes that reading one RECORD may fetch; TensorFlow's takes three million."""
RECORD_LIMIT = 64 * 1024 * 1024
CONTENTS = 8 * 1024 * 1024
"""Bytes of a table of contents, of which `zipfile` makes an object per entry; TensorFlow's has 1.8 MB."""
FAULTY = "use another index: this server is faulty"
RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")
Fetch = Callable[[int, int], bytes]
"""Takes the offsets of the first byte and of the one after the last, returns the bytes."""


class BadWheel(OutsideError):  # noqa: N818 (it says what it is)
    """A wheel is not what the specification of wheels says, so that what it installs cannot be told."""


class NoRanges(Exception):  # noqa: N818 (it is an answer: whoever gets it downloads the whole file)
    """The server sends a file whole or not at all."""


class BlockFile(io.RawIOBase):
    """A seekable file, read in blocks that are fetched once.

    Args:
        fetch: gives the bytes between two offsets.
        size: of the whole file.
        name: what it is called in messages.
    """

    def __init__(self, fetch: Fetch, size: int, name: str) -> None:
        self._fetch = fetch
        self.size = size
        self.name = name
        self.fetched = 0
        self._blocks: dict[int, bytes] = {}
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        if start + offset < 0:
            raise OSError("a position before the start")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._between(self._at, min(self._at + len(buffer), self.size))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _between(self, start: int, end: int) -> bytes:
        if start >= end:
            return b""
        wanted = range(start // BLOCK, (end - 1) // BLOCK + 1)
        missing = [number for number in wanted if number not in self._blocks]
        if missing:  # all that lies between the first and the last one, in one go
            self._keep(missing[0], (missing[-1] + 1) * BLOCK)
        joined = b"".join(self._blocks[number] for number in wanted)
        return joined[start - wanted[0] * BLOCK : end - wanted[0] * BLOCK]

    def _keep(self, first: int, end: int) -> None:
        start, end = first * BLOCK, min(end, self.size)
        self.fetched += end - start
        if self.fetched > BUDGET:
            raise BadWheel(
                f"{self.name} is not a valid wheel: its table of contents is larger than {BUDGET} bytes"
            )
        self.put(start, self._fetch(start, end))

    def put(self, start: int, data: bytes) -> None:
        """Keep bytes that are here already, as far as they fill blocks."""
        for at in range(-start % BLOCK, len(data), BLOCK):
            block = data[at : at + BLOCK]
            if len(block) == BLOCK or start + at + len(block) == self.size:
                self._blocks[(start + at) // BLOCK] = block


class Ranges:
    """Fetches parts of one file by HTTP, and holds every answer to what the first one said the file is.

    The first request takes the file's last bytes, where a zip file has its table of contents.

    Raises:
        NoRanges: the server sends only whole files.
        WebError: it cannot be reached, refuses, or sends something else than it was asked for.
    """

    def __init__(self, client: Client, url: str) -> None:
        self._client = client
        self._url = url
        self._headers: Mapping[str, str] = {}
        answer = self._ask(f"bytes=-{2 * BLOCK}")
        self.start, end, self.size = _range(answer)
        self.tail = answer.body
        if end != self.size:  # it knows ranges, but not those that count from the end
            raise NoRanges
        self._identity = _identity(answer)
        self._headers = _condition(answer)

    def __call__(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to, not with, `end`."""
        answer = self._ask(f"bytes={start}-{end - 1}")
        *part, size = _range(answer)
        if size != self.size or _identity(answer) != self._identity:
            raise self._swapped()
        if part != [start, end]:
            raise WebError(f"{shown(self._url)} sent the wrong part of the file", hint=FAULTY)
        return answer.body

    def _ask(self, wanted: str) -> Answer:
        headers = {"Range": wanted, "Accept-Encoding": "identity", **self._headers}
        answer = self._client.get(
            self._url, headers=headers, limit=BUDGET, only=(HTTPStatus.PARTIAL_CONTENT,)
        )
        if answer.status == HTTPStatus.PARTIAL_CONTENT:
            return answer
        if self._headers and answer.status in (HTTPStatus.OK, HTTPStatus.PRECONDITION_FAILED):
            raise self._swapped()
        if answer.status in (
            HTTPStatus.OK,
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
            HTTPStatus.NOT_IMPLEMENTED,
        ):
            raise NoRanges
        raise refusal(answer)

    def _swapped(self) -> WebError:
        return WebError(
            f"{shown(self._url)} changed during the download",
            hint="try again; the download was discarded",
            passing=True,
        )


def remote_file(client: Client, url: str) -> BlockFile:
    """Return a file on a server, to read here and there.

    Raises:
        NoRanges, WebError: as `Ranges`.
    """
    ranges = Ranges(client, url)
    file = BlockFile(ranges, ranges.size, shown(url))
    file.put(ranges.start, ranges.tail)
    file.fetched = len(ranges.tail)
    return file


class Glimpse(NamedTuple):
    """What was seen of a wheel without reading all of it: its RECORD, and its size in bytes."""

    record: bytes
    size: int


def wheel_record(client: Client, file: IndexFile) -> Glimpse | None:
    """Return the RECORD and the size of a wheel on an index; None where the server sends only whole files.

    Raises:
        BadWheel: what it sends is no sound wheel.
        WebError: it cannot be reached, refuses, or sends something else than it was asked for.
    """
    if file.url.startswith("file:"):
        path = local_path(file.url)
        return Glimpse(record_of(path), path.stat().st_size)
    try:
        remote = remote_file(client, file.url)
    except NoRanges:
        return None
    if file.size is not None and file.size != remote.size:
        raise BadWheel(
            f"{file.name} has {remote.size} bytes, but its index says {file.size}",
            hint="use another index",
        )
    return Glimpse(_record(remote), remote.size)


def record_of(wheel: Path | BinaryIO) -> bytes:
    """Return the RECORD of a wheel that is here.

    Raises:
        BadWheel: it is no sound wheel, or cannot be read.
    """
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(wheel.open("rb")) if isinstance(wheel, Path) else wheel
            size = stream.seek(0, io.SEEK_END)
        except OSError as error:
            raise BadWheel(f"cannot read the wheel {wheel}: {error.strerror}") from None

        def fetch(start: int, end: int) -> bytes:
            stream.seek(start)
            return stream.read(end - start)

        name = clean(
            Path(wheel if isinstance(wheel, Path) else str(getattr(wheel, "name", "the file"))).name
        )
        return _record(BlockFile(fetch, size, name))


def _record(file: BlockFile) -> bytes:
    try:
        with zipfile.ZipFile(_Bounded(file, BLOCK)) as archive:
            entry = _record_entry(file, archive.infolist())
            with archive.open(entry) as stream:
                data = stream.read(RECORD_LIMIT + 1)
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError) as error:
        raise _unsound(file, f"it is not a valid zip file ({str(error) or 'truncated'})") from None
    except (OSError, ValueError, RuntimeError, NotImplementedError, OverflowError, IndexError):
        raise _unsound(file, "it is not a valid zip file") from None
    if len(data) != entry.file_size:
        raise _unsound(file, "the length of its RECORD contradicts its table of contents")
    return data


class _Bounded(io.BufferedReader):
    """A file that gives out no table of contents larger than that of any wheel: `zipfile` reads it in one call."""

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > CONTENTS:
            raise zipfile.BadZipFile(f"its table of contents is larger than {CONTENTS} bytes")
        return super().read(size)


def _unsound(file: BlockFile, why: str) -> BadWheel:
    return BadWheel(f"{file.name} is not a valid wheel: {why}", hint="use another index")


def _record_entry(file: BlockFile, entries: list[zipfile.ZipInfo]) -> zipfile.ZipInfo:
    """Return the entry of the RECORD, if there is one and no doubt about it."""
    names: set[str] = set()
    for entry in entries:
        if entry.orig_filename != entry.filename:
            raise _unsound(file, f"the name {entry.filename} has a NUL byte")
        if entry.filename in names:
            raise _unsound(file, f"it has {entry.filename} twice")
        if entry.flag_bits & 0x1:
            raise _unsound(file, f"{entry.filename} is encrypted")
        names.add(entry.filename)
    folders = sorted(
        {top for name in names if (top := name.partition("/")[0]).endswith(".dist-info")}
    )
    if len(folders) != 1:
        raise _unsound(file, f"it has {len(folders)} folders named .dist-info, not one")
    found = [entry for entry in entries if entry.filename == f"{folders[0]}/RECORD"]
    if not found:
        raise _unsound(file, "it has no RECORD")
    if found[0].file_size > RECORD_LIMIT:
        raise _unsound(file, f"its RECORD is larger than {RECORD_LIMIT} bytes")
    if found[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _unsound(file, "its RECORD is compressed in a way that wheels do not use")
    return found[0]


def _range(answer: Answer) -> tuple[int, int, int]:
    """Return the offsets of the first byte and of the one after the last, and the size of the whole."""
    match = RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
    if match is None:
        raise WebError(
            f"{shown(answer.url)} does not name the part of the file that it sent", hint=FAULTY
        )
    start, last, size = map(int, match.groups())
    if last + 1 - start != len(answer.body) or last >= size:
        raise WebError(f"{shown(answer.url)} sent fewer bytes than announced", hint=FAULTY)
    return start, last + 1, size


def _identity(answer: Answer) -> tuple[str | None, str | None]:
    """Return what tells one version of a file from another."""
    tag = answer.headers.get("ETag")
    return tag, None if tag else answer.headers.get("Last-Modified")


def _condition(answer: Answer) -> dict[str, str]:
    """Return the header that asks for parts of this version of the file only; a weak tag cannot."""
    tag, date = _identity(answer)
    known = tag if tag and not tag.startswith("W/") else date
    return {"If-Range": known} if known else {}
