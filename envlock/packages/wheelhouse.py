"""A folder with the wheels that a lockfile proves: several are fetched in parallel, and all are
checked.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import NamedTuple

from envlock.lock.models import WheelFile
from envlock.packages import wheel_cache as caching
from envlock.packages.identity import Proven
from envlock.packages.parallel import Advance, Moved, run_all
from envlock.runtime.errors import EnvlockError, OutsideError, UsageError

Fetch = Callable[[Proven, Path, Advance], None]
"""Puts the checked wheel of a package at a path in an existing folder, or raises an EnvlockError or
OSError.
"""

BLOCK = 1024 * 1024
PAUSE = 0.1
"""Seconds between two attempts to lock a folder."""
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
    cache: Path | None,
    jobs: int,
    seconds: float = inf,
    on_wait: Callable[[], None] = lambda: None,
) -> Iterator[Moved[Proven] | Had | Missing]:
    """Put the wheels of all packages into a folder, and yield the progress and the result of each.

    Args:
        packages: those whose wheels are wanted.
        folder: the folder for the wheels; it is created.
        fetch: gets a wheel that is not there yet.
        cache: the folder of envlock's cache; None uses no cache.
        jobs: how many wheels are fetched in parallel.
        seconds: how long all of them together may take.
        on_wait: called repeatedly while this process waits for another one that uses the same
            folder.

    Raises:
        OutsideError: it takes too long.
        UsageError: the folder or the cache cannot be created or read.
    """
    if cache is not None:
        caching.prepare(cache)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with wait_for_folder(folder, on_wait):
            # Only while the folder is locked: else, another process could be writing these files.
            for leftover in folder.glob(TEMPORARY.format("*")):
                leftover.unlink()
            yield from _obtain_all(packages, folder, fetch, cache, jobs, seconds)
    except TimeoutError:
        raise OutsideError(
            f"the wheels were not downloaded within {seconds:g} s",
            hint="run it again: finished files are kept",
        ) from None
    except OSError as error:
        raise UsageError(
            f"cannot fill folder {folder}: {error.strerror}", hint="name another one"
        ) from None


def _obtain_all(
    packages: Sequence[Proven],
    folder: Path,
    fetch: Fetch,
    cache: Path | None,
    jobs: int,
    seconds: float,
) -> Iterator[Moved[Proven] | Had | Missing]:
    def work(package: Proven, advance: Advance) -> str:
        return _obtain(package, folder, fetch, cache, advance)

    for event in run_all(
        packages, work, jobs=jobs, seconds=seconds, expected=(EnvlockError, OSError)
    ):
        if isinstance(event, Moved):
            yield event
        elif event.error is None:
            yield Had(event.task, event.result or "")
        else:
            yield Missing(event.task, _explain(event.error))


def _explain(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"it cannot be written: {error.strerror or error}"
    if isinstance(error, EnvlockError):
        return error.message
    return str(error)


def _obtain(
    package: Proven, folder: Path, fetch: Fetch, cache: Path | None, advance: Advance
) -> str:
    """Put one wheel into the folder; return how it was obtained, in the words of `Had`."""
    target = folder / package.wheel.name
    if is_wheel(target, package.wheel, advance):
        return "there"
    if cache is None:
        fetch(package, target, advance)
        return "fetched"
    cached = caching.prepare(cache, package.wheel.sha256) / package.wheel.name
    # One process at a time, so that a large wheel is not downloaded twice.
    with wait_for_folder(cached.parent, partial(advance, 0)):
        how = "cached"
        if not is_wheel(cached, package.wheel, advance):
            how = "fetched"
            fetch(package, cached, advance)
        _put(cached, target, package.wheel, advance)
    return how


def is_wheel(path: Path, wheel: WheelFile, advance: Advance = lambda size: None) -> bool:
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
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
            advance(0)
    return digest.hexdigest() == wheel.sha256


def _put(cached: Path, target: Path, wheel: WheelFile, advance: Advance) -> None:
    """Put a file of the cache into the folder: as a link if possible, else as a copy.

    Raises:
        OutsideError: the copy differs from the cached file.
    """
    temporary = target.with_name(TEMPORARY.format(wheel.sha256[:16]))
    try:
        try:
            os.link(cached, temporary)
        except OSError:  # another file system, or one without links
            _copy(cached, temporary, advance)
            if not is_wheel(temporary, wheel, advance):
                raise OutsideError("the copy from the cache differs from the cache") from None
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _copy(source: Path, target: Path, advance: Advance) -> None:
    with source.open("rb") as old, target.open("wb") as new:
        while block := old.read(BLOCK):
            new.write(block)
            advance(0)
        new.flush()
        os.fsync(new.fileno())


@contextlib.contextmanager
def wait_for_folder(folder: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Lock a folder during a block, against other threads and processes.

    On a file system without locks, the block runs without one.
    """
    # The folder itself is locked, so that no lock file remains.
    handle = os.open(folder, os.O_RDONLY)
    try:
        while not _lock(handle):
            on_wait()
            time.sleep(PAUSE)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Return whether the folder is locked by us now, or the file system has no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # On NFS an fcntl lock stands for it, which can be refused with EACCES, too:
        # https://man7.org/linux/man-pages/man2/flock.2.html
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def measure_wheels(folder: Path) -> dict[str, int]:
    """Return the names of the wheels in a folder with their sizes."""
    return {file.name: file.stat().st_size for file in folder.glob("*.whl") if file.is_file()}


def find_unowned(folder: Path, packages: Sequence[Proven]) -> list[Path]:
    """Return the wheels in a folder that belong to none of the packages."""
    owned = {package.wheel.name for package in packages}
    return [folder / name for name in sorted(measure_wheels(folder)) if name not in owned]
