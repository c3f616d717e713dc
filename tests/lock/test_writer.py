"""Writing: whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import envlock
from envlock.lock.temporary import open_draft_folder
from envlock.lock.writer import restore_on_failure, write_atomically
from envlock.runtime.drafts import open_draft_file
from envlock.runtime.errors import WriteError

ROOT = str(Path(envlock.__file__).parents[1])
UNTOUCHED = "the old file, if there was one, is untouched"


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_new_file_has_the_mode_the_umask_leaves(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        write_atomically(tmp_path / "x.lock", b"new")
    finally:
        os.umask(mask)
    assert ((tmp_path / "x.lock").read_bytes(), (tmp_path / "x.lock").stat().st_mode & 0o777) == (b"new", 0o640)


def test_reading_the_umask_leaves_it(tmp_path: Path) -> None:
    mask = os.umask(0o077)
    try:
        write_atomically(tmp_path / "x.lock", b"new")
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(mask)


def test_an_old_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    path.write_bytes(b"old")
    path.chmod(0o604)
    write_atomically(path, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777, names(tmp_path)) == (b"new", 0o604, ["x.lock"])


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_followed_and_stays(exists: bool, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real = tmp_path / "real" / "y.lock"
    if exists:
        real.write_bytes(b"old")
    link = tmp_path / "x.lock"
    link.symlink_to("real/y.lock")
    write_atomically(link, b"new")
    assert (str(link.readlink()), real.read_bytes(), names(real.parent)) == ("real/y.lock", b"new", ["y.lock"])


def test_a_circle_of_links_is_refused_and_stays(tmp_path: Path) -> None:
    first, second = tmp_path / "l1", tmp_path / "l2"
    first.symlink_to("l2")
    second.symlink_to("l1")
    with pytest.raises(WriteError) as caught:
        write_atomically(first, b"new")
    reason = f"cannot write lockfile {first}: Too many levels of symbolic links"
    assert str(caught.value) == f"{reason}\nhint: remove one of the symbolic links: they form a loop"
    assert (str(first.readlink()), str(second.readlink()), names(tmp_path)) == ("l2", "l1", ["l1", "l2"])


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    name = "x" * 250 + ".lock"
    write_atomically(tmp_path / name, b"new")
    assert ((tmp_path / name).read_bytes(), names(tmp_path)) == (b"new", [name])


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("no/such/x.lock", "No such file or directory", "create the folder first: FOLDER/no/such"),
        ("file/x.lock", "Not a directory", UNTOUCHED),
        ("folder", "it is not a regular file", "name a file"),
        ("fifo", "it is not a regular file", "name a file"),
        ("x" * 300, "File name too long", UNTOUCHED),
    ],
)
def test_what_cannot_be_written_is_said_and_leaves_nothing(name: str, message: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "fifo")
    path = tmp_path / name
    with pytest.raises(WriteError) as caught:
        write_atomically(path, b"new")
    expected = (f"cannot write lockfile {path}: {message}", hint.replace("FOLDER", str(tmp_path)))
    assert ((caught.value.message, caught.value.hint), caught.value.exit_code) == (expected, 6)
    assert names(tmp_path) == ["fifo", "file", "folder"]


def test_a_name_that_is_no_path_is_said(tmp_path: Path) -> None:
    with pytest.raises(WriteError) as caught:
        write_atomically(Path("a\0b"), b"new")
    assert caught.value.message == "cannot write lockfile 'a\\x00b': not a path"


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # to root, no mode forbids anything
    try:
        with pytest.raises(WriteError) as caught:
            write_atomically(tmp_path / "x.lock", b"new")
    finally:
        os.seteuid(user)
        tmp_path.chmod(0o755)
    assert caught.value.message == f"cannot write lockfile {tmp_path / 'x.lock'}: Permission denied"


@pytest.mark.parametrize("limit", [0, 1, 4096, 99_999])
def test_a_write_that_is_cut_off_leaves_the_old_file(limit: int, tmp_path: Path) -> None:
    """The limit on file size stands for a disk that is full at some byte; Python ignores its signal."""
    path = tmp_path / "x.lock"
    path.write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(WriteError) as caught:
            write_atomically(path, b"n" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(caught.value) == f"cannot write lockfile {path}: File too large\nhint: {UNTOUCHED}"
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["x.lock"])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a mounted file system of 64 KiB; only root can make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, check=False) if os.geteuid() == 0 else None
    if done is None or done.returncode != 0:
        pytest.skip("a small file system cannot be mounted here; the limit on file size stands for it")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.processes
def test_a_full_disk_leaves_the_old_file(small_disk: Path) -> None:
    path = small_disk / "x.lock"
    path.write_bytes(b"old")
    with pytest.raises(WriteError) as caught:
        write_atomically(path, b"n" * 100_000)
    assert str(caught.value) == f"cannot write lockfile {path}: No space left on device\nhint: {UNTOUCHED}"
    assert (path.read_bytes(), names(small_disk)) == (b"old", ["x.lock"])


LOOP = """
import sys
from pathlib import Path
from envlock.lock.writer import write_atomically
path = Path(sys.argv[1])
sys.stdout.write("going\\n")
sys.stdout.flush()
number = 0
while True:
    number += 1
    write_atomically(path, (b"%d\\n" % (number % 10)) * 50_000)
