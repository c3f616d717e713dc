"""Whose folder ranks meet in: another user could write the verdict."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from envlock.fleet import meeting
from envlock.fleet.folder import Folder
from envlock.fleet.meeting import meet
from envlock.runtime.errors import EnvlockError, UsageError, WriteError
from tests.fleet.bed import run
from tests.fleet.ranks import rank

OTHER = 65534  # nobody
HINT = "name another folder: ENVLOCK_FLEET_DIR"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to another user")


def refusal(path: Path) -> str:
    """Return why the job `7.0` cannot meet in a folder."""
    with pytest.raises(UsageError) as raised:
        Folder(str(path), "7.0")
    return str(raised.value)


@needs_root
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    job = tmp_path / "7.0"
    job.mkdir()
    os.chown(job, OTHER, OTHER)
    assert refusal(tmp_path) == (
        f"{job} belongs to user {OTHER}, and this process to user 0, so its verdict can be forged\n"
        f"hint: remove it, or {HINT}"
    )
    assert os.listdir(job) == []


@needs_root
def test_what_root_has_made_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "7.0").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    Folder(str(tmp_path), "7.0")


@needs_root
def test_a_file_server_can_know_this_user_by_another_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As NFS with `root_squash`: what root makes there belongs to nobody."""
    (tmp_path / "7.0").mkdir()
    os.chown(tmp_path / "7.0", OTHER, OTHER)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    before = os.fstat
    seen = lambda number: os.stat_result((*before(number)[:4], OTHER, *before(number)[5:]))  # noqa: E731
    monkeypatch.setattr(os, "fstat", seen)
    Folder(str(tmp_path), "7.0")
    assert os.listdir(tmp_path / "7.0") == []


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_a_folder_that_every_user_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    job = tmp_path / "7.0"
    job.mkdir()
    job.chmod(mode)
    assert refusal(tmp_path) == (
        f"every user can write to {job}, so its verdict can be forged\n"
        f"hint: remove it and set a umask, mount it with `dir_mode=0775`, or {HINT}"
    )


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "7.0").symlink_to(tmp_path / "elsewhere")
    assert refusal(tmp_path) == (
        f"{tmp_path}/7.0 is not a folder, so others can replace it\nhint: remove it, or {HINT}"
    )


def test_what_envlock_makes_is_accepted_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Folder(str(tmp_path), "7.0").post("a/b", 1)
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "7.0", tmp_path / "7.0" / "a")] == [0o775] * 2
    assert Folder(str(tmp_path), "7.0").peek("a/b") == 1


@needs_root
def test_a_full_disk_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(str(tmp_path), "7.0")
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(WriteError, match="No space left on device"):
        folder.settle("0", {})
    assert [name for _, _, names in os.walk(tmp_path) for name in names] == []


def test_a_folder_that_changes_hands_before_the_verdict_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The review of a forged verdict: an odd rank would have trained on it."""
    board = Folder(str(tmp_path), "7.0")
    board.post("call", {"nonce": "a", "root": "", "node": "n1"})
    answered = board.settle

    def settle(name: str, value: object) -> bool:
        found = answered(name, value)
        board.post("a.decision", {"by": 0, "enforced": True, "report": {}})
        os.chown(board.path, OTHER, OTHER)
        return found

    monkeypatch.setattr(board, "settle", settle)
    monkeypatch.setattr(meeting, "MARGIN", 0.1)
    with pytest.raises(EnvlockError) as raised:
        meet(board, 1, 2, rank(1, 2), lambda *_: {}, 5.0)
    assert raised.value.message == (
        f"{board.path} belongs to user {OTHER}, and this process to user 0, so its verdict can be forged"
    )


@needs_root
@pytest.mark.processes
def test_a_job_does_not_start_in_the_folder_of_another_user(tmp_path: Path) -> None:
    """Line 1 of a script: refused at once, on each rank, and nothing is printed as a verdict."""
    job = tmp_path / ".envlock-fleet" / "j"
    job.mkdir(parents=True)
    os.chown(job, OTHER, OTHER)
    who = {"ENVLOCK_FLEET_RANK": "1", "ENVLOCK_FLEET_SIZE": "2", "ENVLOCK_FLEET_JOB": "j"}
    done = run(
        [sys.executable, "-c", "import envlock; envlock.assert_fleet(timeout=60); print('training')"], tmp_path, who
    )
    assert (done.code, "training" in done.output) == (2, False)
    assert f".envlock-fleet/j belongs to user {OTHER}, and this process to user 0" in done.errors
