"""Which GPU code a library really holds: the headers of its fat binaries, read without unpacking them.

A fat binary is a header (magic 0xBA55ED50, version, header size, size) and images one after another, each with a
header of its own: kind (1 PTX, 2 SASS), header size, size, version (of the PTX ISA for PTX) and architecture. NVIDIA
does not document the layout; it was read off TensorFlow 2.16 to 2.21, where it agrees with the build info, and every
field is checked, so that another layout gives an error and no wrong answer. The suffixes `a` and `f` of an architecture
are not told apart.
"""

from __future__ import annotations

import os
import struct

from envlock.data import cuda_table
from envlock.runtime.loader.elf import check_header, read_at

SECTION = b".nv_fatbin"
IMAGE_LIMIT = 200_000  # headers; TensorFlow 2.21 has 1734
_MAGIC = 0xBA55ED50
_PTX, _SASS = 1, 2


class GpuCode:
    """What the fat binaries of one library hold.

    Attributes:
        fatbins: how many there are.
        sass: architecture (`80`) -> in how many of them there is machine code for it.
        ptx: architecture -> in how many of them there is PTX for it.
        ptx_isa: the newest PTX ISA version met, such as (8, 3), or None without PTX.
    """

    __slots__ = ("fatbins", "ptx", "ptx_isa", "sass")

    def __init__(self) -> None:
        self.fatbins = 0
        self.sass: dict[int, int] = {}
        self.ptx: dict[int, int] = {}
        self.ptx_isa: tuple[int, int] | None = None

    def targets(self) -> list[str]:
        """Return what *every* fat binary holds, as `gpu_code.judge` takes it: `sm_80`, `compute_90`."""
        found = [
            f"sm_{number}" for number, count in sorted(self.sass.items()) if count == self.fatbins
        ]
        return found + [
            f"compute_{number}"
            for number, count in sorted(self.ptx.items())
            if count == self.fatbins
        ]

    def partial(self) -> list[str]:
        """Return what only some of them hold: a GPU that needs one of these can run a part of the library."""
        found = [
            f"sm_{number}" for number, count in sorted(self.sass.items()) if count < self.fatbins
        ]
        return found + [
            f"compute_{number}"
            for number, count in sorted(self.ptx.items())
            if count < self.fatbins
        ]

    def ptx_cuda(self) -> str | None:
        """Return the CUDA version that a driver needs to compile the PTX; None without PTX or for an unknown ISA.

        Source: "PTX ISA", Release Notes, table of the release history (`envlock/data/cuda.toml`, ptx_isa).
        """
        if self.ptx_isa is None:
            return None
        isa = "{}.{}".format(*self.ptx_isa)
        return next((row.cuda for row in cuda_table().ptx_isa if row.isa == isa), None)


def read_gpu_code(path: str) -> GpuCode | None:
    """Return the GPU code of a library, None when it has no such section. Costs about 1 ms a thousand images.

    Raises:
        ValueError: not a library, or fat binaries of another layout.
        OSError: it cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        place = _section(fd)
        return None if place is None else _read(fd, *place)
    finally:
        os.close(fd)


def _section(fd: int) -> tuple[int, int] | None:
    """Return (offset, size) of the section."""
    head = read_at(fd, 64, 0)
    check_header(head, None)
    (start,) = struct.unpack_from("<Q", head, 40)
    entry, count, names = struct.unpack_from("<HHH", head, 58)
    table = read_at(fd, entry * count, start) if entry == 64 else b""
    if not count or names >= count or len(table) < 64 * count:
        return None
    rows = [struct.unpack_from("<I20xQQ", table, 64 * row) for row in range(count)]
    _, offset, size = rows[names]
    text = read_at(fd, min(size, 1 << 16), offset)
    for name, begin, length in rows:
        if text[name : name + len(SECTION) + 1] == SECTION + b"\0":
            return begin, length
    return None


def _read(fd: int, at: int, size: int) -> GpuCode:
    code = GpuCode()
    end, images = at + size, 0
    while at + 16 <= end:
        magic, version, header, length = _unpack(fd, "<IHHQ", at)
        if magic == 0:
            at += 8  # alignment
        elif magic != _MAGIC or version != 1 or header < 16 or at + header + length > end:
            raise ValueError("fat binaries of an unknown layout")
        else:
            images += _read_images(fd, at + header, at + header + length, code)
            at += header + length + (-length) % 8
        images += 1
        if images > IMAGE_LIMIT:
            raise ValueError("more fat binaries than can be")
    return code


def _read_images(fd: int, at: int, end: int, code: GpuCode) -> int:
    sass: set[int] = set()
    ptx: set[int] = set()
    images = 0
    while at + 64 <= end and images < IMAGE_LIMIT:
        kind, _, header, length, minor, major, number = _unpack(fd, "<HHIQ8xHHI", at)
        if (
            kind not in (_PTX, _SASS)
            or header < 64
            or at + header + length > end
            or not 10 <= number < 2000
        ):
            raise ValueError("an image of an unknown layout")
        (sass if kind == _SASS else ptx).add(number)
        if kind == _PTX:
            code.ptx_isa = max(code.ptx_isa or (0, 0), (major, minor))
        at += header + length
        images += 1
    code.fatbins += 1
    for seen, counts in ((sass, code.sass), (ptx, code.ptx)):
        for number in seen:
            counts[number] = counts.get(number, 0) + 1
    return images


def _unpack(fd: int, layout: str, offset: int) -> tuple[int, ...]:
    size = struct.calcsize(layout)
    data = read_at(fd, size, offset)
    if len(data) < size:
        raise ValueError("the fat binaries are cut off")
    return struct.unpack(layout, data)
