"""What a note explains without a look in full: pure, but for the state of a few files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envlock.runtime.loaded import explained
from envlock.runtime.loaded.explained import SETTLED, Note, get_line, is_settled, parse
from tests.loaded.environment import change

LATER = 1 << 62
"""Nanoseconds: everything has settled."""


def make(site: Path) -> Note:
    return Note([get_line(str(site)) or ""], ["/lib/libm.so.6"], set())


@pytest.mark.parametrize("needed", [[], ["/lib/libm.so.6", "/lib/libc.so.6"]])
def test_a_note_is_read_as_it_was_written(needed: list[str], tmp_path: Path) -> None:
    note = make(tmp_path)
    note.needed = needed
    note.add(["/a/module.py", "1 2 3 4 5 /lib/l so"], LATER)
    read = parse(note.format())
    assert (read.sites, read.needed, read.lines) == (note.sites, note.needed, note.lines)


def test_a_file_is_new_once_its_state_is_another(tmp_path: Path) -> None:
    paths = [tmp_path / "a.so", tmp_path / "b.so"]
    for path in paths:
        path.write_bytes(b"a")
    note = make(tmp_path)
    note.add([get_line(str(path)) or "" for path in paths], LATER)
    assert note.list_new(map(str, paths)) == []
    status = paths[1].stat()
    paths[1].write_bytes(b"b")
    os.utime(paths[1], ns=(status.st_atime_ns, status.st_mtime_ns))
    assert note.list_new(map(str, [*paths, tmp_path / "gone.so"])) == [str(paths[1]), str(tmp_path / "gone.so")]


@pytest.mark.parametrize("text", ["", "\n", "garbage", "1 2 3 4 5 /nowhere/site-packages\n\n/a/module.py"])
def test_a_note_that_does_not_fit_says_nothing(text: str) -> None:
    note = parse(text)
    assert (note.sites, note.needed, note.lines) == ([], [], set())


def test_another_package_makes_the_note_void(tmp_path: Path) -> None:
    note = make(tmp_path)
    note.add(["/a/module.py"], LATER)
    (tmp_path / "new-1.0.dist-info").mkdir()
    assert parse(note.format()).lines == set()


def test_no_name_of_a_file_speaks_for_another(tmp_path: Path) -> None:
    note = make(tmp_path)
    note.add(["/a\n/evil.py", "/a/module.py"], LATER)
    assert parse(note.format()).lines == {"/a/module.py"}


def test_what_has_changed_a_moment_ago_is_not_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.so"
    path.touch()
    line, changed = get_line(str(path)) or "", path.stat().st_ctime_ns
    assert [is_settled(line, changed + SETTLED + more) for more in (0, 1)] == [False, True]
    note = make(tmp_path)
    note.add([line, "/a/module.py"], changed)
    assert note.lines == {"/a/module.py"}


def test_a_note_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explained, "LIMIT", 3)
    note = make(tmp_path)
    note.add(["/1", "/2"], LATER)
    note.add(["/3"], LATER)
    assert note.lines == {"/1", "/2", "/3"}
    note.add(["/4"], LATER)
    assert note.lines == {"/4"}


def test_the_state_has_what_changes_with_the_content(tmp_path: Path) -> None:
    path = tmp_path / "a.so"
    path.write_bytes(b"a")
    before = get_line(str(path))
    assert get_line(str(change(path))) != before
    assert get_line(str(tmp_path / "gone")) is None
