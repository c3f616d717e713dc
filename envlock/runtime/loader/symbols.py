"""Ask whether a shared library exports a symbol, without loading it: one walk through its GNU hash table.

The table's layout is that of binutils' `elf_gnu_hash` (DT_GNU_HASH): header, bloom filter, buckets, chains.
"""

from __future__ import annotations

import os
import struct

from envlock.runtime.loader.elf import GNU_HASH, STRTAB, SYMTAB, file_offset, pread, read_segments, read_tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Set, Tuple

_CHAIN_LIMIT = 4096  # symbols in one bucket; a sound table has a handful
_SYMBOL = 24  # bytes of Elf64_Sym


def exported(path: str, names: Iterable[str]) -> Set[str]:
    """Return which of the names the library defines for others.

    Raises:
        ValueError: not a library, or it has no GNU hash table.
        OSError: it cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _, loads, dynamic, _ = read_segments(fd, None)
        tags = read_tags(fd, dynamic)
        if GNU_HASH not in tags or SYMTAB not in tags or STRTAB not in tags:
            raise ValueError("the library has no GNU hash table")
        table, symbols, strings = (file_offset(tags[tag][0], loads) for tag in (GNU_HASH, SYMTAB, STRTAB))
        return {name for name in names if _defines(fd, name.encode(), table, symbols, strings)}
    finally:
        os.close(fd)


def _defines(fd: int, name: bytes, table: int, symbols: int, strings: int) -> bool:
    buckets, first, words, _ = _unpack(fd, "<IIII", table)
    if not buckets:
        return False
    wanted = 5381
    for byte in name:
        wanted = (wanted * 33 + byte) & 0xFFFFFFFF
    chains = table + 16 + 8 * words + 4 * buckets
    (index,) = _unpack(fd, "<I", chains - 4 * buckets + 4 * (wanted % buckets))
    if index < first:
        return False
    for place in range(index, index + _CHAIN_LIMIT):
        (value,) = _unpack(fd, "<I", chains + 4 * (place - first))
        if value | 1 == wanted | 1:
            text, _, _, section = _unpack(fd, "<IBBH", symbols + _SYMBOL * place)
            if section and pread(fd, len(name) + 1, strings + text) == name + b"\0":
                return True
        if value & 1:
            return False
    return False


def _unpack(fd: int, layout: str, offset: int) -> Tuple[int, ...]:
    size = struct.calcsize(layout)
    data = pread(fd, size, offset)
    if len(data) < size:
        raise ValueError("the GNU hash table is cut off")
    return struct.unpack(layout, data)
