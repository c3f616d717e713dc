"""The version of a CUDA library, from its file name or from the header that was installed with it."""

from __future__ import annotations

import os

from envlock.runtime.host import read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Tuple

    from envlock.runtime.cuda.library_list import Header

HEADER_LIMIT = 1 << 14
"""Bytes: the version macros of every CUDA header seen are in the first 7 KiB."""


def parse_name_version(path: str) -> List[str]:
    """Return the numbers after `.so.` in a file name: ['9', '3', '0'] for `libcudnn.so.9.3.0`."""
    numbers = os.path.basename(path).partition(".so.")[2].split(".")
    if all(number.isdigit() for number in numbers):
        return numbers
    return []


class Headers:
    """Version macros of headers; each header is read once."""

    def __init__(self) -> None:
        self._texts: Dict[str, Optional[bytes]] = {}

    def read_version(self, folders: List[str], header: Header) -> Optional[str]:
        """Return the version that a header defines, in the first folder that contains it, or None.

        A single macro has 1000 x major + 10 x minor (`CUDART_VERSION 12050`) or a plain number
        (`CUPTI_API_VERSION 28`); several macros have one part each.
        """
        name, macros = header
        for folder in folders:
            text = self._read(f"{folder}/{name}")
            if text is not None:
                return _find_version(text, macros)
        return None

    def _read(self, path: str) -> Optional[bytes]:
        if path not in self._texts:
            try:
                self._texts[path] = read_bytes(path, HEADER_LIMIT)
            except OSError:
                self._texts[path] = None
        return self._texts[path]


def _find_version(text: bytes, macros: Tuple[str, ...]) -> Optional[str]:
    parts = []
    for macro in macros:
        part = _find_macro(text, macro)
        if part is None:
            return None
        parts.append(part)
    if macros == ("CUDART_VERSION",):
        number = int(parts[0])
        return f"{number // 1000}.{number % 1000 // 10}"
    return ".".join(parts)


def _find_macro(text: bytes, name: str) -> Optional[str]:
    """Return the number that `#define name` sets, or None."""
    define = b"define " + name.encode()
    start = text.find(define)
    while start >= 0:
        end = start + len(define)
        rest = text[end : end + 40]
        # Otherwise this is the beginning of a longer name.
        if rest[:1] in (b" ", b"\t"):
            words = rest.partition(b"\n")[0].split()
            if words and words[0].isdigit():
                return words[0].decode()
            return None
        start = text.find(define, start + 1)
    return None
