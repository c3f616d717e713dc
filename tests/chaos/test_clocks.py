"""Clocks that are set back, forward or to nothing: what is written is whole, and no draft in use is removed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envlock.lock.temporary import open_draft_folder
from envlock.lock.writer import write_atomically
from envlock.runtime import drafts
from envlock.runtime.drafts import open_draft_file
from tests.conftest import absent
from tests.locks import document, encode

YEARS = 365 * 86400
CLOCKS = {"back": -10 * YEARS, "forward": 10 * YEARS, "a day": 86400, "a minute": -60}
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")


@pytest.mark.parametrize("shift", CLOCKS.values(), ids=CLOCKS)
def test_a_clock_that_is_set_within_a_write(shift: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    path = tmp_path / "x.lock"
    with open_draft_folder(tmp_path) as going, open_draft_file(tmp_path) as (_, held):
        monkeypatch.setattr(time, "time", lambda: real() + shift)
        write_atomically(path, b"new")
        assert sorted(each.name for each in tmp_path.iterdir()) == sorted([going.name, Path(held).name, "x.lock"])
    assert path.read_bytes() == b"new"


def test_what_a_killed_process_left_is_removed_once_the_clock_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time may lie years ahead: it stays until then, or until somebody sets the clock."""
    real, left = time.time, tmp_path / ".envlock.abcdefgh.tmp"
    left.write_bytes(b"half")
    monkeypatch.setattr(time, "time", lambda: real() - YEARS)
    write_atomically(tmp_path / "x.lock", b"new")
    assert left.exists()
    monkeypatch.setattr(time, "time", lambda: real() + 120)
    write_atomically(tmp_path / "x.lock", b"new")
    assert not left.exists()


def test_without_a_defence_the_attack_succeeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing holds a draft: a clock that is set forward lets another process remove what is being written."""
    real = time.time
    monkeypatch.setattr(drafts, "hold", lambda handle: None)
    with open_draft_file(tmp_path) as (_, held):
        monkeypatch.setattr(time, "time", lambda: real() + 86400)
        write_atomically(tmp_path / "x.lock", b"new")
        assert not Path(held).exists()


@pytest.mark.chaos
@pytest.mark.processes
@pytest.mark.parametrize("clock", ["-10y", "+10y", "@1970-01-01 00:00:01", "@2038-01-19 03:14:08", "+0 x0.01"])
def test_commands_at_another_time_say_and_write_the_same(clock: str, tmp_path: Path) -> None:
    if not FAKETIME.exists():
        absent("no libfaketime: `apt-get install libfaketime`")
    (tmp_path / "x.lock").write_bytes(encode(document()))
    preload = {"LD_PRELOAD": str(FAKETIME), "DONT_FAKE_MONOTONIC": "1"}  # a lock records the first
    faked, now = {**preload, "FAKETIME": clock}, {**preload, "FAKETIME": "+0"}

    def run(environ: dict[str, str], *words: str) -> tuple[int, str, str]:
        plain = {"PATH": os.defpath, "HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
        plain["ENVLOCK_WITHOUT_TENSORFLOW"] = "1"
        argv = [sys.executable, "-m", "envlock", *words]
        done = subprocess.run(argv, cwd=tmp_path, env={**plain, **environ}, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert run(faked, "show", "x.lock") == run(now, "show", "x.lock")
    assert run(faked, "verify", "-q", "x.lock")[0] == run(now, "verify", "-q", "x.lock")[0] == 1
    assert run(faked, "capture", "-q", "-o", "a.lock")[0] == 0
    assert run(now, "capture", "-q", "-o", "b.lock")[0] == 0
    assert (tmp_path / "a.lock").read_bytes() == (tmp_path / "b.lock").read_bytes()
