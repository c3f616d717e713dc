"""Read the parts of a shared library that the dynamic loader reads, and the symbols that the
library exports.

Nothing is loaded.
"""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Optional, Set, Tuple

    Tags = Dict[int, List[int]]
    Segment = Tuple[int, int, int]  # virtual address (or 0), file offset, size in the file

X86_64, AARCH64 = 62, 183  # e_machine, elf.h

_PT_LOAD, _PT_DYNAMIC, _PT_NOTE = 1, 2, 4
_NEEDED, _STRSZ, _SONAME, _RPATH, _RUNPATH, _FLAGS_1 = 1, 10, 14, 15, 29, 0x6FFFFFFB
STRTAB, SYMTAB, GNU_HASH = 5, 6, 0x6FFFFEF5
_NODEFLIB = 0x800
"""DF_1_NODEFLIB: the folders of the cache and the built-in ones are not searched for this library."""
_GNU_BUILD_ID = 3  # elf.h: NT_GNU_BUILD_ID

HEAD_LIMIT = 4096
"""Bytes: the ELF header and program headers of every library seen are in the first 1 KiB."""
DYNAMIC_LIMIT = 1 << 16  # bytes: 4096 entries; the largest seen is 592
STRING_LIMIT = 1 << 18  # bytes: the RUNPATH of TensorFlow 2.21 is 25 KiB
NAME_LIMIT = 4096  # bytes: PATH_MAX of Linux
NOTE_LIMIT = 1 << 14  # bytes
SEGMENT_LIMIT = 128  # program headers; the most seen is 14


class OtherMachineError(ValueError):
    """A valid ELF file of another word size or processor: the loader skips it and continues to
    search.
    """


class Elf:
    """The dynamic section and the notes of one shared library.

    Attributes:
        path: the name it was opened by; `$ORIGIN` stands for the folder of this name (links are not
            followed, as in glibc).
        soname: DT_SONAME, or None.
        needed: DT_NEEDED, in order.
        rpath: DT_RPATH as written, empty if there is a DT_RUNPATH as well (glibc then ignores
            DT_RPATH).
        runpath: DT_RUNPATH as written, empty without one.
        has_runpath: whether there is a DT_RUNPATH, even an empty one.
        nodeflib: whether default folders are not searched for its dependencies (`-z nodefaultlib`).
        build_id: GNU build-id in hex, or None.
        compat: text of NVIDIA's forward-compatibility note, or None.
        machine: e_machine.
        size: bytes of the file.
    """

    __slots__ = (
        "build_id",
        "compat",
        "has_runpath",
        "machine",
        "needed",
        "nodeflib",
        "path",
        "rpath",
        "runpath",
        "size",
        "soname",
    )

    def __init__(self, path: str) -> None:
        self.path = path
        self.soname: Optional[str] = None
        self.needed: List[str] = []
        self.rpath = ""
        self.runpath = ""
        self.has_runpath = False
        self.nodeflib = False
        self.build_id: Optional[str] = None
        self.compat: Optional[str] = None
        self.machine = 0
        self.size = 0


def read_elf(path: str, machine: Optional[int] = None) -> Elf:
    """Return what the loader reads of the library at `path`.

    Args:
        path: a file.
        machine: the processor that it must be for; either of the two known ones when not given.

    Raises:
        OtherMachineError: a valid library for another word size or processor.
        ValueError: not a library that can be loaded.
        OSError: it cannot be read.
    """
    # O_NONBLOCK: a FIFO with that name must not block.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        elf = Elf(path)
        elf.size = os.fstat(fd).st_size
        elf.machine, loads, dynamic, notes = read_segments(fd, machine)
        tags = read_tags(fd, dynamic)
        _read_strings(fd, elf, tags, loads)
        for _, offset, size in notes:
            _read_notes(read_at(fd, min(size, NOTE_LIMIT), offset), elf)
        return elf
    finally:
        os.close(fd)


