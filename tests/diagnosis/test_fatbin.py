"""GPU code told by the headers of fat binaries."""

from __future__ import annotations

import contextlib
import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envlock.diagnosis.fatbin import read_gpu_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def image(kind: int, number: int, version: tuple[int, int] = (1, 7), content: bytes = b"code " * 5) -> bytes:
    content += bytes(-len(content) % 8)
    head = struct.pack("<HHIQQHHI", kind, 0x101, 64, len(content), 0, version[1], version[0], number)
    return head + bytes(64 - len(head)) + content


def fatbin(*images: bytes) -> bytes:
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(b"".join(images))) + b"".join(images)


def library(section: bytes, name: bytes = b".nv_fatbin") -> bytes:
    """Return an ELF file that has one section beside its names."""
    names = b"\0" + name + b"\0.shstrtab\0"
    names += bytes(-len(names) % 8)
    at = {"section": 64, "names": 64 + len(section)}
    table = at["names"] + len(names)
    row = struct.Struct("<IIQQQQIIQQ")
    rows = bytes(64) + row.pack(1, 1, 2, 0, at["section"], len(section), 0, 0, 8, 0)
    rows += row.pack(2 + len(name), 3, 0, 0, at["names"], len(names), 0, 0, 1, 0)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, table, 0, 64, 56, 0, 64, 3, 2)
    return head + section + names + rows


TWO = fatbin(image(2, 80), image(2, 90), image(1, 90, (8, 3))) + bytes(16) + fatbin(image(2, 80), image(2, 90))


def read(folder: Path, data: bytes) -> object:
    path = folder / "lib.so"
    path.write_bytes(data)
    return read_gpu_code(str(path))


def test_what_all_and_what_some_hold(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(library(TWO))
    code = read_gpu_code(str(path))
    assert code is not None
    assert code.fatbins == 2
    assert code.list_targets() == ["sm_80", "sm_90"]  # and compute_90 in one of two
    assert (code.ptx_isa, code.get_ptx_cuda()) == ((8, 3), "12.3")


def test_a_library_without_gpu_code(tmp_path: Path) -> None:
    assert read(tmp_path, library(TWO, b".other")) is None


@pytest.mark.parametrize(
    "section",
    [
        b"garbage " * 8,
        fatbin(image(3, 80)),
        fatbin(image(2, 0)),
        TWO[:100],
        struct.pack("<IHHQ", 0xBA55ED50, 2, 16, 0),
        struct.pack("<IHHQ", 0xBA55ED50, 1, 0, 0) + bytes(64),
    ],
)
def test_another_layout_is_an_error_and_no_answer(tmp_path: Path, section: bytes) -> None:
    with pytest.raises(ValueError, match=r"layout|cut off"):
        read(tmp_path, library(section))


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32))
def test_damage_ends_in_an_error_or_an_answer(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(library(TWO))
    for _ in range(chance.randrange(1, 12)):
        data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0xFF, chance.randrange(256)))
    with contextlib.suppress(ValueError, OSError):
        read(tmp_path_factory.getbasetemp(), bytes(data[: chance.randrange(1, len(data) + 1)]))
