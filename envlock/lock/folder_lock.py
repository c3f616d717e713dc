"""One writer at a time in a folder.

While one command reads a file, changes it and writes it back, no other command writes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PATIENCE = 10.0
"""Seconds to wait for another command, which needs only milliseconds: a stopped one must not block
this one.
"""
PAUSE = 0.02
"""Seconds between two attempts."""


@contextlib.contextmanager
def hold_folder(
    folder: Path, patience: float = PATIENCE, on_wait: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Lock a folder during a block, against other threads and processes.

    If the file system has no locks, or another process has locked the folder for longer than
    `patience` in seconds, the block runs without. `on_wait` is called repeatedly meanwhile.
    """
    # A lock of the kernel, which ends with the process.
    handle = -1
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        _wait_for(handle, patience, on_wait)
    try:
        yield
    finally:
        if handle >= 0:
            os.close(handle)


def _wait_for(handle: int, patience: float, on_wait: Callable[[], None]) -> None:
    until = time.monotonic() + patience
    while not _take(handle) and time.monotonic() < until:
        on_wait()
        time.sleep(PAUSE)


def _take(handle: int) -> bool:
    """Return whether the folder is locked by us now."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        # On NFS an fcntl lock stands for it, which can be refused with EACCES, too:
        # https://man7.org/linux/man-pages/man2/flock.2.html
        return False
    return True
