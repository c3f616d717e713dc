"""A folder of LD_LIBRARY_PATH without a library is no difference between ranks; each other one is."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.fleet.search_folders import NAME, drop_folders_without_libraries
from envlock.runtime.collectors import Snapshot
from envlock.runtime.collectors.environment_variables import hash_value
from tests.fleet.ranks import facts


def stated(value: str | None, recorded: str | None = None, locked: tuple[object, ...] = ()) -> object:
    """Return what a rank with this value states."""
    if recorded is None and value is not None:
        recorded = hash_value(value)
    live = Snapshot(facts(LD_LIBRARY_PATH=recorded), {})
    found, environ = drop_folders_without_libraries(live, {NAME: value or ""}, locked)
    if found.facts["environ"][NAME] not in (None, recorded):
        assert found.facts["environ"][NAME] == hash_value(environ[NAME])
    return found.facts["environ"][NAME]


@pytest.fixture
def scratch(tmp_path: Path) -> str:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "data.bin").touch()
    return str(tmp_path / "scratch")


def test_a_folder_without_libraries_is_left_out(tmp_path: Path, scratch: str) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libcudnn.so.9").touch()
    used = f"{tmp_path}/lib"
    assert stated(scratch) is None
    assert stated(f"{tmp_path}/none") is None
    assert stated(f"{scratch}/data.bin") is None
    assert stated(f"{scratch}:{used}:{tmp_path}/none") == hash_value(used)
    assert stated(f"{scratch}:{used}:/added", hash_value(f"{scratch}:{used}")) == hash_value(used)
    assert stated(used) == hash_value(used)


@pytest.mark.parametrize("value", ["", ":", "lib", "{0}/none;/opt/lib", "{0}/$LIB", "{0}/wide"])
def test_what_the_loader_can_find_something_in_stays(tmp_path: Path, value: str) -> None:
    """Also a folder with a folder, such as `glibc-hwcaps`, and what the loader reads in its own way."""
    (tmp_path / "wide" / "glibc-hwcaps").mkdir(parents=True)
    text = value.format(tmp_path)
    assert stated(text) == hash_value(text)


def test_a_folder_that_cannot_be_read_stays(monkeypatch: pytest.MonkeyPatch, scratch: str) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(path)

    monkeypatch.setattr("os.scandir", refuse)
    assert stated(scratch) == hash_value(scratch)


def test_what_is_locked_or_not_recorded_stays(scratch: str) -> None:
    assert stated(scratch, locked=(None, hash_value(scratch))) == hash_value(scratch)
    assert stated(scratch, hash_value("/other")) == hash_value("/other")
    assert stated(None) is None
