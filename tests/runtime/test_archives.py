"""Damaged archives: whatever reads one says so, and no reader has a list of exceptions of its own."""

from __future__ import annotations

import ast
import hashlib
import io
import sys
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.guest.image import unpack
from envlock.image import standalone
from envlock.packages.wheel_files import read_wheel_record
from envlock.runtime.archives import DamagedArchiveError, open_tar, open_zip, reading
from envlock.runtime.errors import EnvlockError, LockfileError
from envlock.runtime.shadows import _list_zip
from envlock.runtime.stamp import read_stamp, stamp
from envlock.runtime.startup import _read_zip

ROOT = Path(__file__).resolve().parents[2]
METHODS = {
    "stored": zipfile.ZIP_STORED,
    "deflate": zipfile.ZIP_DEFLATED,
    "bz2": zipfile.ZIP_BZIP2,
    "lzma": zipfile.ZIP_LZMA,
}
TEXT = b"Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n" * 40
MEMBERS = {
    "config.json": b"{}",
    "metadata.json": b"{}",
    "envlock.json": TEXT,
    "sitecustomize.py": TEXT,
    "thing-1.0.dist-info/METADATA": TEXT,
    "thing-1.0.dist-info/WHEEL": b"Tag: py3-none-any\n",
    "thing-1.0.dist-info/RECORD": TEXT,
}
"""One archive that every reader of zip files takes for its own."""


def make_zip(path: Path, method: int) -> bytes:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in MEMBERS.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return path.read_bytes()


def install(path: Path) -> int:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (path.parent / "requirements.txt").write_text(f"thing==1.0 --hash=sha256:{digest}\n")
    (path.parent / "a.whl").write_bytes(path.read_bytes())
    root = path.parent / "root"
    return unpack.main([str(root), str(path.parent / "requirements.txt"), str(path.parent)])


def read(reader: Callable[[Path], object], path: Path) -> str:
    """Return why an archive is refused; empty if it is not. Whatever else is raised is a fault of envlock."""
    try:
        reader(path)
    except EnvlockError as error:
        return error.message
    return ""


