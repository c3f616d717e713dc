"""Attacks."""

from __future__ import annotations

import os


def extent(times: int) -> int:
    """Return how often an attack is made: the share ENVLOCK_CHAOS_SHARE of `times`, but 20 times at least."""
    return max(20, round(times * float(os.environ.get("ENVLOCK_CHAOS_SHARE", "1"))))
