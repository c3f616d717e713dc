"""Names that differ in every run and have no effect: those of temporary files and folders, and
ports of this machine.

A text that contains one is fingerprinted with a constant in its place, so that runs can be
compared.
"""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator

MARK = " (a name)"
"""Appended to the spec of such a text: its fingerprint is weaker, because the name itself can have
an effect.
"""
MOST = 1_000
"""The most names that are remembered."""
_PORT = re.compile(rb"\b(localhost|127\.0\.0\.1):\d{4,5}\b")
_drawn: Dict[bytes, bytes] = {}


@contextmanager
def watch_names() -> Iterator[None]:
    """Record the names that `tempfile` generates in the block."""
    _drawn.clear()
    # A private class: if a Python lacks it, names are compared unchanged.
    names = getattr(tempfile, "_RandomNameSequence", None)
    if names is None or not hasattr(names, "__next__"):
        yield
        return
    # The first call generates a name that does not belong to the run.
    tempfile.gettempdir()
    original = names.__next__

    def draw(self: Iterator[str]) -> str:
        name: str = original(self)
        if len(_drawn) < MOST:
            _drawn[name.encode()] = b"<%d>" % len(_drawn)
        return name

    names.__next__ = draw
    try:
        yield
    finally:
        names.__next__ = original


def replace_names(data: bytes) -> bytes:
    """Return a text with numbers in place of such names."""
    for name, number in _drawn.items():
        if name in data:
            data = data.replace(name, number)
    # The expression is slow for texts of megabytes without an address.
    if b"localhost:" in data or b"127.0.0.1:" in data:
        data = _PORT.sub(rb"\1:<port>", data)
    return data
