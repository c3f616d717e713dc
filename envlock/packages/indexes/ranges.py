"""Read the RECORD of a wheel on a server, fetching only the blocks of the file that are needed."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO, NamedTuple

from envlock.packages.indexes.page import IndexFile, get_local_path
from envlock.runtime.archives import DamagedArchiveError, open_zip
from envlock.runtime.errors import OutsideError
from envlock.runtime.report import clean
from envlock.web.client import Answer, Client, make_refusal
from envlock.web.web_errors import WebError, show_url

BLOCK = 64 * 1024
"""Bytes that are fetched at a time."""
BUDGET = 64 * 1024 * 1024
"""Bytes that reading one RECORD may fetch; that of TensorFlow takes three million."""
RECORD_LIMIT = 64 * 1024 * 1024
"""Bytes of an uncompressed RECORD."""
FAULTY = "use another index: this server is faulty"
RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")
Fetch = Callable[[int, int], bytes]
"""A function from the offsets of the first byte and of the one after the last to the bytes between."""


class BadWheel(OutsideError):  # noqa: N818 (it says what it is)
    """A wheel does not follow the specification, so it is unknown what it installs."""


class NoRanges(Exception):  # noqa: N818 (not an error: the caller then downloads the whole file)
    """The server sends a file only as a whole."""


class BlockFile(io.RawIOBase):
    """A seekable file, read in blocks that are fetched once.

    Args:
        fetch: returns the bytes between two offsets.
        size: that of the whole file.
        name: that of the file in messages.
    """

    def __init__(self, fetch: Fetch, size: int, name: str) -> None:
        self._fetch = fetch
        self.size = size
        self.name = name
        self.fetched = 0
        self._blocks: dict[int, bytes] = {}
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        if start + offset < 0:
            raise OSError("a position before the start")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._read_blocks(self._position, min(self._position + len(buffer), self.size))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _read_blocks(self, start: int, end: int) -> bytes:
        if start >= end:
            return b""
        wanted = range(start // BLOCK, (end - 1) // BLOCK + 1)
        missing = [number for number in wanted if number not in self._blocks]
        if missing:
            # One request from the first to the last: requests cost more than bytes.
            self._fetch_blocks(missing[0], (missing[-1] + 1) * BLOCK)
        joined = b"".join(self._blocks[number] for number in wanted)
        return joined[start - wanted[0] * BLOCK : end - wanted[0] * BLOCK]

    def _fetch_blocks(self, first: int, end: int) -> None:
        start = first * BLOCK
        end = min(end, self.size)
        self.fetched += end - start
        if self.fetched > BUDGET:
            raise BadWheel(
                f"{self.name} is not a valid wheel: "
                f"its table of contents is larger than {BUDGET} bytes"
            )
        self.put(start, self._fetch(start, end))

    def put(self, start: int, data: bytes) -> None:
        """Store bytes that were fetched, as far as they fill blocks; `start` is their offset."""
        for offset in range(-start % BLOCK, len(data), BLOCK):
            block = data[offset : offset + BLOCK]
            if len(block) == BLOCK or start + offset + len(block) == self.size:
                self._blocks[(start + offset) // BLOCK] = block


class Ranges:
    """Fetches parts of one file over HTTP, and refuses an answer from another version of the file.

    The first request is for the last bytes, where a zip file has its table of contents.

    Raises:
        NoRanges: the server sends only whole files.
        WebError: it cannot be reached, refuses, or sends a part that was not requested.
    """

    def __init__(self, client: Client, url: str) -> None:
        self._client = client
        self._url = url
        self._headers: Mapping[str, str] = {}
        answer = self._ask(f"bytes=-{2 * BLOCK}")
        self.start, end, self.size = _parse_range(answer)
        self.tail = answer.body
        if end != self.size:  # it supports ranges, but not those that count from the end
            raise NoRanges
        self._version = _get_version(answer)
        self._headers = _make_condition(answer)

    def __call__(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end`, without the one at `end`."""
        answer = self._ask(f"bytes={start}-{end - 1}")
        part_start, part_end, size = _parse_range(answer)
        if size != self.size or _get_version(answer) != self._version:
            raise self._changed_file()
        if (part_start, part_end) != (start, end):
            raise WebError(f"{show_url(self._url)} sent the wrong part of the file", hint=FAULTY)
        return answer.body

    def _ask(self, wanted: str) -> Answer:
        # The offsets are those of the file, not of a compressed form.
        headers = {"Range": wanted, "Accept-Encoding": "identity", **self._headers}
        answer = self._client.get(
            self._url, headers=headers, limit=BUDGET, only=(HTTPStatus.PARTIAL_CONTENT,)
        )
        if answer.status == HTTPStatus.PARTIAL_CONTENT:
            return answer
        if self._headers and answer.status in (HTTPStatus.OK, HTTPStatus.PRECONDITION_FAILED):
            raise self._changed_file()
        # What servers answer that cannot send parts, or do not understand a part from the end.
        if answer.status in (
            HTTPStatus.OK,
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
            HTTPStatus.NOT_IMPLEMENTED,
        ):
            raise NoRanges
        raise make_refusal(answer)

    def _changed_file(self) -> WebError:
        return WebError(
            f"{show_url(self._url)} changed during the download",
            hint="try again; the download was discarded",
            passing=True,
        )