ZIP_READERS: dict[str, Callable[[Path], object]] = {
    "a stamp": read_stamp,
    "a record": read_wheel_record,
    "a startup file": lambda path: _read_zip(str(path), "sitecustomize"),
    "the import path": lambda path: _list_zip(str(path)),
    "a build without pip": install,
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("reader", ZIP_READERS)
def test_a_zip_file_with_any_part_damaged_is_refused_or_read(reader: str, method: str, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    whole = make_zip(path, METHODS[method])
    for place in range(0, len(whole), 17):
        for length in (1, 40):
            end = min(place + length, len(whole))
            path.write_bytes(whole[:place] + bytes(byte ^ 0xFF for byte in whole[place:end]) + whole[end:])
            assert "None" not in read(ZIP_READERS[reader], path)


def make_tar(path: Path, mode: str) -> bytes:
    packed: Any = f"w:{mode}"
    with tarfile.open(path, packed) as archive:
        for name in ("manifest.json", "python/bin/python3"):
            info = tarfile.TarInfo(name)
            info.size = len(TEXT)
            archive.addfile(info, io.BytesIO(TEXT))
    return path.read_bytes()


def write_python(path: Path) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    archive: Any = SimpleNamespace(file=path.name, sha256=digest)
    standalone.write(archive, path.parent, 0, io.BytesIO())


TAR_READERS: dict[str, Callable[[Path], object]] = {
    "a build of Python": write_python,
}


@pytest.mark.parametrize("mode", ["", "gz", "bz2", "xz"])
@pytest.mark.parametrize("reader", TAR_READERS)
def test_a_tar_file_with_any_part_damaged_is_refused_or_read(reader: str, mode: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    whole = make_tar(path, mode)
    for place in range(0, len(whole), max(1, len(whole) // 100)):
        for damaged in (whole[:place], whole[:place] + b"\xff" * 9 + whole[place + 9 :]):
            path.write_bytes(damaged)
            assert "None" not in read(TAR_READERS[reader], path)


def test_damage_is_one_error_and_a_failing_disk_is_another() -> None:
    for raised in (
        OSError("Invalid data stream"),
        OSError(22, "Invalid argument"),
        EOFError(),
        RuntimeError("encrypted"),
    ):
        with pytest.raises(DamagedArchiveError), reading():
            raise raised
    for passes in (OSError(5, "Input/output error"), LockfileError("as it is"), TypeError("a fault of ours")):
        with pytest.raises(type(passes)) as caught, reading():
            raise passes
        assert caught.value is passes


def make_crowded(path: Path, number: int, *, lie: bool) -> None:
    """Write an archive with a table of contents of so many members, which all are the first one."""
    make_zip(path, zipfile.ZIP_STORED)
    data = path.read_bytes()
    end = data.rindex(b"PK\x05\x06")
    start = data.index(b"PK\x01\x02")
    row = data[start : data.index(b"PK\x01\x02", start + 1)]
    table = b"".join(row[:-6] + b"%06x" % each for each in range(number))
    size = len(table).to_bytes(4, "little")
    claimed = (1 if lie else min(number, 0xFFFE)).to_bytes(2, "little")
    tail = data[end : end + 8] + claimed * 2 + size + data[end + 16 :]
    path.write_bytes(data[:start] + table + tail)


@pytest.mark.parametrize("lie", [False, True])
@pytest.mark.parametrize("read", [read_stamp, lambda path: stamp(path, path.parent / "made.lock")])
def test_a_table_of_contents_of_a_million_members_is_refused_unread(
    read: Callable[[Path], object], lie: bool, tmp_path: Path
) -> None:
    from tests.locks import document, encode

    (tmp_path / "made.lock").write_bytes(encode(document()))
    model = tmp_path / "model.keras"
    make_crowded(model, 1_000_000, lie=lie)
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(LockfileError, match=r"is damaged: its table of contents is larger than 5,120,000 bytes"):
        read(model)
    spent, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (spent < 1, peak < 16 * 2**20) == (True, True)


def test_a_name_that_is_there_twice_is_found_in_one_pass(tmp_path: Path) -> None:
    model = tmp_path / "model.keras"
    with zipfile.ZipFile(model, "w") as archive:
        for number in range(9_900):
            archive.writestr(f"{number:05}", b"")
    data = model.read_bytes()
    # The last name becomes that of the one before it, in both places.
    model.write_bytes(data.replace(b"09899", b"09898"))
    start = time.process_time()
    with pytest.raises(LockfileError, match="has two members with the name 09898"):
        read_stamp(model)
    assert time.process_time() - start < 1


OWNER = "envlock/runtime/archives.py"
ELSEWHERE = {
    "envlock/guest/image/install.py": "it runs in the image, on wheels that were just installed by their hashes",
    "envlock/guest/image/unpack.py": "it runs in a Python of its own, and catches as much",
}


def opens_for_reading(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    modes = [ast.literal_eval(each) for each in (*node.args, *(word.value for word in node.keywords)) if is_text(each)]
    writes = any(mode[:1] in ("w", "a", "x") for mode in modes)
    return called.rpartition(".")[2] in ("ZipFile", "TarFile") or (
        called in ("tarfile.open", "open_archive") and not writes
    )


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_archives_are_read_through_one_door() -> None:
    found = set()
    for file in sorted((ROOT / "envlock").rglob("*.py")):
        name = file.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(file.read_bytes())):
            if opens_for_reading(node) and name != OWNER and name not in ELSEWHERE:
                found.add(f"{name}: {ast.unparse(node)}")
    assert found <= {"envlock/runtime/stamp.py: ZipFile(stream, 'a')"}
    assert not any("zipfile.BadZipFile" in text or "tarfile.TarError" in text for text in read_others())


def read_others() -> list[str]:
    files = sorted((ROOT / "envlock").rglob("*.py"))
    return [
        file.read_text(encoding="utf-8")
        for file in files
        if file.relative_to(ROOT).as_posix() not in (OWNER, *ELSEWHERE)
    ]


def test_both_doors_open_what_is_whole(tmp_path: Path) -> None:
    make_zip(tmp_path / "a.zip", zipfile.ZIP_LZMA)
    with open_zip(str(tmp_path / "a.zip")) as archive:
        assert archive.read("envlock.json") == TEXT
    make_tar(tmp_path / "a.tar", "xz")
    with open_tar(str(tmp_path / "a.tar")) as old:
        assert old.getnames() == ["manifest.json", "python/bin/python3"]
    if sys.version_info < (3, 14):
        with pytest.raises(DamagedArchiveError, match="File is not a zip file"), open_zip(str(tmp_path / "a.tar")):
            pass
