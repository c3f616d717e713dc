"""Folders of the user's cache whose contents decide something later."""

from __future__ import annotations

from pathlib import Path

from envlock.runtime import machine_proof
from envlock.runtime.errors import UsageError


def make_own_folder(folder: Path) -> None:
    """Create a folder of the cache, which must belong to this user alone: what other users write is
    not trusted.

    Raises:
        UsageError: it cannot be created, or belongs to another user.
    """
    hint = "set XDG_CACHE_HOME to a folder of your own"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        for path in (folder.parent, folder):
            path.mkdir(mode=0o700, exist_ok=True)
            if not machine_proof.is_own(str(path)):
                # The umask may let others write to it; the folder of another user is left alone.
                path.chmod(0o700)
    except OSError as error:
        raise UsageError(f"cannot use {folder} as a cache: {error.strerror}", hint=hint) from None
    if not (machine_proof.is_own(str(folder)) and machine_proof.is_own(str(folder.parent))):
        raise UsageError(f"cannot use {folder} as a cache: it is not this user's folder", hint=hint)
