"""Merge what two sides have changed in a lockfile."""

from __future__ import annotations

from envlock.lock import merging as models
from envlock.lock.merging import Merged
from envlock.workflows.locks import load_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source


def merge(base: Source, ours: Source, theirs: Source) -> Merged:
    """Return what both sides have changed since the base; where they disagree, ours stays and the path is named.

    Raises:
        LockfileError: one is missing, unreadable, invalid or newer than this envlock, or the facts
            do not fit together.
    """
    return models.merge(load_lock(base), load_lock(ours), load_lock(theirs))