"""


@pytest.mark.slow
@pytest.mark.processes
def test_killed_at_any_moment_the_file_is_whole(tmp_path: Path) -> None:
    path, draw = tmp_path / "x.lock", random.Random(3)
    path.write_bytes(b"0\n" * 50_000)
    seen = set()
    for _ in range(20):
        writer = subprocess.Popen(
            [sys.executable, "-c", LOOP, str(path)], stdout=subprocess.PIPE, env={"PYTHONPATH": ROOT}
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"going\n"
        time.sleep(draw.random() * 0.02)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        data = path.read_bytes()
        assert data == data[:2] * 50_000
        seen.add(data[:1])
    assert len(seen) > 1, "no writer ever came to write"


def aged(path: Path) -> Path:
    os.utime(path, (time.time() - 120,) * 2)
    return path


def test_what_a_killed_process_left_is_removed_by_the_next_and_nothing_else(tmp_path: Path) -> None:
    left, folder = tmp_path / ".envlock.abcdefgh.tmp", tmp_path / ".envlock.ijklmnop.tmp"
    left.write_bytes(b"half")
    folder.mkdir()
    (folder / "wheel").write_bytes(b"big")
    kept = [tmp_path / ".envlock.toml", tmp_path / ".envlock.young123.tmp", tmp_path / "x.tmp", tmp_path / "aim"]
    for each in kept:
        each.write_bytes(b"mine")
    link = tmp_path / ".envlock.linklink.tmp"
    link.symlink_to("aim")
    for each in (left, folder, kept[0], kept[2]):
        aged(each)
    with open_draft_folder(tmp_path) as going, open_draft_file(tmp_path) as (_, name):
        written = Path(name)
        aged(going), aged(written)
        write_atomically(tmp_path / "x.lock", b"new")
        expected = [*(each.name for each in kept), "x.lock", going.name, written.name, link.name]
        assert names(tmp_path) == sorted(expected)
    assert names(tmp_path) == sorted([*(each.name for each in kept), "x.lock", link.name])


def test_what_a_killed_process_left_in_the_temporary_folder_is_removed_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / ".envlock.abcdefgh.tmp"
    left.mkdir()
    (left / "payload.tar").write_bytes(b"gigabytes")
    aged(left)
    with open_draft_folder(None) as folder:
        assert names(tmp_path) == [folder.name]
    assert names(tmp_path) == []


def test_a_named_draft_has_one_path_for_one_process_at_a_time(tmp_path: Path) -> None:
    with open_draft_folder(tmp_path, "mine") as first, open_draft_folder(tmp_path, "mine") as second:
        assert (first.name, first.stat().st_mode & 0o777) == (".envlock.mine.tmp", 0o700)
        assert second not in (first, tmp_path)
    assert names(tmp_path) == []
    with open_draft_folder(tmp_path, "mine") as third:
        assert third == first


def test_a_draft_of_another_user_stays(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a file of another user")
    left = tmp_path / ".envlock.abcdefgh.tmp"
    left.write_bytes(b"half")
    os.chown(aged(left), 65534, -1)
    write_atomically(tmp_path / "x.lock", b"new")
    assert names(tmp_path) == [left.name, "x.lock"]


@pytest.mark.parametrize("before", [b"old\n", None])
def test_of_two_files_both_are_written_or_none(before: bytes | None, tmp_path: Path) -> None:
    """What a full disk leaves when only the second one fails; the draft of the old content needs no room then."""
    first = tmp_path / "pyproject.toml"
    if before is not None:
        first.write_bytes(before)
        first.chmod(0o640)

    def write_both() -> None:
        with restore_on_failure(first):
            write_atomically(first, b"new\n")
            raise WriteError("full", hint="make room")

    with pytest.raises(WriteError, match="full"):
        write_both()
    assert [file.read_bytes() for file in tmp_path.iterdir()] == ([before] if before is not None else [])
    with restore_on_failure(first):
        write_atomically(first, b"new\n")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"new\n"]
    if before is not None:
        assert first.stat().st_mode & 0o777 == 0o640
