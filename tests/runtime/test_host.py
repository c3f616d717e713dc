"""The door to the machine, and running the collectors through it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from envlock.runtime.collectors import COLLECTORS, take_snapshot
from envlock.runtime.facts import Unavailable, iter_leaves
from envlock.runtime.host import Host, read_bytes, read_text
from tests.machines import complete, machine


def test_a_root_moves_every_absolute_path(tmp_path: Path) -> None:
    host = machine(tmp_path, files={"etc/x": "content"})
    assert (host.read("/etc/x"), host.exists("/etc/x"), host.exists("/etc/passwd")) == ("content", True, False)
    assert host.listdir("/etc") == ["os-release", "x"]
    assert Host(f"{tmp_path}/").read("/etc/x") == "content"
    assert Host("/").system("/etc/x") == "/etc/x"
    assert Host("/images/X/").system("/etc/x") == "/images/X/etc/x"


def test_without_arguments_it_is_this_process_on_this_machine() -> None:
    host = Host()
    assert (host.system("/etc/x"), host.environ, host.path) == ("/etc/x", os.environ, sys.path)
    assert (host.has_imported("os"), host.has_imported("no_such_module")) == (True, False)


def test_the_processors_of_this_process_are_counted_where_the_system_says_them(monkeypatch: pytest.MonkeyPatch) -> None:
    masks = {0: {2, 3, 5}}
    monkeypatch.setattr(os, "sched_getaffinity", masks.__getitem__, raising=False)
    assert Host().affinity() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert Host().affinity() is None


def test_what_is_not_there_is_none_and_what_cannot_be_listed_is_empty(tmp_path: Path) -> None:
    host = machine(tmp_path)
    assert (host.read("/no/such"), host.read("/etc/os-release/x"), host.listdir("/no/such")) == (None, None, [])


def test_what_is_there_and_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_bytes(str(tmp_path))


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a" * 300_000 + b"b")
    assert read_bytes(str(tmp_path / "x"), 300_000) == b"a" * 300_000
    assert len(read_bytes("/dev/zero", 1_000_000) or b"") == 1_000_000
    assert Host(str(tmp_path)).read("/x", 3) == "aaa"


def test_undecodable_bytes_survive(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfea")
    text = read_text(str(tmp_path / "x"))
    assert text is not None
    assert text.encode("utf-8", "surrogateescape") == b"\xff\xfea"


def test_a_fifo_in_the_place_of_a_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    assert read_bytes(str(tmp_path / "x")) == b""


def test_every_collector_is_run_and_every_leaf_is_a_fact(tmp_path: Path) -> None:
    found = take_snapshot(complete(tmp_path))
    assert list(found.facts) == list(COLLECTORS)
    assert found.unavailable == {}
    kinds = {type(value) for _, value in iter_leaves(found.facts)}
    assert kinds <= {str, int, float, bool, dict, list, type(None)}  # a dict without entries


def test_a_collector_answers_none_unavailable_or_with_an_error_and_the_others_are_still_asked(tmp_path: Path) -> None:
    def denied(host: Host) -> Any:
        raise PermissionError(13, "Permission denied", "/home/someone/secret")

    table: Any = {
        "a": lambda host: None,
        "b": lambda host: Unavailable("no way", "x"),
        "c": denied,
        "d": lambda host: {"e": Unavailable("not this", "y"), "f": 1},
    }
    found = take_snapshot(machine(tmp_path), table)
    assert found.facts == {"a": None, "d": {"f": 1}}
    assert found.unavailable == {
        "b": {"reason": "no way", "code": "x"},
        "c": {"reason": "cannot read a file: Permission denied", "code": "unreadable"},
        "d.e": {"reason": "not this", "code": "y"},
    }


def test_a_bug_in_a_collector_is_not_hidden(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        take_snapshot(machine(tmp_path), {"a": lambda host: {"b": 1 // 0}})


def test_capturing_leaves_no_trace(tmp_path: Path) -> None:
    host = complete(tmp_path)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    variables = dict(os.environ)
    take_snapshot(host)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == before
    assert dict(os.environ) == variables
