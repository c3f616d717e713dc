"""One writer at a time in a folder.

While one command reads a file, changes it and writes it back, no other command writes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

PATIENCE = 10.0
"""Seconds to wait for another command, which needs only milliseconds: a stopped one must not block
this one.
"""
PAUSE = 0.02
"""Seconds between two attempts."""


@contextlib.contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Lock a folder during a block.

    If the file system has no locks, or another process has locked the folder for longer than
    `PATIENCE`, the block runs without.
    """
    # A lock of the kernel, which ends with the process.
    handle = -1
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        _wait_for(handle)
    try:
        yield
    finally:
        if handle >= 0:
            os.close(handle)


def _wait_for(handle: int) -> None:
    until = time.monotonic() + PATIENCE
    while not _take(handle) and time.monotonic() < until:
        time.sleep(PAUSE)


def _take(handle: int) -> bool:
    """Return whether the folder is locked by us now."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
