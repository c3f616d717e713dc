"""Merge what two sides have changed in a lockfile."""

from __future__ import annotations

from envlock.lock.merge import Merged
from envlock.lock.merge import merge as combine
from envlock.workflows.locks import lock_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source


def merge(base: Source, ours: Source, theirs: Source) -> Merged:
    """Return what both sides have changed since the base; where they disagree, ours stays and the path is named.

    Raises:
        LockfileError: one is missing, unreadable, invalid or newer than this envlock, or the facts do not fit together.
    """
    return combine(lock_of(base), lock_of(ours), lock_of(theirs))
