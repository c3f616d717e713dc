"""Names that are others in every run and decide nothing: of temporary files and folders, and ports
of this machine.

A text that holds one is fingerprinted with something steady in its place, so that runs can be
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
"""What follows the spec of such a text: it says less than its fingerprint, as the name itself can
decide something.
"""
MOST = 1_000
"""Names that are known at a time."""
_PORT = re.compile(rb"\b(localhost|127\.0\.0\.1):\d{4,5}\b")
_drawn: Dict[bytes, bytes] = {}


@contextmanager
def watch_names() -> Iterator[None]:
    """Learn the names that `tempfile` draws inside."""
    _drawn.clear()
    # A private class: where a Python has none, names are compared as they are.
    names = getattr(tempfile, "_RandomNameSequence", None)
    if names is None or not hasattr(names, "__next__"):
        yield
        return
    # It draws a name when it is called first, which is no name of the run.
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
    # The expression is slow for texts of megabytes that hold no address.
    if b"localhost:" in data or b"127.0.0.1:" in data:
        data = _PORT.sub(rb"\1:<port>", data)
    return data