def read_at(fd: int, size: int, offset: int) -> bytes:
    """Return up to `size` bytes of an open file from `offset` on.

    Raises:
        ValueError: the offset is larger than any file.
        OSError: it cannot be read.
    """
    if not 0 <= offset < 1 << 62:
        raise ValueError("an offset lies outside the file")
    return os.pread(fd, size, offset)


def check_header(head: bytes, machine: Optional[int]) -> int:
    """Return e_machine of a library that glibc would map.

    The checks and their order are glibc's `open_verify`.

    Raises:
        OtherMachineError: for another word size or processor.
        ValueError: not a library.
    """
    if len(head) < 64:
        raise ValueError("file too short")
    if head[:4] != b"\x7fELF":
        raise ValueError("invalid ELF header")
    if head[4] != 2:
        raise OtherMachineError("wrong ELF class")
    if head[5] != 1:
        raise ValueError("ELF file data encoding not little-endian")
    if head[6] != 1:
        raise ValueError("ELF file version ident does not match current one")
    if head[7] not in (0, 3):  # System V, GNU
        raise ValueError("ELF file OS ABI invalid")
    if any(head[9:16]):
        raise ValueError("nonzero padding in e_ident")
    return _check_type(head, machine)


def _check_type(head: bytes, machine: Optional[int]) -> int:
    """Check the fields after e_ident: e_type, e_machine and e_version; return e_machine."""
    file_type, file_machine, version = struct.unpack_from("<HHI", head, 16)
    if version != 1:
        raise ValueError("ELF file version does not match current one")
    machines = (X86_64, AARCH64) if machine is None else (machine,)
    if file_machine not in machines:
        raise OtherMachineError("another processor's library")
    if file_type not in (2, 3):
        raise ValueError("only ET_DYN and ET_EXEC can be loaded")
    return int(file_machine)


def read_segments(
    fd: int, machine: Optional[int]
) -> Tuple[int, List[Segment], Segment, List[Segment]]:
    """Return e_machine, and the loaded, the dynamic and the note segments of an open library.

    Raises:
        OtherMachineError, ValueError, OSError: as `read_elf`.
    """
    head = read_at(fd, HEAD_LIMIT, 0)
    file_machine = check_header(head, machine)
    (start,) = struct.unpack_from("<Q", head, 32)
    entry_size, count = struct.unpack_from("<HH", head, 54)
    if entry_size != 56:
        raise ValueError("ELF file's phentsize not the expected size")
    if count > SEGMENT_LIMIT:
        raise ValueError("too many program headers")
    size = entry_size * count
    if start + size <= len(head):
        table = head[start : start + size]
    else:
        table = read_at(fd, size, start)
    if len(table) < size:
        raise ValueError("cannot read file data")
    loads: List[Segment] = []
    notes: List[Segment] = []
    dynamic: Optional[Segment] = None
    for kind, _, offset, address, _, file_size, _, _ in struct.iter_unpack("<IIQQQQQQ", table):
        segment = (address, offset, file_size)
        if kind == _PT_LOAD:
            loads.append(segment)
        elif kind == _PT_DYNAMIC:
            dynamic = segment
        elif kind == _PT_NOTE:
            notes.append(segment)
    if dynamic is None:
        raise ValueError("object file has no dynamic section")
    return file_machine, loads, dynamic, notes


def read_tags(fd: int, dynamic: Segment) -> Tags:
    """Return the entries of the dynamic section by tag.

    Raises:
        ValueError: it is truncated.
    """
    _, offset, size = dynamic
    data = read_at(fd, min(size, DYNAMIC_LIMIT), offset)
    tags: Tags = {}
    for tag, value in struct.iter_unpack("<QQ", data[: len(data) & ~15]):
        if tag == 0:
            return tags
        tags.setdefault(tag, []).append(value)
    raise ValueError("the dynamic section has no end")


def compute_offset(address: int, loads: List[Segment]) -> int:
    """Return the offset of a virtual address in the file.

    Raises:
        ValueError: no segment contains it.
    """
    for start, offset, size in loads:
        if start <= address < start + size:
            return offset + address - start
    raise ValueError("an address lies outside the loaded segments")


