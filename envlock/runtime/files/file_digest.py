"""The SHA-256 of one file."""

from __future__ import annotations

import hashlib

BLOCK = 1 << 20
"""Bytes that are read at a time."""


def hash_file(path: str) -> str:
    """Return the SHA-256 of a file's bytes, as hexadecimal digits.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        block = stream.read(BLOCK)
        while block:
            digest.update(block)
            block = stream.read(BLOCK)
    return digest.hexdigest()
