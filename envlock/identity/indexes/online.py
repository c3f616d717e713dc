"""The package indexes as `prove` sees them: pages, remote RECORDs, and whole wheels by way of the cache."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from envlock.identity import cache
from envlock.identity.indexes import credentials, page, settings
from envlock.identity.indexes.candidates import IndexFile
from envlock.identity.indexes.download import Downloaded, download
from envlock.identity.indexes.places import Index
from envlock.identity.indexes.remote import record_of, wheel_record
from envlock.runtime.errors import OutsideError
from envlock.web.client import Client


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
        """Return the RECORD of a wheel and its size; None where only the whole file is to be had."""
        seen = wheel_record(self.client, file)
        return None if seen is None else Glance(_text(seen.record, file), seen.size)

    def fetch(self, file: IndexFile) -> Whole:
        """Read a whole wheel into the cache, where it is looked for first, and hash what is there."""
        wanted = file.sha256 or f"unknown-{secrets.token_hex(8)}"
        target = cache.wheel(self.cache, wanted, file.name)
        known: cache.Kept | Downloaded | None = cache.sound(target, file.sha256, file.size)
        if known is None:
            cache.prepare(target)
            known = download(self.client, file.url, target, sha256=file.sha256, size=file.size)
        if file.sha256 is None:
            target = cache.rename(self.cache, target, known.sha256)
        return Whole(known.sha256, known.size, _text(record_of(target), file))


def online(urls: Sequence[str], prefix: Path, folder: Path) -> Online:
    """Return the indexes that are named, else those of pip's and uv's settings, with the cache in `folder`.

    Raises:
        UsageError: a setting names what is no index.
    """
    found = settings.load(urls, prefix=prefix)
    known, keyring = credentials.known(found.indexes), credentials.keyring(found.indexes)
    return Online(Client(ca=found.ca, credentials=known, last_resort=keyring), found.indexes, folder)


def _text(record: bytes, file: IndexFile) -> str:
    try:
        return record.decode("utf-8")
    except UnicodeDecodeError:
        raise OutsideError(f"{file.name}: its RECORD is not UTF-8", hint="the index is damaged: try another") from None
