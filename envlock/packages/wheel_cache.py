"""The cache of wheels: each is stored under its SHA-256, so a name never stands for other bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from envlock.runtime.user_cache import make_own_folder


class CachedFile(NamedTuple):
    """A file of the cache: hash and size in bytes, both computed from its bytes."""

    sha256: str
    size: int


WHEELS = "wheels"
CHUNK = 1024 * 1024  # bytes


def get_wheel_path(cache: Path, sha256: str, name: str) -> Path:
    """Return the path of the wheel with this hash, whether or not it exists."""
    return cache / WHEELS / sha256 / name


def prepare(cache: Path, sha256: str = "") -> Path:
    """Create the folder of the wheels with this hash, for this user only, and return it; that of all
    wheels without one.

    Raises:
        UsageError: it cannot be created, or belongs to another user, who could change a wheel after
            its hash was computed.
    """
    below = f"{WHEELS}/{sha256}" if sha256 else WHEELS
    make_own_folder(str(cache), below)
    return cache / below


def find_intact(target: Path, sha256: str | None) -> CachedFile | None:
    """Return the cached file if it has the expected hash, which is computed again; a file with
    another hash is removed.
    """
    if sha256 is None:
        return None
    try:
        found = hash_file(target)
    except OSError:
        return None
    if found.sha256 == sha256:
        return found
    target.unlink(missing_ok=True)
    return None


def hash_file(file: Path) -> CachedFile:
    """Return the hash and the size of a file.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    size = 0
    with file.open("rb") as stream:
        while block := stream.read(CHUNK):
            digest.update(block)
            size += len(block)
    return CachedFile(digest.hexdigest(), size)


def rename(cache: Path, target: Path, sha256: str) -> Path:
    """Move a file to the place of its hash in the cache, and return that path."""
    place = prepare(cache, sha256) / target.name
    target.replace(place)
    return place
