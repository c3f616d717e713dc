"""A folder with the wheels that a lockfile proves: all are checked."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple

from envlock.lock.folder_lock import hold_folder
from envlock.lock.models import WheelFile
from envlock.packages import wheel_cache as caching
from envlock.packages.identity import Proven
from envlock.packages.index import Offer, Wanted
from envlock.runtime.errors import OutsideError, UsageError

Fetch = Callable[[Sequence[Wanted]], Mapping[str, Offer | OutsideError]]
"""Puts wheels into the cache: the one of each package by name, or the reason for its absence."""

BLOCK = 1024 * 1024
TEMPORARY = ".envlock.{}.tmp"


class Had(NamedTuple):
    """A wheel that is in the folder now: it was `there`, or it was `fetched`, or came from the
    cache (`cached`).
    """

    package: Proven
    how: str


class Missing(NamedTuple):
    """A wheel that is not in the folder, and why."""

    package: Proven
    reason: str


def fetch_wheels(
    packages: Sequence[Proven],
    folder: Path,
    fetch: Fetch,
    *,
    cache: Path,
    on_wait: Callable[[], None] = lambda: None,
) -> Iterator[Had | Missing]:
    """Put the wheels of all packages into a folder, and yield the result of each.

    Args:
        packages: those whose wheels are wanted.
        folder: the folder for the wheels; it is created.
        fetch: gets wheels that are neither there nor in the cache.
        cache: the folder of envlock's cache.
        on_wait: called repeatedly while this process waits for another one that uses the same
            folder.

    Raises:
        OutsideError: it takes too long, or an index does not answer.
        UsageError: the folder or the cache cannot be created or read.
    """
    caching.prepare(cache)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with hold_folder(folder, inf, on_wait):
            # Only while the folder is locked: else, another process could be writing these files.
            for leftover in folder.glob(TEMPORARY.format("*")):
                leftover.unlink()
            yield from _obtain_all(packages, folder, fetch, cache)
    except TimeoutError:
        raise OutsideError(
            "the wheels were not downloaded in time",
            hint="run it again: finished files are kept",
        ) from None
    except OSError as error:
        raise UsageError(
            f"cannot fill folder {folder}: {error.strerror}", hint="name another one"
        ) from None


def _obtain_all(
    packages: Sequence[Proven], folder: Path, fetch: Fetch, cache: Path
) -> Iterator[Had | Missing]:
    absent = []
    for package in packages:
        how = _find_wheel(package, folder, cache)
        if how is None:
            absent.append(package)
        else:
            yield how
    wanted = [Wanted(each.name, each.version, each.wheel.url, each.wheel.sha256) for each in absent]
    fetched = fetch(wanted) if wanted else {}
    for package in absent:
        offer = fetched[package.name]
        if isinstance(offer, OutsideError):
            yield Missing(package, offer.message)
        else:
            yield _put(offer.path, folder, package, "fetched")


def _find_wheel(package: Proven, folder: Path, cache: Path) -> Had | Missing | None:
    """Put a wheel of the cache into the folder, unless it is there; None if it is in neither."""
    if is_wheel(folder / package.wheel.name, package.wheel):
        return Had(package, "there")
    cached = caching.get_wheel_path(cache, package.wheel.sha256, package.wheel.name)
    if is_wheel(cached, package.wheel):
        return _put(cached, folder, package, "cached")
    return None


def is_wheel(path: Path, wheel: WheelFile) -> bool:
    """Return whether the file at `path` has the size and sha256 of a locked wheel.

    Raises:
        OSError: it exists and cannot be read.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    if found.st_size != wheel.size or not stat.S_ISREG(found.st_mode):
        return False
    return caching.hash_file(path).sha256 == wheel.sha256


def _put(cached: Path, folder: Path, package: Proven, how: str) -> Had | Missing:
    """Put a file of the cache into the folder: as a link if possible, else as a copy."""
    wheel = package.wheel
    target = folder / wheel.name
    temporary = target.with_name(TEMPORARY.format(wheel.sha256[:16]))
    try:
        try:
            os.link(cached, temporary)
        except OSError:  # another file system, or one without links
            _copy(cached, temporary)
        if not is_wheel(temporary, wheel):
            return Missing(package, "the copy from the cache differs from the cache")
        temporary.replace(target)
    except OSError as error:
        return Missing(package, f"it cannot be written: {error.strerror or error}")
    finally:
        temporary.unlink(missing_ok=True)
    return Had(package, how)


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as old, target.open("wb") as new:
        shutil.copyfileobj(old, new, BLOCK)
        new.flush()
        os.fsync(new.fileno())


def measure_wheels(folder: Path) -> dict[str, int]:
    """Return the names of the wheels in a folder with their sizes."""
    return {file.name: file.stat().st_size for file in folder.glob("*.whl") if file.is_file()}


def find_unowned(folder: Path, packages: Sequence[Proven]) -> list[Path]:
    """Return the wheels in a folder that belong to none of the packages."""
    owned = {package.wheel.name for package in packages}
    return [folder / name for name in sorted(measure_wheels(folder)) if name not in owned]
