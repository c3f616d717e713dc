"""The package indexes over HTTP: pages, RECORDs read with range requests, and whole wheels through
the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from envlock.lock.models import WheelFile
from envlock.lock.temporary import open_draft_folder
from envlock.packages import wheel_cache
from envlock.packages.identity import Proven
from envlock.packages.indexes import credentials, index_settings, page
from envlock.packages.indexes.download import Downloaded, download
from envlock.packages.indexes.index_settings import Index
from envlock.packages.indexes.page import IndexFile
from envlock.packages.indexes.ranges import read_remote_record, read_wheel_record
from envlock.packages.parallel import Advance
from envlock.packages.wheel_cache import CachedFile
from envlock.packages.wheelhouse import Fetch
from envlock.runtime.errors import OutsideError
from envlock.web.client import Client

NO_INDEX = "no index has a file of its name and hash"
NOWHERE = (
    f"{NO_INDEX}; `envlock capture --hashes --build` builds it, "
    "or copy it into the folder from the machine that locked it"
)


class Whole(NamedTuple):
    """A wheel that was read completely: hash, size in bytes, the RECORD in these bytes, and the file
    that has them.
    """

    sha256: str
    size: int
    record: str
    path: Path | None = None


class Glance(NamedTuple):
    """A wheel that was read in part: its RECORD, its size in bytes, and the names of its files."""

    record: str
    size: int
    names: frozenset[str] | None = None


@dataclass(frozen=True)
class Online:
    """All indexes that are asked, and the folder of the cache for whole wheels."""

    client: Client
    indexes: tuple[Index, ...]
    cache: Path

    def files(self, name: str) -> list[IndexFile]:
        """Return the files of all indexes under a normalised name, each file once."""
        found: dict[tuple[str, str | None], IndexFile] = {}
        # Those on the web come first: a lockfile that names a folder of this machine does not help
        # on another one.
        for index in sorted(self.indexes, key=lambda index: index.url.startswith("file:")):
            for file in page.list_index_files(self.client, index, name):
                found.setdefault((file.name, file.sha256), file)
        return list(found.values())

    def glance(self, file: IndexFile) -> Glance | None:
        """Return the RECORD of a wheel and its size; None if the server sends only whole files."""
        wheel = read_remote_record(self.client, file)
        if wheel is None:
            return None
        return Glance(_decode(wheel.record, file), wheel.size, wheel.names)

    def fetch(self, file: IndexFile) -> Whole:
        """Read a whole wheel into the cache, unless it is there already, and hash it."""
        path, cached = self._fetch_into_cache(file)
        return Whole(cached.sha256, cached.size, _decode(read_wheel_record(path), file), path)

    def archive(self, file: IndexFile) -> Path:
        """Read a source archive into the cache, unless it is there already, and return its path."""
        return self._fetch_into_cache(file)[0]

    def _fetch_into_cache(self, file: IndexFile) -> tuple[Path, CachedFile | Downloaded]:
        if file.sha256 is None:
            return self._fetch_unhashed(file)
        target = wheel_cache.prepare(self.cache, file.sha256) / file.name
        cached = wheel_cache.find_intact(target, file.sha256, file.size)
        if cached is not None:
            return target, cached
        return target, download(self.client, file.url, target, sha256=file.sha256, size=file.size)

    def _fetch_unhashed(self, file: IndexFile) -> tuple[Path, Downloaded]:
        """Download a file whose hash the index does not give, and move it to its place by hash."""
        wheels = wheel_cache.prepare(self.cache)
        with open_draft_folder(wheels) as folder:
            draft = folder / file.name
            downloaded = download(self.client, file.url, draft, sha256=None, size=file.size)
            return wheel_cache.rename(self.cache, draft, downloaded.sha256), downloaded


def configure_indexes(urls: Sequence[str], prefix: Path, folder: Path) -> Online:
    """Return the given indexes, else those of pip's and uv's settings.

    Args:
        urls: those of indexes; then no other index is asked.
        prefix: the environment's `sys.prefix`, which may hold a `pip.conf`.
        folder: that of the cache.

    Raises:
        UsageError: a setting names something that is not an index.
    """
    found = index_settings.load(urls, prefix=prefix)
    client = Client(
        ca=found.ca,
        credentials=credentials.find_credentials(found.indexes),
        last_resort=credentials.use_keyring(found.indexes),
    )
    return Online(client, found.indexes, folder)


def _decode(record: bytes, file: IndexFile) -> str:
    try:
        return record.decode("utf-8")
    except UnicodeDecodeError:
        raise OutsideError(
            f"{file.name}: its RECORD is not UTF-8", hint="use another index: this one is damaged"
        ) from None


def make_fetch(online: Online, *, by_address: bool) -> Fetch:
    """Return a function that fetches a wheel from the indexes, by its name and hash.

    With `by_address`, the address in the lockfile is tried first. It is not used if the user has
    named an index, because it may be unreachable.
    """

    def fetch(package: Proven, target: Path, advance: Advance) -> None:
        wheel = package.wheel
        first_error: OutsideError | None = None
        for url in _find_urls(online, package, by_address):
            error = _try_download(online, url, wheel, target, advance)
            if error is None:
                return
            first_error = first_error or error
        if first_error is not None:
            raise first_error
        if wheel.url is None:
            raise OutsideError(NOWHERE)
        raise OutsideError(NO_INDEX)

    return fetch


def _try_download(
    online: Online, url: str, wheel: WheelFile, target: Path, advance: Advance
) -> OutsideError | None:
    """Return the error, or None if the wheel was downloaded."""
    try:
        download(online.client, url, target, sha256=wheel.sha256, size=wheel.size, on_bytes=advance)
    except OutsideError as error:
        return error
    return None


def _find_urls(online: Online, package: Proven, by_address: bool) -> Iterator[str]:
    wheel = package.wheel
    first = wheel.url if by_address else None
    if first is not None:
        yield first
    for file in online.files(package.name):
        is_same = file.name == wheel.name and file.sha256 in (None, wheel.sha256)
        if is_same and file.url != first:
            yield file.url
