"""Hashers for the contents of files, apart from what reads many files: a script's start needs only one."""

from __future__ import annotations

import hashlib
import sys


def create_hasher(name: str) -> hashlib._Hash:
    """Return a hasher of this name, which is not used for security."""
    # A system in FIPS mode refuses MD5 and the like without this argument, which Python 3.9 added.
    if sys.version_info >= (3, 9):
        return hashlib.new(name, usedforsecurity=False)  # novm: guarded
    return hashlib.new(name)
