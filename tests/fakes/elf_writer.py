"""Writes tiny shared libraries byte by byte: enough for our reader, and sound enough for the real ld.so to load."""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

X86_64, AARCH64 = 62, 183


def elf(
    soname: str | None = None,
    *,
    needed: tuple[str, ...] = (),
    rpath: str | None = None,
    runpath: str | None = None,
    build_id: bytes | None = None,
    note: bytes | None = None,
    symbols: tuple[str, ...] = (),
    flags_1: int = 0,
    machine: int = X86_64,
    size: int = 0,
) -> bytes:
    """Return a shared library with these dynamic entries; `note` is the text of NVIDIA's compatibility note."""
    strings = _Strings()
    entries = [(1, strings.add(name)) for name in needed]
    entries += [
        (tag, strings.add(text)) for tag, text in ((14, soname), (15, rpath), (29, runpath)) if text is not None
    ]
    if flags_1:
        entries.append((0x6FFFFFFB, flags_1))
    symtab = bytes(24) + b"".join(struct.pack("<IBBHQQ", strings.add(n), 0x12, 0, 0xFFF1, 0, 0) for n in symbols)
    notes = _notes(build_id, note)
    count = 4 if notes else 3
    at = {"dynamic": 64 + 56 * count}
    at["hash"] = at["dynamic"] + 16 * (len(entries) + 7)
    gnu_hash = _gnu_hash(symbols)
    sysv_hash = struct.pack(
        f"<III{len(symbols) + 1}I", 1, len(symbols) + 1, min(1, len(symbols)), *_chain(len(symbols))
    )
    at["gnu_hash"] = at["hash"] + len(sysv_hash) + (-len(sysv_hash)) % 8
    at["symtab"] = at["gnu_hash"] + len(gnu_hash) + (-len(gnu_hash)) % 8
    at["strtab"] = at["symtab"] + len(symtab)
    at["notes"] = at["strtab"] + len(strings.data) + (-len(strings.data)) % 8
    entries += [(5, at["strtab"]), (6, at["symtab"]), (10, len(strings.data)), (11, 24), (4, at["hash"])]
    entries += [(0x6FFFFEF5, at["gnu_hash"]), (0, 0)]
    end = max(at["notes"] + len(notes), size)
    headers = _segment(1, 6, 0, end, 0x1000) + _segment(2, 6, at["dynamic"], 16 * len(entries), 8)
    headers += struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)  # no executable stack
    if notes:
        headers += _segment(4, 4, at["notes"], len(notes), 4)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, count, 64, 0, 0)
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    parts = {"dynamic": dynamic, "hash": sysv_hash, "gnu_hash": gnu_hash, "symtab": symtab}
    parts.update(strtab=bytes(strings.data), notes=notes)
    return _lay_out(end, [(0, head + headers), *((at[name], part) for name, part in parts.items())])


def _lay_out(size: int, parts: list[tuple[int, bytes]]) -> bytes:
    data = bytearray(size)
    for place, part in parts:
        data[place : place + len(part)] = part
    return bytes(data)


def write_elf(path: Path, soname: str | None = None, **fields: Any) -> Path:
    """Write a library (its folder too) and return its path; the file's own name is its soname when none is given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(elf(path.name if soname is None else soname, **fields))
    return path


class _Strings:
    def __init__(self) -> None:
        self.data = bytearray(b"\0")

    def add(self, text: str) -> int:
        place = len(self.data)
        self.data += text.encode() + b"\0"
        return place


def _segment(kind: int, flags: int, offset: int, size: int, align: int) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, flags, offset, offset, offset, size, size, align)


def _chain(count: int) -> list[int]:
    return [0] + [place + 1 if place < count else 0 for place in range(1, count + 1)]


def _gnu_hash(symbols: tuple[str, ...]) -> bytes:
    hashes = []
    for name in symbols:
        value = 5381
        for byte in name.encode():
            value = (value * 33 + byte) & 0xFFFFFFFF
        hashes.append(value & ~1)
    if hashes:
        hashes[-1] |= 1
    head = struct.pack("<IIIIQI", 1, 1, 1, 6, 2**64 - 1, 1 if symbols else 0)
    return head + b"".join(struct.pack("<I", value) for value in hashes)


def _notes(build_id: bytes | None, note: bytes | None) -> bytes:
    found = b""
    for owner, kind, content in ((b"GNU\0", 3, build_id), (b"NVIDIA Corporation\0", 1, note)):
        if content is not None:
            found += struct.pack("<III", len(owner), len(content), kind)
            found += owner + bytes(-len(owner) % 4) + content + bytes(-len(content) % 4)
    return found
