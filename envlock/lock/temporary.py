"""Drafts: files and folders that are written under another name and then renamed.

Each run removes the drafts that a killed process has left.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from envlock.runtime.drafts import PREFIX, SUFFIX, hold, sweep
from envlock.runtime.errors import WriteError


@contextlib.contextmanager
def open_draft_file(folder: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Yield a new file in a folder, and its path; it is removed at the end unless it was renamed.

    Raises:
        OSError: it cannot be created.
    """
    sweep(folder)
    handle, name = tempfile.mkstemp(prefix=PREFIX, suffix=SUFFIX, dir=folder)
    try:
        with os.fdopen(handle, "wb") as stream:
            hold(handle)
            yield stream, Path(name)
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()


@contextlib.contextmanager
def open_draft_folder(parent: Path | None) -> Iterator[Path]:
    """Yield a new folder in another one, or in the system's temporary folder; it is removed at the
    end unless it was renamed.

    Raises:
        WriteError: it cannot be created.
    """
    hint = "check its permissions"
    if parent is None:
        parent = Path(tempfile.gettempdir())
        hint = "set TMPDIR to another folder"
    # The leftovers of a killed process can be gigabytes if it was building an image.
    sweep(parent)
    try:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, suffix=SUFFIX, dir=parent))
    except OSError as error:
        raise WriteError(
            f"cannot create a folder in {parent}: {error.strerror}", hint=hint
        ) from None
    # Held until it is removed, so that the sweep of another process leaves it.
    handle = os.open(folder, os.O_RDONLY)
    try:
        hold(handle)
        yield folder
    finally:
        os.close(handle)
        shutil.rmtree(folder, ignore_errors=True)
