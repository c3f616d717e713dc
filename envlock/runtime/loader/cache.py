"""What the dynamic loader knows of the machine: `/etc/ld.so.cache`, built-in folders, glibc-hwcaps."""

from __future__ import annotations

import struct

from envlock.runtime.host import read_bytes
from envlock.runtime.loader.elf import AARCH64, X86_64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Sequence, Tuple

    Entry = Tuple[int, int]  # offset of the path, hwcap

    from envlock.runtime.host import Host

_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER, _ENTRY = 48, 24  # bytes
_FLAGS = {62: 0x0303, 183: 0x0A03}  # e_machine -> libc6 and 64-bit, sysdeps/generic/ldconfig.h
_EXTENSION_MAGIC, _EXTENSION_HWCAPS = 0xEAA42174, 1
_HWCAP_EXTENSION = 1 << 30  # upper half of hwcap: the lower half is an index into the named hwcaps


class LdCache:
    """The entries of one cache file; one that is missing or damaged holds none."""

    def __init__(self, data: bytes, machine: int, hwcaps: Sequence[str]) -> None:
        """Read the table.

        Args:
            data: the whole file.
            machine: e_machine of this process.
            hwcaps: names of the glibc-hwcaps folders that this CPU can use, best first.
        """
        start = data.find(_MAGIC)
        self._data = data[start:] if start >= 0 else b""
        self._rank = {name: place for place, name in enumerate(hwcaps)}
        self._entries: Dict[int, List[Entry]] = {}
        self._names: List[str] = []
        if len(self._data) >= _HEADER:
            self._read(_FLAGS.get(machine, -1))

    def _read(self, wanted: int) -> None:
        (count,) = struct.unpack_from("<I", self._data, 20)
        (extension,) = struct.unpack_from("<I", self._data, 32)
        count = min(count, (len(self._data) - _HEADER) // _ENTRY)
        table = memoryview(self._data)[_HEADER : _HEADER + count * _ENTRY]
        for flags, key, value, _, hwcap in struct.iter_unpack("<iIIIQ", table):
            if flags == wanted:
                self._entries.setdefault(key, []).append((value, hwcap))
        if extension:
            self._names = self._hwcap_names(extension)

    def _hwcap_names(self, at: int) -> List[str]:
        data = self._data
        if at + 8 > len(data):
            return []
        magic, count = struct.unpack_from("<II", data, at)
        if magic != _EXTENSION_MAGIC:
            return []
        for place in range(min(count, 16)):
            if at + 24 + 16 * place > len(data):
                return []
            tag, _, offset, size = struct.unpack_from("<IIII", data, at + 8 + 16 * place)
            if tag == _EXTENSION_HWCAPS and offset + size <= len(data):
                names = struct.iter_unpack("<I", data[offset : offset + (size & ~3)])
                return [self._text(name) or "" for (name,) in names]
        return []

    def _text(self, offset: int) -> Optional[str]:
        end = self._data.find(b"\0", offset)
        return (
            self._data[offset:end].decode("utf-8", "surrogateescape") if 0 < offset < end else None
        )

    def lookup(self, soname: str) -> Optional[str]:
        """Return the path that glibc takes for `soname`, or None."""
        best: Optional[Tuple[int, Optional[str]]] = None
        for value, hwcap in self._of(soname):
            if hwcap >> 32 & _HWCAP_EXTENSION:
                index = hwcap & 0xFFFFFFFF
                rank = self._rank.get(self._names[index]) if index < len(self._names) else None
                if rank is not None and (best is None or rank < best[0]):
                    best = rank, self._text(value)
            else:  # a plain entry ends the search; ldconfig writes it after the named ones
                return best[1] if best is not None else self._text(value)
        return best[1] if best is not None else None

    def _of(self, soname: str) -> List[Entry]:
        """Return the entries of one name; its text may be the tail of a path, so every place it stands is tried."""
        wanted = soname.encode("utf-8", "surrogateescape") + b"\0"
        found: List[Entry] = []
        at = self._data.find(wanted)
        while at >= 0:
            found += self._entries.get(at, ())
            at = self._data.find(wanted, at + 1)
        return found


# Flags of /proc/cpuinfo that each level needs: the x86-64 psABI, section 3.1.1; glibc's sysdeps/x86/get-isa-level.h.
_ISA_LEVELS = (
    ("x86-64-v2", {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"}),
    ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}),
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
)
_INTERPRETERS = {
    X86_64: "/lib64/ld-linux-x86-64.so.2",
    AARCH64: "/lib/ld-linux-aarch64.so.1",
}  # the psABIs
_MACHINES = {"x86_64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}

MULTIARCH = {X86_64: "x86_64-linux-gnu", AARCH64: "aarch64-linux-gnu"}
"""Debian's name of the machine, as in /usr/lib/x86_64-linux-gnu."""


def machine_of(host: Host) -> int:
    """Return e_machine of the libraries that this machine loads; x86-64 where it is neither of the two known."""
    return _MACHINES.get(host.uname()[2], X86_64)


def hwcap_names(host: Host, machine: int) -> Tuple[str, ...]:
    """Return the names of the glibc-hwcaps folders that this CPU can use, best first; aarch64 has none."""
    if machine != X86_64:
        return ()
    text = host.read("/proc/cpuinfo", 1 << 14) or ""
    flags = set(text.partition("\nflags")[2].partition("\n")[0].split())
    names: List[str] = []
    for name, needed in _ISA_LEVELS:
        if not needed <= flags:
            break
        names.insert(0, name)
    return tuple(names)


def default_folders(host: Host, machine: int) -> List[str]:
    """Return the folders that were compiled into this machine's ld.so, in its order; Debian's when there is no ld.so.

    Raises:
        OSError: ld.so cannot be read.
    """
    multiarch = MULTIARCH[machine]
    names = [
        f"/lib/{multiarch}",
        f"/usr/lib/{multiarch}",
        "/lib",
        "/usr/lib",
        "/lib64",
        "/usr/lib64",
    ]
    data = read_bytes(host.system(_INTERPRETERS[machine]))
    if data is None:
        return names[:4]
    # `system_dirs` of elf/dl-load.c: the folders one after another, each with its slash and a NUL.
    places = {name: data.find(b"\0" + name.encode() + b"/\0") for name in names}
    return sorted((name for name in names if places[name] >= 0), key=places.__getitem__)
