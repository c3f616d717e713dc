"""Notes on contents that were read, so that a later look need not read them again."""

from __future__ import annotations

import os
from pathlib import Path

from envlock.lock.writer import write_atomically
from envlock.runtime.data_contents import NOTES, is_settled, name_note, render_note
from envlock.runtime.data_files import Survey
from envlock.runtime.errors import EnvlockError
from envlock.runtime.user_cache import make_cache


def write_note(full: str, found: Survey, content: str, began: int) -> None:
    """Note the digest in the user's cache; without a cache, the files are read again next time.

    Nothing is noted of a file that was written while it was read or just before `began`, in
    nanoseconds: it can be changed again and keep its time, as in Git's index
    (https://git-scm.com/docs/racy-git).
    """
    if not is_settled(found, began):
        return
    try:
        folder = make_cache(os.environ, NOTES)
        note = render_note(found.state, content)
        write_atomically(Path(folder, name_note(full)), note, mode=0o600)
    except EnvlockError:
        return
