"""The folders and files that the dynamic loader knows: `/etc/ld.so.cache`, built-in folders,
glibc-hwcaps.
"""

from __future__ import annotations

import struct

from envlock.runtime.host import Host, read_bytes
from envlock.runtime.loader.elf import AARCH64, X86_64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Sequence, Tuple

    Entry = Tuple[int, int]
    """Offset of the path, hwcap."""

_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER, _ENTRY = 48, 24  # bytes
_FLAGS = {62: 0x0303, 183: 0x0A03}  # e_machine -> libc6 and 64-bit, sysdeps/generic/ldconfig.h
_EXTENSION_MAGIC, _EXTENSION_HWCAPS = 0xEAA42174, 1
_SECTION, _SECTION_LIMIT = 16, 16  # bytes of a section of the extension; sections that are read
_HWCAP_EXTENSION = 1 << 30  # upper half of hwcap: the lower half is an index into the named hwcaps


class LdCache:
    """The entries of one cache file; a missing or damaged file has no entries."""

    def __init__(self, data: bytes, machine: int, hwcaps: Sequence[str]) -> None:
        """Read the table.

        Args:
            data: the whole file.
            machine: e_machine of this process.
            hwcaps: names of the glibc-hwcaps folders that this CPU can use, best first.
        """
        start = data.find(_MAGIC)
        self._data = b"" if start < 0 else data[start:]
        self._ranks = {name: rank for rank, name in enumerate(hwcaps)}
        self._entries: Dict[int, List[Entry]] = {}
        self._names: List[str] = []
        if len(self._data) >= _HEADER:
            self._read(_FLAGS.get(machine, -1))

    def _read(self, machine_flags: int) -> None:
        (count,) = struct.unpack_from("<I", self._data, 20)
        (extension,) = struct.unpack_from("<I", self._data, 32)
        count = min(count, (len(self._data) - _HEADER) // _ENTRY)
        table = memoryview(self._data)[_HEADER : _HEADER + count * _ENTRY]
        for flags, key, value, _, hwcap in struct.iter_unpack("<iIIIQ", table):
            if flags == machine_flags:
                self._entries.setdefault(key, []).append((value, hwcap))
        if extension:
            self._names = self._read_hwcap_names(extension)

    def _read_hwcap_names(self, start: int) -> List[str]:
        """Return the names in the cache's extension, which begins at an offset; [] if it is
        damaged.
        """
        data = self._data
        if start + 8 > len(data):
            return []
        magic, count = struct.unpack_from("<II", data, start)
        if magic != _EXTENSION_MAGIC:
            return []
        for index in range(min(count, _SECTION_LIMIT)):
            section = start + 8 + _SECTION * index
            if section + _SECTION > len(data):
                return []
            tag, _, offset, size = struct.unpack_from("<IIII", data, section)
            if tag == _EXTENSION_HWCAPS and offset + size <= len(data):
                names = struct.iter_unpack("<I", data[offset : offset + (size & ~3)])
                return [self._read_text(name) or "" for (name,) in names]
        return []

    def _read_text(self, offset: int) -> Optional[str]:
        end = self._data.find(b"\0", offset)
        if not 0 < offset < end:
            return None
        return self._data[offset:end].decode("utf-8", "surrogateescape")

    def lookup(self, soname: str) -> Optional[str]:
        """Return the path that glibc uses for `soname`, or None."""
        best_path: Optional[str] = None
        best_rank: Optional[int] = None
        for value, hwcap in self._find_entries(soname):
            if not hwcap >> 32 & _HWCAP_EXTENSION:
                # A plain entry ends the search; ldconfig writes it after those of hwcaps.
                return self._read_text(value) if best_rank is None else best_path
            index = hwcap & 0xFFFFFFFF
            if index >= len(self._names):
                continue
            rank = self._ranks.get(self._names[index])
            if rank is not None and (best_rank is None or rank < best_rank):
                best_path, best_rank = self._read_text(value), rank
        return best_path

    def _find_entries(self, soname: str) -> List[Entry]:
        """Return the entries of one name.

        Its text may be the end of a path, so every occurrence is tried.
        """
        text = soname.encode("utf-8", "surrogateescape") + b"\0"
        entries: List[Entry] = []
        offset = self._data.find(text)
        while offset >= 0:
            entries += self._entries.get(offset, ())
            offset = self._data.find(text, offset + 1)
        return entries


# Flags of /proc/cpuinfo that each level needs: the x86-64 psABI, section 3.1.1; glibc's
# sysdeps/x86/get-isa-level.h.
_ISA_LEVELS = (
    ("x86-64-v2", {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"}),
    ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}),
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
)
_INTERPRETERS = {X86_64: "/lib64/ld-linux-x86-64.so.2", AARCH64: "/lib/ld-linux-aarch64.so.1"}
"""The paths of ld.so in the psABIs."""
_MACHINES = {"x86_64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}

MULTIARCH = {X86_64: "x86_64-linux-gnu", AARCH64: "aarch64-linux-gnu"}
"""Debian's name for the machine, as in /usr/lib/x86_64-linux-gnu."""


def get_machine(host: Host) -> int:
    """Return e_machine of this machine's libraries; that of x86-64 for an unknown machine."""
    return _MACHINES.get(host.uname()[2], X86_64)


def list_hwcaps(host: Host, machine: int) -> Tuple[str, ...]:
    """Return the glibc-hwcaps folders that this CPU can use, best first; aarch64 has none."""
    if machine != X86_64:
        return ()
    text = host.read("/proc/cpuinfo", 1 << 14) or ""
    flags = set(text.partition("\nflags")[2].partition("\n")[0].split())
    names: List[str] = []
    for name, level_flags in _ISA_LEVELS:
        if not level_flags <= flags:
            break
        names.insert(0, name)
    return tuple(names)


def find_default_folders(host: Host, machine: int) -> List[str]:
    """Return the folders that were compiled into this machine's ld.so, in its order.

    Without an ld.so, Debian's folders are returned.

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
    # `system_dirs` of elf/dl-load.c: the folders in sequence, each with a slash and a NUL at the
    # end.
    offsets = {}
    for name in names:
        offset = data.find(b"\0" + name.encode() + b"/\0")
        if offset >= 0:
            offsets[name] = offset
    return sorted(offsets, key=offsets.__getitem__)
