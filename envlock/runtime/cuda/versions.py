"""The version of a CUDA library, told from files: its own name, or the header that was installed with it."""

from __future__ import annotations

import os

from envlock.runtime.host import read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Tuple

HEADER_LIMIT = 1 << 14  # bytes: the version macros of every CUDA header met are in the first 7 KiB


def version_in_name(path: str) -> List[str]:
    """Return the numbers after `.so.` of a file name: ['9', '3', '0'] of `libcudnn.so.9.3.0`."""
    numbers = os.path.basename(path).partition(".so.")[2].split(".")
    return numbers if all(number.isdigit() for number in numbers) else []


class Headers:
    """Version macros of headers, each header read once."""

    def __init__(self) -> None:
        self._read: Dict[str, Optional[bytes]] = {}

    def version(self, folders: List[str], header: Tuple[str, Tuple[str, ...]]) -> Optional[str]:
        """Return the version that a header in the first folder that has it defines, or None.

        A single macro holds 1000 x major + 10 x minor (`CUDART_VERSION 12050`) or a plain number
        (`CUPTI_API_VERSION 28`); several hold one part each.
        """
        name, macros = header
        for folder in folders:
            text = self._text(f"{folder}/{name}")
            if text is not None:
                values = [_macro(text, macro) for macro in macros]
                if None in values:
                    return None
                if macros == ("CUDART_VERSION",):
                    number = int(values[0] or 0)
                    return f"{number // 1000}.{number % 1000 // 10}"
                return ".".join(value for value in values if value is not None)
        return None

    def _text(self, path: str) -> Optional[bytes]:
        if path not in self._read:
            try:
                self._read[path] = read_bytes(path, HEADER_LIMIT)
            except OSError:
                self._read[path] = None
        return self._read[path]


def _macro(text: bytes, name: str) -> Optional[str]:
    """Return the number that `#define name` gives, or None."""
    wanted = b"define " + name.encode()
    at = text.find(wanted)
    while at >= 0:
        rest = text[at + len(wanted) : at + len(wanted) + 40]
        if rest[:1] in (b" ", b"\t"):
            words = rest.partition(b"\n")[0].split()
            return words[0].decode() if words and words[0].isdigit() else None
        at = text.find(wanted, at + 1)
    return None
