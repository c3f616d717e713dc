"""Draft folders, which are written under another name and then renamed."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from envlock.runtime.drafts import PREFIX, SUFFIX, hold, sweep
from envlock.runtime.errors import WriteError


@contextlib.contextmanager
def open_draft_folder(parent: Path | None, name: str = "") -> Iterator[Path]:
    """Yield a new folder in another one, or in the system's temporary folder; it is removed at the
    end unless it was renamed.

    Args:
        parent: the other folder; None for the temporary one.
        name: makes its path the same each time, unless another process has such a folder now.

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
        folder = _make_folder(parent, name)
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


def _make_folder(parent: Path, name: str) -> Path:
    if name:
        folder = parent / f"{PREFIX}{name}{SUFFIX}"
        # Whoever has it, it is not used: in the temporary folder, that can be another user.
        with contextlib.suppress(FileExistsError):
            folder.mkdir(0o700)
            return folder
    return Path(tempfile.mkdtemp(prefix=PREFIX, suffix=SUFFIX, dir=parent))
