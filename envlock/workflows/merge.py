"""Merge the changes of two sides in a lockfile."""

from __future__ import annotations

from envlock.lock import merging as models
from envlock.lock.merging import Merged
from envlock.workflows.locks import load_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source


def merge(base: Source, ours: Source, theirs: Source) -> Merged:
    """Return a lockfile with the changes of both sides since the base; where they disagree, ours is
    kept and the path is listed.

    Raises:
        LockfileError: one is missing, unreadable, invalid or newer than this envlock, or the facts
            do not fit together.
    """
    return models.merge(load_lock(base), load_lock(ours), load_lock(theirs))