def open_remote_file(client: Client, url: str) -> BlockFile:
    """Return a file on a server, whose parts can be read in any order.

    Raises:
        NoRanges, WebError: as `Ranges`.
    """
    ranges = Ranges(client, url)
    file = BlockFile(ranges, ranges.size, show_url(url))
    file.put(ranges.start, ranges.tail)
    file.fetched = len(ranges.tail)
    return file


class PartialWheel(NamedTuple):
    """A wheel that was read in part: its RECORD, its size in bytes, and the names of its files."""

    record: bytes
    size: int
    names: frozenset[str]


def read_remote_record(client: Client, file: IndexFile) -> PartialWheel | None:
    """Return the RECORD and the size of a wheel on an index.

    None if the server sends only whole files.

    Raises:
        BadWheel: the file is not a valid wheel.
        OutsideError: its size is not the one that the index says.
        WebError: the server cannot be reached, refuses, or sends a part that was not requested.
    """
    if file.url.startswith("file:"):
        path = get_local_path(file.url)
        record, names = _open_local(path)
        return PartialWheel(record, path.stat().st_size, names)
    try:
        remote = open_remote_file(client, file.url)
    except NoRanges:
        return None
    if file.size is not None and file.size != remote.size:
        # Not a damaged wheel: the answers of the index contradict each other.
        raise OutsideError(
            f"{file.name} has {remote.size} bytes, but its index says {file.size}",
            hint="use another index",
        )
    record, names = _read_record(remote)
    return PartialWheel(record, remote.size, names)


def read_wheel_record(wheel: Path | BinaryIO) -> bytes:
    """Return the RECORD of a wheel on this machine.

    Raises:
        BadWheel: it is not a valid wheel, or cannot be read.
    """
    return _open_local(wheel)[0]


