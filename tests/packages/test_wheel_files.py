"""The RECORD of a wheel, out of a zip that may be any kind of wrong."""

from __future__ import annotations

import io
import struct
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.packages.wheel_files import BadWheel, read_wheel_record
from tests.packages.wheels import make_wheel, record_in

INFO = "thing-1.0.dist-info"


def test_a_sound_wheel(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    assert read_wheel_record(wheel) == record_in(wheel)


def test_a_wheel_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(BadWheel) as caught:
        read_wheel_record(tmp_path / "gone.whl")
    assert caught.value.message == f"cannot read the wheel {tmp_path / 'gone.whl'}: No such file or directory"


Make = Callable[[zipfile.ZipFile], None]


def _with(*names: str, data: bytes = b"x", kind: int = zipfile.ZIP_DEFLATED) -> Make:
    def make(archive: zipfile.ZipFile) -> None:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), data, kind)

    return make


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_with("a.py"), "it has 0 folders named .dist-info, not one"),
        (_with(f"{INFO}/RECORD", "b-1.dist-info/X"), "it has 2 folders named .dist-info, not one"),
        (_with(f"{INFO}/METADATA", f"x/{INFO}/RECORD"), "it has no RECORD"),
        (_with(f"{INFO}/RECORD", f"{INFO}/RECORD"), f"it has {INFO}/RECORD twice"),
        (_with("a\x1b.py", "a\x1b.py", f"{INFO}/RECORD"), "it has a\\x1b.py twice"),
        (_with(f"{INFO}/RECORD", kind=zipfile.ZIP_LZMA), "its RECORD is compressed in a way that wheels do not use"),
        (_with(f"{INFO}/RECORD", data=bytes(70_000_000)), "its RECORD is larger than 67108864 bytes"),
    ],
)
def test_a_wheel_that_is_none(tmp_path: Path, make: Make, why: str) -> None:
    path = tmp_path / "thing.whl"
    with zipfile.ZipFile(path, "w") as archive:
        make(archive)
    assert _refused(path) == f"thing.whl is not a valid wheel: {why}"


def _refused(wheel: Path) -> str:
    with pytest.raises(BadWheel) as caught:
        read_wheel_record(wheel)
    return caught.value.message


def _edited(wheel: Path, edit: Callable[[bytearray], None]) -> Path:
    data = bytearray(wheel.read_bytes())
    edit(data)
    wheel.write_bytes(data)
    return wheel


def test_an_encrypted_wheel(tmp_path: Path) -> None:
    def encrypt(data: bytearray) -> None:
        data[data.index(b"PK\x01\x02") + 8] |= 1

    assert _refused(_edited(make_wheel(tmp_path), encrypt)).endswith(": thing.py is encrypted")


def test_a_name_that_is_cut_off(tmp_path: Path) -> None:
    def cut(data: bytearray) -> None:
        at = data.index(b"thing.py", data.index(b"PK\x01\x02"))
        data[at + 5] = 0

    assert _refused(_edited(make_wheel(tmp_path), cut)).endswith(": the name thing has a NUL byte")


def test_a_bomb_that_lies_about_its_size(tmp_path: Path) -> None:
    path = tmp_path / "thing.whl"
    with zipfile.ZipFile(path, "w") as archive:
        _with(f"{INFO}/RECORD", data=bytes(10_000_000))(archive)

    def lie(data: bytearray) -> None:
        at = data.index(b"PK\x01\x02")
        data[at + 24 : at + 28] = (1000).to_bytes(4, "little")

    assert "is not a valid wheel: " in _refused(_edited(path, lie))


def test_a_record_that_is_shorter_than_it_says(tmp_path: Path) -> None:
    def lie(data: bytearray) -> None:
        at = data.rindex(b"PK\x01\x02")
        data[at + 24 : at + 28] = (5000).to_bytes(4, "little")

    why = "the length of its RECORD contradicts its table of contents"
    assert _refused(_edited(make_wheel(tmp_path), lie)).endswith(why)


def test_damage_in_the_record_is_noticed(tmp_path: Path) -> None:
    def flip(data: bytearray) -> None:
        at = data.index(b"/RECORD") + 7
        data[at + 3] ^= 0xFF

    assert "is not a valid wheel: it is not a valid zip file (" in _refused(_edited(make_wheel(tmp_path), flip))


def test_a_table_of_contents_of_a_million_entries_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    wheel = tmp_path / "thing-1-py3-none-any.whl"
    entry = b"PK\1\2".ljust(28, b"\0") + b"\1\0".ljust(18, b"\0") + b"a"
    count, size = 0xFFFF, 1_000_000 * len(entry)
    wheel.write_bytes(entry * 1_000_000 + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, size, 0, 0))
    tracemalloc.start()
    message = _refused(wheel)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert message.endswith(": it is not a valid zip file (its table of contents is larger than 8,388,608 bytes)")
    assert peak < 8_000_000


FOUND = Path(tempfile.mkdtemp(), "thing.whl")
SOUND = io.BytesIO()
with zipfile.ZipFile(SOUND, "w", zipfile.ZIP_DEFLATED) as _archive:
    _archive.writestr(f"{INFO}/RECORD", "a.py,,\n")
    _archive.writestr("a.py", "")


@given(
    st.binary(max_size=200)
    | st.lists(st.tuples(st.integers(0, len(SOUND.getvalue()) - 1), st.integers(0, 255)), max_size=4).map(
        lambda edits: _scribbled(SOUND.getvalue(), edits)
    )
)
def test_no_file_is_a_bug(data: bytes) -> None:
    FOUND.write_bytes(data)
    try:
        record = read_wheel_record(FOUND)
    except BadWheel:
        return
    assert record == b"a.py,,\n"


def _scribbled(data: bytes, edits: list[tuple[int, int]]) -> bytes:
    changed = bytearray(data)
    for at, value in edits:
        changed[at] = value
    return bytes(changed)
