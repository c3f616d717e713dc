"""The folder of wheels: whole, checked, nothing else in it, whatever happens meanwhile."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from envlock.lock.folder_lock import hold_folder
from envlock.lock.models import WheelFile
from envlock.packages import wheel_cache, wheelhouse
from envlock.packages.identity import Proven
from envlock.packages.index import Offer, Wanted
from envlock.packages.wheelhouse import Had, fetch_wheels, find_unowned, measure_wheels
from envlock.runtime.errors import OutsideError, UsageError
from tests.packages.identified import wheel

CONTENTS = {name: os.urandom(1) * 3000 + name.encode() for name in ("aa", "bb", "cc")}


def _package(name: str, **changes: Any) -> Proven:
    file = wheel(f"{name}-1.0-py3-none-any.whl", CONTENTS[name], **changes)
    return Proven(name, "1.0", WheelFile.model_validate(file), None)


PACKAGES = [_package(name) for name in CONTENTS]


class Web:
    """Where the wheels are: counts who asks, and fails for the names that it is told."""

    def __init__(self, cache: Path, *, broken: tuple[str, ...] = (), seconds: float = 0) -> None:
        self.asked: list[str] = []
        self._cache = cache
        self._broken = broken
        self._seconds = seconds

    def __call__(self, wanted: Sequence[Wanted]) -> dict[str, Offer | OutsideError]:
        self.asked += [each.name for each in wanted]
        time.sleep(self._seconds)
        return {each.name: self._fetch(each) for each in wanted}

    def _fetch(self, wanted: Wanted) -> Offer | OutsideError:
        if wanted.name in self._broken:
            return OutsideError("it answered 503")
        content = CONTENTS[wanted.name]
        sha256 = hashlib.sha256(content).hexdigest()
        path = wheel_cache.prepare(self._cache, sha256) / f"{wanted.name}-1.0-py3-none-any.whl"
        path.write_bytes(content)
        return Offer(path.name, sha256, len(content), path)


def _fill(folder: Path, web: Web, packages: list[Proven] = PACKAGES) -> dict[str, str]:
    """Return name -> how, or the reason why it is missing."""
    return {
        event.package.name: event.how if isinstance(event, Had) else event.reason
        for event in fetch_wheels(packages, folder, web, cache=web._cache)
    }


def _files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


ALL = {f"{name}-1.0-py3-none-any.whl": content for name, content in CONTENTS.items()}


def _every(how: str) -> dict[str, str]:
    return dict.fromkeys(CONTENTS, how)


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    web = Web(tmp_path / "cache")
    folder = tmp_path / "deep" / "house"
    assert _fill(folder, web) == _every("fetched")
    assert _files(folder) == ALL
    assert _fill(folder, web) == _every("there")
    assert _fill(tmp_path / "other", web) == _every("cached")
    assert _files(tmp_path / "other") == ALL
    assert sorted(web.asked) == sorted(CONTENTS)
    # One copy of the bytes.
    name = "aa-1.0-py3-none-any.whl"
    assert (tmp_path / "other" / name).samefile(folder / name)


@pytest.mark.parametrize("place", ["folder", "cache"])
@pytest.mark.parametrize("wrong", [b"", b"x" * 3002, CONTENTS["aa"][:-1]])
def test_another_file_under_its_name_is_replaced(place: str, wrong: bytes, tmp_path: Path) -> None:
    folder, cache = tmp_path / "house", tmp_path / "cache"
    _fill(folder, Web(cache))
    name = "aa-1.0-py3-none-any.whl"
    shutil.rmtree(folder)
    if place == "folder":
        folder.mkdir()
        (folder / name).write_bytes(wrong)
    else:
        (cache / "wheels" / PACKAGES[0].wheel.sha256 / name).write_bytes(wrong)
    assert _fill(folder, Web(cache)) == {**_every("cached"), "aa": "cached" if place == "folder" else "fetched"}
    assert _files(folder) == ALL


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "house", tmp_path / "precious"
    folder.mkdir()
    elsewhere.write_bytes(CONTENTS["aa"])
    (folder / "aa-1.0-py3-none-any.whl").symlink_to(elsewhere)
    (folder / "bb-1.0-py3-none-any.whl").symlink_to(tmp_path / "nowhere")
    assert _fill(folder, Web(tmp_path / "cache")) == _every("fetched")
    assert (elsewhere.is_symlink(), elsewhere.read_bytes()) == (False, CONTENTS["aa"])
    assert [file.is_symlink() for file in folder.iterdir()] == [False] * 3


def test_what_cannot_be_had_is_told_and_the_others_stay(tmp_path: Path) -> None:
    (tmp_path / "house" / "cc-1.0-py3-none-any.whl").mkdir(parents=True)
    told = _fill(tmp_path / "house", Web(tmp_path / "cache", broken=("bb",)))
    assert (told["aa"], told["bb"]) == ("fetched", "it answered 503")
    assert told["cc"].startswith("it cannot be written: ")
    assert list(measure_wheels(tmp_path / "house")) == ["aa-1.0-py3-none-any.whl"]


@pytest.mark.parametrize("cut", [False, True])
def test_where_there_are_no_links_it_is_a_copy(cut: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_link(*args: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", no_link)
    if cut:
        monkeypatch.setattr(wheelhouse, "_copy", lambda source, target: target.write_bytes(b"cut"))
    told = _fill(tmp_path / "house", Web(tmp_path / "cache"))
    wrong = "the copy from the cache differs from the cache"
    assert told == _every(wrong if cut else "fetched")
    assert _files(tmp_path / "house") == ({} if cut else ALL)


def test_what_an_interruption_left_is_swept_up(tmp_path: Path) -> None:
    folder = tmp_path / "house"
    folder.mkdir()
    (folder / ".envlock.0123456789abcdef.tmp").write_bytes(b"left")
    (folder / "README").write_bytes(b"not ours")
    assert _fill(folder, Web(tmp_path / "cache")) == _every("fetched")
    assert _files(folder) == {**ALL, "README": b"not ours"}


def test_a_second_one_waits_for_the_first_and_fetches_nothing(tmp_path: Path) -> None:
    first, second = Web(tmp_path / "cache", seconds=0.3), Web(tmp_path / "cache")
    waits: list[int] = []
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(_fill, tmp_path / "house", first)
        while not first.asked:
            time.sleep(0.01)
        events = fetch_wheels(
            PACKAGES, tmp_path / "house", second, cache=tmp_path / "cache", on_wait=lambda: waits.append(1)
        )
        told = {event.package.name: event.how for event in events if isinstance(event, Had)}
        assert running.result() == _every("fetched")
    assert (told, second.asked, bool(waits)) == (_every("there"), [], True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a file system of 64 KB; where that cannot be made, the test is skipped."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.processes
@pytest.mark.network
def test_a_full_disk_is_told_and_leaves_nothing_broken(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CONTENTS, "aa", CONTENTS["aa"] * 40)
    package = _package("aa")
    told = _fill(small_disk / "house", Web(tmp_path / "cache"), [package])
    assert told == {"aa": "it cannot be written: No space left on device"}
    assert list((small_disk / "house").iterdir()) == []


def test_a_full_disk_where_no_small_one_can_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(source: Path, target: Path) -> None:
        target.write_bytes(b"some")
        raise OSError(errno.ENOSPC, "No space left on device")

    def no_link(*args: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", no_link)
    monkeypatch.setattr(wheelhouse, "_copy", full)
    told = _fill(tmp_path / "house", Web(tmp_path / "cache"))
    assert told == _every("it cannot be written: No space left on device")
    assert _files(tmp_path / "house") == {}


@pytest.mark.parametrize("blocked", ["house", "house/under"])
def test_a_folder_that_cannot_be_made_is_told(blocked: str, tmp_path: Path) -> None:
    (tmp_path / "house").write_bytes(b"a file")
    with pytest.raises(UsageError) as error:
        _fill(tmp_path / blocked, Web(tmp_path / "cache"))
    assert error.value.message.startswith(f"cannot fill folder {tmp_path / blocked}: ")
    assert error.value.hint == "name another one"


def test_strangers_are_wheels_of_nobody(tmp_path: Path) -> None:
    _fill(tmp_path / "house", Web(tmp_path / "cache"))
    for name in ("zz-1.0-py3-none-any.whl", "aa-2.0-py3-none-any.whl", "notes.txt"):
        (tmp_path / "house" / name).write_bytes(b"")
    (tmp_path / "house" / "folder.whl").mkdir()
    assert [file.name for file in find_unowned(tmp_path / "house", PACKAGES)] == [
        "aa-2.0-py3-none-any.whl",
        "zz-1.0-py3-none-any.whl",
    ]


def test_a_lock_that_the_file_system_does_not_know_keeps_nobody_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_locks(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    on_wait: Callable[[], None] = lambda: pytest.fail("it waits for nobody")  # noqa: E731
    with hold_folder(tmp_path, on_wait=on_wait), hold_folder(tmp_path, on_wait=on_wait):
        pass


def test_the_hash_counts_and_not_the_size_alone(tmp_path: Path) -> None:
    package = _package("aa", sha256=hashlib.sha256(b"another").hexdigest())
    (tmp_path / package.wheel.name).write_bytes(CONTENTS["aa"])
    assert not wheelhouse.is_wheel(tmp_path / package.wheel.name, package.wheel)
    assert wheelhouse.is_wheel(tmp_path / package.wheel.name, _package("aa").wheel)


def test_a_wheel_whose_bytes_are_others_leaves_the_cache(tmp_path: Path) -> None:
    wheel = tmp_path / "aa-1.0-py3-none-any.whl"
    wheel.write_bytes(b"other bytes")
    assert wheel_cache.find_intact(wheel, "0" * 64) is None
    assert not wheel.exists()
