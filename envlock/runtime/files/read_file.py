"""The state of files on the disk: kind, size, mode and hash, for many files in parallel.

This is the only module that reads their bytes.

Threads, not processes: hashlib releases the GIL while it works, and a thread needs only one buffer.
Each file is read once, the large ones first.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from envlock.runtime.files.hashers import create_hasher

BUFFER = 1 << 20
"""Bytes for each thread: with a smaller buffer, threads wait for each other on busy processors."""
BATCH_BYTES, BATCH_FILES = 8 << 20, 128  # files that a thread takes at once
ODD_SIZE_LIMIT = 1 << 32
"""Bytes; a file that is larger and not of the recorded size is not read (it may be sparse)."""


class FileRequest(NamedTuple):
    """A file to read, the algorithms of its hashes, and the sizes that its RECORDs give."""

    path: str
    algorithms: tuple[str, ...]
    sizes: tuple[int, ...]


class State(NamedTuple):
    """The state of a file: `hashes` by algorithm, in the form of RECORD, or the `problem` with
    reading it.
    """

    path: str
    size: int
    mode: int
    head: bytes
    hashes: dict[str, str]
    problem: str | None


class _ThreadBuffer(threading.local):
    """One buffer for each thread."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(BUFFER))


_thread_buffer = _ThreadBuffer()


def can_compute(algorithm: str) -> bool:
    """Return whether the hash can be computed here."""
    return algorithm in hashlib.algorithms_guaranteed and not algorithm.startswith("shake")


def count_workers() -> int:
    """Return the number of processors that this process may use."""
    get_affinity = getattr(os, "sched_getaffinity", None)
    if get_affinity is not None:
        return len(get_affinity(0))
    return os.cpu_count() or 1


def read_states(
    requests: Iterable[FileRequest], advance: Callable[[int], None] = lambda _: None
) -> Iterator[State]:
    """Yield the state of each file as soon as it is known, large files first.

    `advance` gets the number of bytes read.
    """
    batches = list(_group_batches(sorted(requests, key=get_expected_size, reverse=True)))
    pool = ThreadPoolExecutor(count_workers(), thread_name_prefix="envlock-hash")
    stop = threading.Event()

    def read_batch(batch: list[FileRequest]) -> list[State]:
        if stop.is_set():
            return []
        states_of_batch = [look(file) for file in batch]
        advance(sum(map(get_expected_size, batch)))
        return states_of_batch

    try:
        for states_of_batch in pool.map(read_batch, batches):
            yield from states_of_batch
    finally:
        stop.set()  # after an interrupt each thread finishes its batch, and starts no other
        pool.shutdown(wait=True)


def look(request: FileRequest) -> State:
    """Return the state of one file; anything but a regular file is never opened, and nothing
    blocks.
    """
    path = request.path
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return _make_problem(path, f"is {_describe_kind(status.st_mode)}, not a file", status)
        if not request.algorithms:  # usually bytecode: only its existence is checked
            return State(path, status.st_size, stat.S_IMODE(status.st_mode), b"", {}, None)
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        return _make_problem(path, "is a broken link" if os.path.islink(path) else "missing")
    except PermissionError:
        return _make_problem(path, "unreadable", _get_link_status(path))
    except (OSError, ValueError) as error:
        return _make_problem(path, f"cannot be opened: {getattr(error, 'strerror', None) or error}")
    try:
        return _read(fd, request)
    except OSError as error:
        return _make_problem(path, f"cannot be read: {error.strerror}")
    finally:
        os.close(fd)


def _read(fd: int, request: FileRequest) -> State:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):  # another file has taken its name since `os.stat`
        return _make_problem(
            request.path, f"is {_describe_kind(status.st_mode)}, not a file", status
        )
    remaining = status.st_size
    hashers = {}
    if remaining > ODD_SIZE_LIMIT and remaining not in request.sizes:
        remaining = 0
    else:
        for name in request.algorithms:
            hashers[name] = create_hasher(name)
    buffer, head = _thread_buffer.buffer, b""
    # Not beyond the size that it had, so that reading a growing file ends, too.
    while remaining > 0:
        count = os.readv(fd, [buffer])
        if not count:
            return _make_problem(request.path, "changed during reading", status)
        chunk = buffer[: min(count, remaining)]
        if not head:
            head = bytes(chunk[:4])
        for hasher in hashers.values():
            hasher.update(chunk)
        remaining -= count
    hashes = {}
    for name, hasher in hashers.items():
        hashes[name] = urlsafe_b64encode(hasher.digest()).decode("ascii").rstrip("=")
    return State(request.path, status.st_size, stat.S_IMODE(status.st_mode), head, hashes, None)


def _make_problem(path: str, what: str, status: os.stat_result | None = None) -> State:
    if status is None:
        return State(path, 0, 0, b"", {}, what)
    return State(path, status.st_size, stat.S_IMODE(status.st_mode), b"", {}, what)


def _get_link_status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def _describe_kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "of unknown kind")


def get_expected_size(request: FileRequest) -> int:
    """Return how many bytes there are to read, according to the RECORDs."""
    return max(0, min(max(request.sizes, default=0), ODD_SIZE_LIMIT))


def _group_batches(files: list[FileRequest]) -> Iterator[list[FileRequest]]:
    batch: list[FileRequest] = []
    size = 0
    for file in files:
        batch.append(file)
        size += get_expected_size(file)
        if size >= BATCH_BYTES or len(batch) >= BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
