"""The package indexes as `prove` sees them: pages, remote RECORDs, and whole wheels by way of the cache."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from envlock.identity import cache, index, remote
from envlock.identity.download import download
from envlock.identity.index import IndexFile
from envlock.identity.indexes import Index as Place
from envlock.runtime.errors import OutsideError
from envlock.web.client import Client


class Whole(NamedTuple):
    """A file that was read to its end: hash, size in bytes, and its RECORD."""

    sha256: str
    size: int
    record: str


@dataclass(frozen=True)
class Online:
    """Every index that is asked, and the folder where whole wheels are kept."""

    client: Client
    places: tuple[Place, ...]
    cache: Path

    def files(self, name: str) -> list[IndexFile]:
        """Return what all indexes offer under a normalised name; the same file is named once."""
        found: dict[tuple[str, str | None], IndexFile] = {}
        for place in self.places:
            for file in index.files(self.client, place, name):
                found.setdefault((file.name, file.sha256), file)
        return list(found.values())