def hash_files(wheel: Path) -> dict[str, str]:
    """Return the hash of every file in a wheel on this machine, in the form of a RECORD, by name.

    Raises:
        BadWheel: it is not a valid wheel, or cannot be read.
    """
    _open_local(wheel)  # refuses an archive that readers could read in different ways
    try:
        with open_zip(str(wheel)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            return {entry.filename: _hash_entry(archive, entry) for entry in entries}
    except (DamagedArchiveError, OSError) as error:
        raise BadWheel(f"cannot read the wheel {wheel}: {error}") from None


def _hash_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str:
    digest = hashlib.sha256()
    with archive.open(entry) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return f"sha256={urlsafe_b64encode(digest.digest()).decode().rstrip('=')}"


def _open_local(wheel: Path | BinaryIO) -> tuple[bytes, frozenset[str]]:
    try:
        if isinstance(wheel, Path):
            with wheel.open("rb") as stream:
                return _read_stream(stream, wheel.name)
        return _read_stream(wheel, Path(str(getattr(wheel, "name", "the file"))).name)
    except OSError as error:
        raise BadWheel(f"cannot read the wheel {wheel}: {error.strerror}") from None


def _read_stream(stream: BinaryIO, name: str) -> tuple[bytes, frozenset[str]]:
    size = stream.seek(0, io.SEEK_END)

    def fetch(start: int, end: int) -> bytes:
        stream.seek(start)
        return stream.read(end - start)

    return _read_record(BlockFile(fetch, size, clean(name)))


def _read_record(file: BlockFile) -> tuple[bytes, frozenset[str]]:
    """Return the RECORD of a wheel, and the names of its files."""
    try:
        with open_zip(file) as archive:
            entries = archive.infolist()
            entry = _find_record(file, entries)
            with archive.open(entry) as stream:
                data = stream.read(RECORD_LIMIT + 1)
    except DamagedArchiveError as error:
        raise _unsound(file, f"it is not a valid zip file ({error})") from None
    except OSError:
        raise _unsound(file, "it is not a valid zip file") from None
    if len(data) != entry.file_size:
        raise _unsound(file, "the length of its RECORD contradicts its table of contents")
    return data, frozenset(each.filename for each in entries if not each.is_dir())


def _unsound(file: BlockFile, why: str) -> BadWheel:
    return BadWheel(f"{file.name} is not a valid wheel: {why}", hint="use another index")


def _find_record(file: BlockFile, entries: list[zipfile.ZipInfo]) -> zipfile.ZipInfo:
    """Return the entry of the RECORD.

    Raises:
        BadWheel: there is not exactly one, or readers could disagree about its content.
    """
    names: set[str] = set()
    for entry in entries:
        if entry.orig_filename != entry.filename:
            raise _unsound(file, f"the name {entry.filename} has a NUL byte")
        if entry.filename in names:
            raise _unsound(file, f"it has {entry.filename} twice")
        if entry.flag_bits & 0x1:
            raise _unsound(file, f"{entry.filename} is encrypted")
        names.add(entry.filename)
    tops = {name.partition("/")[0] for name in names}
    folders = [top for top in tops if top.endswith(".dist-info")]
    if len(folders) != 1:
        raise _unsound(file, f"it has {len(folders)} folders named .dist-info, not one")
    for entry in entries:
        if entry.filename == f"{folders[0]}/RECORD":
            break
    else:
        raise _unsound(file, "it has no RECORD")
    if entry.file_size > RECORD_LIMIT:
        raise _unsound(file, f"its RECORD is larger than {RECORD_LIMIT} bytes")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _unsound(file, "its RECORD is compressed in a way that wheels do not use")
    return entry


def _parse_range(answer: Answer) -> tuple[int, int, int]:
    """Return where a part begins, the offset after its last byte, and the size of the whole file."""
    match = RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
    if match is None:
        raise WebError(
            f"{show_url(answer.url)} does not name the part of the file that it sent", hint=FAULTY
        )
    start, last, size = map(int, match.groups())
    if last + 1 - start != len(answer.body) or last >= size:
        raise WebError(f"{show_url(answer.url)} sent fewer bytes than announced", hint=FAULTY)
    return start, last + 1, size


def _get_version(answer: Answer) -> tuple[str | None, str | None]:
    """Return the tag of a version of the file, else its date."""
    tag = answer.headers.get("ETag")
    if tag:
        return tag, None
    return tag, answer.headers.get("Last-Modified")


def _make_condition(answer: Answer) -> dict[str, str]:
    """Return the header that requests parts only of this version of the file."""
    tag, date = _get_version(answer)
    if tag and not tag.startswith("W/"):  # a weak tag is not allowed in If-Range
        return {"If-Range": tag}
    if date:
        return {"If-Range": date}
    return {}
