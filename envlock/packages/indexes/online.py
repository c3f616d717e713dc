"""The package indexes over HTTP: pages, RECORDs read by ranges, whole wheels by way of the cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from envlock.lock.drafts import draft_folder
from envlock.lock.models import WheelFile
from envlock.packages import cache
from envlock.packages.cache import Kept
from envlock.packages.indexes import credentials, index_settings, page
from envlock.packages.indexes.download import Downloaded, download
from envlock.packages.indexes.index_settings import Index
from envlock.packages.indexes.page import IndexFile
from envlock.packages.indexes.ranges import record_of, wheel_record
from envlock.packages.parallel import Advance
from envlock.packages.proven import Proven
from envlock.packages.wheelhouse import Fetch
from envlock.runtime.errors import OutsideError
from envlock.web.client import Client

NO_INDEX = "no index has a file of its name and hash"
NOWHERE = f"{NO_INDEX}; `envlock hash --build` builds it, or copy it into the folder from where it was built"


class Whole(NamedTuple):
    """A file that was read to its end: hash, size in bytes, and the RECORD in these very bytes."""

    sha256: str
    size: int
    record: str


class Glance(NamedTuple):
    """What was seen of a file by reading parts of it: its RECORD, and its size in bytes."""

    record: str
    size: int


@dataclass(frozen=True)
class Online:
    """Every index that is asked, and the folder in which whole wheels are kept by their hash."""

    client: Client
    indexes: tuple[Index, ...]
    cache: Path

    def files(self, name: str) -> list[IndexFile]:
        """Return what all indexes offer under a normalised name; the same file is named once.

        The one on the web, where there is one: a lock that names a folder of this machine is of no use elsewhere.
        """
        found: dict[tuple[str, str | None], IndexFile] = {}
        for each in sorted(self.indexes, key=lambda index: index.url.startswith("file:")):
            for file in page.files(self.client, each, name):
                found.setdefault((file.name, file.sha256), file)
        return list(found.values())

    def glance(self, file: IndexFile) -> Glance | None:
        """Return the RECORD of a wheel and its size; None where the server gives only the whole file."""
        seen = wheel_record(self.client, file)
        return None if seen is None else Glance(_text(seen.record, file), seen.size)

    def fetch(self, file: IndexFile) -> Whole:
        """Read a whole wheel into the cache, where it is looked for first, and hash it."""
        target, known = self._kept(file)
        return Whole(known.sha256, known.size, _text(record_of(target), file))

    def archive(self, file: IndexFile) -> Path:
        """Read a source archive into the cache, where it is looked for first, and return where it is."""
        return self._kept(file)[0]

    def _kept(self, file: IndexFile) -> tuple[Path, Kept | Downloaded]:
        if file.sha256 is None:
            return self._unknown(file)
        target = cache.wheel(self.cache, file.sha256, file.name)
        known: Kept | Downloaded | None = cache.sound(target, file.sha256, file.size)
        if known is None:
            cache.prepare(target)
            known = download(self.client, file.url, target, sha256=file.sha256, size=file.size)
        return target, known

    def _unknown(self, file: IndexFile) -> tuple[Path, Downloaded]:
        """Download a file whose hash nobody told, and put it where that belongs."""
        place = self.cache / "wheels"
        cache.prepare(place / "any")
        with draft_folder(place) as folder:
            known = download(self.client, file.url, folder / file.name, sha256=None, size=file.size)
            return cache.rename(self.cache, folder / file.name, known.sha256), known


def online(urls: Sequence[str], prefix: Path, folder: Path) -> Online:
    """Return the indexes that are named, else those of pip's and uv's settings, with the cache in `folder`.

    Raises:
        UsageError: a setting names what is no index.
    """
    found = index_settings.load(urls, prefix=prefix)
    known, keyring = credentials.known(found.indexes), credentials.keyring(found.indexes)
    return Online(
        Client(ca=found.ca, credentials=known, last_resort=keyring), found.indexes, folder
    )


def _text(record: bytes, file: IndexFile) -> str:
    try:
        return record.decode("utf-8")
    except UnicodeDecodeError:
        raise OutsideError(
            f"{file.name}: its RECORD is not UTF-8", hint="use another index: this one is damaged"
        ) from None


def fetcher(online: Online, *, by_address: bool) -> Fetch:
    """Return what fetches a wheel: `by_address` from where the lock says, and else from the indexes by name and hash.

    An index that was asked for is asked in place of the lock's address, which may be out of reach.
    """

    def fetch(package: Proven, target: Path, advance: Advance) -> None:
        wheel = package.wheel
        first: OutsideError | None = None
        for url in _addresses(online, package, by_address):
            fault = _attempt(online, url, wheel, target, advance)
            if fault is None:
                return
            first = first or fault
        raise first or OutsideError(NOWHERE if wheel.url is None else NO_INDEX)

    return fetch


def _attempt(
    online: Online, url: str, wheel: WheelFile, target: Path, advance: Advance
) -> OutsideError | None:
    """Return what went wrong, if something did."""
    try:
        download(online.client, url, target, sha256=wheel.sha256, size=wheel.size, on_bytes=advance)
    except OutsideError as error:
        return error
    return None


def _addresses(online: Online, package: Proven, by_address: bool) -> Iterator[str]:
    wheel = package.wheel
    first = wheel.url if by_address else None
    if first is not None:
        yield first
    for file in online.files(package.name):
        if file.name == wheel.name and file.sha256 in (None, wheel.sha256) and file.url != first:
            yield file.url
