"""A RECORD without its wheel: by ranges, from a server that may be any kind of wrong, out of a zip that may be too."""

from __future__ import annotations

import io
import random
import shutil
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.packages.indexes import ranges as module
from envlock.packages.indexes.index_settings import Index
from envlock.packages.indexes.page import IndexFile, list_index_files
from envlock.packages.indexes.ranges import (
    BLOCK,
    BadWheel,
    BlockFile,
    NoRanges,
    PartialWheel,
    open_remote_file,
    read_remote_record,
    read_wheel_record,
)
from envlock.runtime.errors import OutsideError
from envlock.web.client import Client
from tests.packages.server import IndexServer
from tests.packages.wheels import make_wheel, record_in

pytestmark = pytest.mark.network

INFO = "thing-1.0.dist-info"


def _noise(size: int) -> bytes:
    return random.Random(1).randbytes(size)


@pytest.fixture(scope="module")
def large_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel of 3 MB; its table of contents does not fit into the last blocks."""
    many = {f"thing/{number:05}-{'x' * 60}.py": b"" for number in range(3000)}
    return make_wheel(tmp_path_factory.mktemp("large"), files={"thing/data": _noise(3_000_000), **many})


@pytest.fixture
def large(index: IndexServer, large_one: Path) -> Path:
    """Return that wheel on the index."""
    return Path(shutil.copy(large_one, index.folder))


def expected(wheel: Path) -> PartialWheel:
    """Return what is to be read of a wheel, by Python's own means."""
    with zipfile.ZipFile(wheel) as archive:
        return PartialWheel(record_in(wheel), wheel.stat().st_size, frozenset(archive.namelist()))


def _offered(client: Client, index: IndexServer) -> IndexFile:
    return list_index_files(client, Index(index.url), "thing")[0]


def test_a_record_costs_a_part_of_its_wheel(client: Client, index: IndexServer, large: Path) -> None:
    file = _offered(client, index)
    assert read_remote_record(client, file) == expected(large)
    asked = index.asked("/files/")
    sent = open_remote_file(client, file.url)
    read_wheel_record(io.BufferedReader(sent))
    assert sent.fetched < 1_300_000
    assert len(asked) <= 4
    assert asked[0].headers["range"] == f"bytes=-{2 * BLOCK}"
    assert all(request.headers["if-range"].startswith('"') for request in asked[1:])


@pytest.mark.parametrize("size", [0, 10, BLOCK, 2 * BLOCK, 3 * BLOCK])
@pytest.mark.parametrize("trouble", [None, "no validators"])
def test_wheels_of_every_size(client: Client, index: IndexServer, size: int, trouble: str | None) -> None:
    wheel = make_wheel(index.folder, files={"data": _noise(size)})
    index.troubles |= {trouble} if trouble else set()
    assert read_remote_record(client, _offered(client, index)) == expected(wheel)


@pytest.mark.parametrize("trouble", ["no ranges", "no suffix ranges"])
def test_a_server_without_ranges_is_not_read(client: Client, index: IndexServer, large: Path, trouble: str) -> None:
    file = _offered(client, index)
    index.troubles.add(trouble)
    assert read_remote_record(client, file) is None
    with pytest.raises(NoRanges):
        open_remote_file(client, file.url)


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("swapped", "changed during the download"),
        ("truncated range", "sent fewer bytes than announced"),
        ("breaks off", "ended after "),
        ("500", "answered 500 (Internal Server Error)"),
        ("redirect loop", "redirects more than 5 times"),
        ("slow loris", "is too slow: it "),
    ],
)
def test_a_server_in_trouble(client: Client, index: IndexServer, large: Path, trouble: str, message: str) -> None:
    file = _offered(client, index)
    index.troubles.add(trouble)
    with pytest.raises(OutsideError) as caught:
        read_remote_record(client, file)
    assert caught.value.message.startswith(f"{file.url} {message}")
    assert caught.value.exit_code == 5


def test_a_swapped_file_is_noticed_where_conditions_are_ignored(
    client: Client, index: IndexServer, large: Path
) -> None:
    file = _offered(client, index)
    remote = open_remote_file(client, file.url)
    index.troubles |= {"swapped", "ignores conditions"}
    with pytest.raises(OutsideError) as caught:
        remote.read(10)
    assert caught.value.message == f"{file.url} changed during the download"


def test_another_part_than_the_one_asked_for(client: Client, index: IndexServer, large: Path) -> None:
    file = _offered(client, index)
    remote = open_remote_file(client, file.url)
    index.troubles.add("other range")
    remote.seek(BLOCK)
    with pytest.raises(OutsideError) as caught:
        remote.read(10)
    assert caught.value.message == f"{file.url} sent the wrong part of the file"


def test_a_server_that_takes_the_last_bytes_for_the_first(client: Client, index: IndexServer, large: Path) -> None:
    file = _offered(client, index)
    index.troubles.add("other range")
    assert read_remote_record(client, file) is None


def test_a_wheel_of_another_size_than_its_index_says(client: Client, index: IndexServer) -> None:
    wheel = make_wheel(index.folder)
    index.troubles.add("wrong size")
    size = wheel.stat().st_size
    with pytest.raises(OutsideError) as caught:
        read_remote_record(client, _offered(client, index))
    assert not isinstance(caught.value, BadWheel)  # which would leave the package without a proof, and go on
    assert caught.value.message == f"{wheel.name} has {size} bytes, but its index says {size + 1}"


def test_a_wheel_on_disk(client: Client, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "a folder")
    file = list_index_files(client, Index(wheel.parent.as_uri(), "links"), "thing")[0]
    assert read_remote_record(client, file) == expected(wheel)
    assert read_wheel_record(wheel) == record_in(wheel)
    with wheel.open("rb") as stream:
        assert read_wheel_record(stream) == record_in(wheel)


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


def test_a_table_of_contents_that_is_too_large(
    client: Client, index: IndexServer, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUDGET", 4 * BLOCK)
    with pytest.raises(BadWheel) as caught:
        read_remote_record(client, _offered(client, index))
    assert caught.value.message.endswith("is not a valid wheel: its table of contents is larger than 262144 bytes")


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
    try:
        record = read_wheel_record(io.BytesIO(data))
    except BadWheel:
        return
    assert record == b"a.py,,\n"


def _scribbled(data: bytes, edits: list[tuple[int, int]]) -> bytes:
    changed = bytearray(data)
    for at, value in edits:
        changed[at] = value
    return bytes(changed)


@given(st.integers(0, 400), st.lists(st.tuples(st.integers(0, 450), st.integers(0, 300)), max_size=20))
def test_a_block_file_reads_as_a_file(size: int, reads: list[tuple[int, int]]) -> None:
    data = _noise(size * 1000)
    fetched: list[tuple[int, int]] = []

    def fetch(start: int, end: int) -> bytes:
        fetched.append((start, end))
        return data[start:end]

    file = BlockFile(fetch, len(data), "x")
    for at, count in reads:
        file.seek(at * 1000)
        assert file.read(count * 1000) == data[at * 1000 : (at + count) * 1000]
        assert file.tell() == at * 1000 + len(data[at * 1000 : (at + count) * 1000])
    assert all(start % BLOCK == 0 and start < end <= len(data) for start, end in fetched)