def _read_strings(fd: int, elf: Elf, tags: Tags, loads: List[Segment]) -> None:
    if STRTAB not in tags or _STRSZ not in tags:
        raise ValueError("object file has no dynamic string table")
    base, size = compute_offset(tags[STRTAB][0], loads), tags[_STRSZ][0]

    def read_text(offset: int, limit: int = STRING_LIMIT) -> str:
        if offset >= size:
            raise ValueError("a name lies outside the string table")
        # Nearly every name is short; only a RUNPATH may need the longer read.
        for length in (128, limit):
            data = read_at(fd, min(length, size - offset), base + offset)
            end = data.find(b"\0")
            if end >= 0:
                return data[:end].decode("utf-8", "surrogateescape")
        raise ValueError("a name has no end")

    if _SONAME in tags:
        elf.soname = read_text(tags[_SONAME][0])
    elf.needed = [read_text(offset, NAME_LIMIT) for offset in tags.get(_NEEDED, ())]
    elf.has_runpath = _RUNPATH in tags
    if elf.has_runpath:
        elf.runpath = read_text(tags[_RUNPATH][0])
    elif _RPATH in tags:
        elf.rpath = read_text(tags[_RPATH][0])
    elf.nodeflib = bool(tags.get(_FLAGS_1, [0])[0] & _NODEFLIB)


def _read_notes(data: bytes, elf: Elf) -> None:
    """Read the build-id and NVIDIA's note from one note segment; truncated notes are skipped."""
    position = 0
    while position + 12 <= len(data):
        name_size, size, kind = struct.unpack_from("<III", data, position)
        position += 12
        name = data[position : position + name_size]
        position += (name_size + 3) & ~3
        content = data[position : position + size]
        if len(content) < size:
            return
        position += (size + 3) & ~3
        if name == b"GNU\0" and kind == _GNU_BUILD_ID:
            elf.build_id = content.hex()
        elif name.rstrip(b"\0") == b"NVIDIA Corporation":
            elf.compat = content.rstrip(b"\0").decode("utf-8", "replace")


_CHAIN_LIMIT = 4096  # symbols in one bucket; a valid table has a handful
_SYMBOL = 24  # bytes of Elf64_Sym


def find_exports(path: str, names: Iterable[str]) -> Set[str]:
    """Return those of the names that the library exports.

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
        table = compute_offset(tags[GNU_HASH][0], loads)
        symbols = compute_offset(tags[SYMTAB][0], loads)
        strings = compute_offset(tags[STRTAB][0], loads)
        return {name for name in names if _is_defined(fd, name.encode(), table, symbols, strings)}
    finally:
        os.close(fd)


def _is_defined(fd: int, name: bytes, table: int, symbols: int, strings: int) -> bool:
    """Return whether a name is in the GNU hash table that begins at the offset `table`."""
    buckets, first, words, _ = _unpack(fd, "<IIII", table)
    if not buckets:
        return False
    name_hash = 5381
    for byte in name:
        name_hash = (name_hash * 33 + byte) & 0xFFFFFFFF
    chains = table + 16 + 8 * words + 4 * buckets
    (start,) = _unpack(fd, "<I", chains - 4 * buckets + 4 * (name_hash % buckets))
    if start < first:
        return False
    for index in range(start, start + _CHAIN_LIMIT):
        (value,) = _unpack(fd, "<I", chains + 4 * (index - first))
        # The lowest bit of a value is not part of the hash: it marks the end of the chain.
        if value | 1 == name_hash | 1:
            text, _, _, section = _unpack(fd, "<IBBH", symbols + _SYMBOL * index)
            if section and read_at(fd, len(name) + 1, strings + text) == name + b"\0":
                return True
        if value & 1:
            return False
    return False


def _unpack(fd: int, layout: str, offset: int) -> Tuple[int, ...]:
    size = struct.calcsize(layout)
    data = read_at(fd, size, offset)
    if len(data) < size:
        raise ValueError("the GNU hash table is cut off")
    return struct.unpack(layout, data)
