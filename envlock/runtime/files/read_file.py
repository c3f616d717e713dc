"""The state of files on the disk: sort, size, mode and hash, of many at once. The one adapter to their bytes.

Threads, not processes: hashlib lets go of the interpreter while it works, and a thread costs one buffer only. Each file
is read once, the large ones first.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

BUFFER = (
    1 << 20
)  # bytes a thread: with fewer at once, threads wait for each other where processors are busy
BATCH_BYTES, BATCH_FILES = 8 << 20, 128  # what a thread takes at once
NOT_FOR_SECURITY: dict[str, Any] = {"usedforsecurity": False} if sys.version_info >= (3, 9) else {}
ODD_SIZE_LIMIT = (
    1 << 32
)  # bytes; a file that is larger and not of the recorded size is not read (it may be sparse)


class Wanted(NamedTuple):
    """A file to look at: by which algorithms, and which sizes its RECORDs give."""

    path: str
    algorithms: tuple[str, ...]
    sizes: tuple[int, ...]


class State(NamedTuple):
    """What a file is: `hashes` by algorithm, in the alphabet of RECORD; `problem` where it has none."""

    path: str
    size: int
    mode: int
    head: bytes
    hashes: dict[str, str]
    problem: str | None


class _Own(threading.local):
    """One buffer a thread."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(BUFFER))


_own = _Own()


def known(algorithm: str) -> bool:
    """Return whether the hash can be computed here."""
    return algorithm in hashlib.algorithms_guaranteed and not algorithm.startswith("shake")


def workers() -> int:
    """Return how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def states(
    wanted: Iterable[Wanted], advance: Callable[[int], None] = lambda _: None
) -> Iterator[State]:
    """Yield the state of each file, large ones first, as each is done; `advance` gets the number of bytes read."""
    batches = list(_batches(sorted(wanted, key=expected_size, reverse=True)))
    pool = ThreadPoolExecutor(workers(), thread_name_prefix="envlock-hash")

    stopped = threading.Event()

    def work(batch: list[Wanted]) -> list[State]:
        if stopped.is_set():
            return []
        done = [look(each) for each in batch]
        advance(sum(map(expected_size, batch)))
        return done

    try:
        for done in pool.map(work, batches):
            yield from done
    finally:
        stopped.set()  # an interrupt waits for what each thread is at, no more
        pool.shutdown(wait=True)


def look(wanted: Wanted) -> State:
    """Return the state of one file; what is no regular file is never opened, and nothing waits."""
    path = wanted.path
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return _problem(path, f"is {_sort(status.st_mode)}, not a file", status)
        if not wanted.algorithms:  # bytecode, as a rule: that it is there is all there is to know
            return State(path, status.st_size, stat.S_IMODE(status.st_mode), b"", {}, None)
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        return _problem(path, "is a broken link" if os.path.islink(path) else "missing")
    except PermissionError:
        return _problem(path, "unreadable", _lstat(path))
    except (OSError, ValueError) as error:
        return _problem(path, f"cannot be opened: {getattr(error, 'strerror', None) or error}")
    try:
        return _read(fd, wanted)
    except OSError as error:
        return _problem(path, f"cannot be read: {error.strerror}")
    finally:
        os.close(fd)


def _read(fd: int, wanted: Wanted) -> State:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):  # it has changed its place since
        return _problem(wanted.path, f"is {_sort(status.st_mode)}, not a file", status)
    hashers: dict[str, Any] = {
        name: hashlib.new(name, **NOT_FOR_SECURITY) for name in wanted.algorithms
    }
    buffer, head, left = _own.buffer, b"", status.st_size
    if left > ODD_SIZE_LIMIT and left not in wanted.sizes:
        hashers, left = {}, 0
    while left > 0:  # no further than its size was: a file that grows has an end, too
        count = os.readv(fd, [buffer])
        if not count:
            return _problem(wanted.path, "changed during reading", status)
        piece = buffer[: min(count, left)]
        head = head or bytes(piece[:4])
        for hasher in hashers.values():
            hasher.update(piece)
        left -= count
    hashes = {
        name: urlsafe_b64encode(each.digest()).decode("ascii").rstrip("=")
        for name, each in hashers.items()
    }
    return State(wanted.path, status.st_size, stat.S_IMODE(status.st_mode), head, hashes, None)


def _problem(path: str, what: str, status: os.stat_result | None = None) -> State:
    size, mode = (0, 0) if status is None else (status.st_size, stat.S_IMODE(status.st_mode))
    return State(path, size, mode, b"", {}, what)


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _sort(mode: int) -> str:
    sorts = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return sorts.get(stat.S_IFMT(mode), "of unknown kind")


def expected_size(wanted: Wanted) -> int:
    """Return how many bytes there are to read, as far as RECORDs can be believed."""
    return max(0, min(max(wanted.sizes, default=0), ODD_SIZE_LIMIT))


def _batches(wanted: list[Wanted]) -> Iterator[list[Wanted]]:
    batch: list[Wanted] = []
    size = 0
    for each in wanted:
        batch.append(each)
        size += expected_size(each)
        if size >= BATCH_BYTES or len(batch) >= BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
