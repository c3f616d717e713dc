"""The cache of wheels: each is stored under its SHA-256, so a name never stands for other bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from envlock.runtime.errors import UsageError


class CachedFile(NamedTuple):
    """A file of the cache: hash and size in bytes, both computed from its bytes."""

    sha256: str
    size: int


CHUNK = 1024 * 1024  # bytes


def get_cache_folder(environ: Mapping[str, str], home: Path) -> Path:
    """Return the folder of envlock's cache.

    Source: https://specifications.freedesktop.org/basedir-spec/latest/ (which says to ignore a
    relative XDG_CACHE_HOME)
    """
    named = environ.get("XDG_CACHE_HOME", "")
    if named.startswith("/"):
        return Path(named) / "envlock"
    return home / ".cache" / "envlock"


def get_wheel_path(cache: Path, sha256: str, name: str) -> Path:
    """Return the path of the wheel with this hash, whether or not it exists."""
    return cache / "wheels" / sha256 / name


def prepare(target: Path) -> None:
    """Create the folder of a file in the cache, for this user only.

    Raises:
        UsageError: it cannot be created.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        hint = "set XDG_CACHE_HOME to another folder"
        raise UsageError(f"cannot create {target.parent}: {error.strerror}", hint=hint) from None


def find_intact(target: Path, sha256: str | None, size: int | None) -> CachedFile | None:
    """Return the cached file if it has the expected hash, which is computed again; a file with
    another hash is removed.
    """
    if sha256 is None:
        return None
    try:
        found = hash_file(target)
    except OSError:
        return None
    if found.sha256 == sha256 and size in (None, found.size):
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
    place = get_wheel_path(cache, sha256, target.name)
    prepare(place)
    target.replace(place)
    return place
