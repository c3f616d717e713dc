"""The GPU code that a library really contains, read from the headers of its fat binaries.

A fat binary is a header (magic 0xBA55ED50, version, header size, size) and images one after
another, each with a header of its own: kind (1 PTX, 2 SASS), header size, size, version (of the PTX
ISA for PTX) and architecture. NVIDIA does not document the layout; it was derived from TensorFlow
2.16 to 2.21, where it agrees with the build info, and every field is checked, so that another
layout gives an error instead of a wrong answer. The suffixes `a` and `f` of an architecture are
ignored.
"""

from __future__ import annotations

import os
import struct

from envlock.data.runtime_tables import load_cuda_table
from envlock.runtime.loader.elf import check_header, read_at

SECTION = b".nv_fatbin"
IMAGE_LIMIT = 200_000
"""Headers; TensorFlow 2.21 has 1734."""
_MAGIC = 0xBA55ED50  # fatbinary.h: the `magic` of `fatBinaryHeader`
_PTX, _SASS = 1, 2


class GpuCode:
    """The code in the fat binaries of one library.

    Attributes:
        fatbins: their number.
        sass: architecture (`80`) -> the number of fat binaries with machine code for it.
        ptx: architecture -> the number of fat binaries with PTX for it.
        ptx_isa: the newest PTX ISA version found, such as (8, 3), or None without PTX.
    """

    __slots__ = ("fatbins", "ptx", "ptx_isa", "sass")

    def __init__(self) -> None:
        self.fatbins = 0
        self.sass: dict[int, int] = {}
        self.ptx: dict[int, int] = {}
        self.ptx_isa: tuple[int, int] | None = None

    def list_targets(self) -> list[str]:
        """Return the code in *every* fat binary, machine code first, for `gpu_code.judge`: `sm_80`,
        `compute_90`.
        """
        names = []
        for kind, counts in (("sm", self.sass), ("compute", self.ptx)):
            every = sorted(number for number in counts if counts[number] == self.fatbins)
            names += [f"{kind}_{number}" for number in every]
        return names

    def get_ptx_cuda(self) -> str | None:
        """Return the CUDA version that the PTX needs from a driver; None without PTX, or if
        unknown.

        Source: "PTX ISA", Release Notes, table of the release history (`envlock/data/cuda.toml`,
        ptx_isa).
        """
        if self.ptx_isa is None:
            return None
        major, minor = self.ptx_isa
        for row in load_cuda_table().ptx_isa:
            if row.isa == f"{major}.{minor}":
                return row.cuda
        return None


def read_gpu_code(path: str) -> GpuCode | None:
    """Return the GPU code of a library; None if it has no such section.

    Takes about 1 ms for a thousand images.

    Raises:
        ValueError: not a library, or its fat binaries have another layout.
        OSError: it cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        section = _find_section(fd)
        if section is None:
            return None
        offset, size = section
        return _read(fd, offset, size)
    finally:
        os.close(fd)


def _find_section(fd: int) -> tuple[int, int] | None:
    """Return (offset, size) of the section."""
    head = read_at(fd, 64, 0)
    check_header(head, None)
    (start,) = struct.unpack_from("<Q", head, 40)
    entry_size, count, names_index = struct.unpack_from("<HHH", head, 58)
    if entry_size != 64:
        return None
    table = read_at(fd, entry_size * count, start)
    if not count or names_index >= count or len(table) < 64 * count:
        return None
    headers = [struct.unpack_from("<I20xQQ", table, 64 * index) for index in range(count)]
    _, offset, size = headers[names_index]
    names = read_at(fd, min(size, 1 << 16), offset)
    for name, section_offset, section_size in headers:
        if names[name : name + len(SECTION) + 1] == SECTION + b"\0":
            return section_offset, section_size
    return None


def _read(fd: int, start: int, size: int) -> GpuCode:
    code = GpuCode()
    position, end, images = start, start + size, 0
    while position + 16 <= end:
        magic, version, header_size, length = _unpack(fd, "<IHHQ", position)
        images_end = position + header_size + length
        if magic == 0:
            position += 8  # alignment
        elif magic != _MAGIC or version != 1 or header_size < 16 or images_end > end:
            raise ValueError("fat binaries of an unknown layout")
        else:
            images += _read_images(fd, position + header_size, images_end, code)
            position = images_end + (-length) % 8
        images += 1
        if images > IMAGE_LIMIT:
            raise ValueError("more fat binaries than can be")
    return code


def _read_images(fd: int, start: int, end: int, code: GpuCode) -> int:
    """Count the images of one fat binary in `code`; return their number."""
    sass: set[int] = set()
    ptx: set[int] = set()
    position, images = start, 0
    while position + 64 <= end and images < IMAGE_LIMIT:
        kind, _, header_size, length, minor, major, number = _unpack(fd, "<HHIQ8xHHI", position)
        next_position = position + header_size + length
        if kind not in (_PTX, _SASS) or header_size < 64 or next_position > end:
            raise ValueError("an image of an unknown layout")
        if not 10 <= number < 2000:
            raise ValueError("an image of an unknown layout")
        if kind == _SASS:
            sass.add(number)
        else:
            ptx.add(number)
            code.ptx_isa = max(code.ptx_isa or (0, 0), (major, minor))
        position = next_position
        images += 1
    code.fatbins += 1
    for architectures, counts in ((sass, code.sass), (ptx, code.ptx)):
        for number in architectures:
            counts[number] = counts.get(number, 0) + 1
    return images


def _unpack(fd: int, layout: str, offset: int) -> tuple[int, ...]:
    size = struct.calcsize(layout)
    data = read_at(fd, size, offset)
    if len(data) < size:
        raise ValueError("the fat binaries are cut off")
    return struct.unpack(layout, data)
