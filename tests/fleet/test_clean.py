"""What `envlock fleet clean` removes, and what it leaves."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from envlock.fleet import fleet_assertion
from envlock.fleet.fleet_assertion import gather_report
from envlock.fleet.folder import Folder
from envlock.fleet.ranks import Rank
from envlock.runtime.errors import UsageError
from envlock.workflows import fleet_clean
from envlock.workflows.fleet_clean import DAY, clean_fleet
from tests.conftest import Command
from tests.fleet.ranks import facts, rank


def meeting(folder: Path, monkeypatch: pytest.MonkeyPatch, job: str = "7.0", size: int = 12) -> None:
    """Let ranks meet, each with another environment, and leave what they write; one of them states for later, too."""
    names = {f"package-{each}": {"version": "1.0"} for each in range(30)}
    newer = {name: {"version": "2.0"} for name in names}
    made = [
        rank(each, size, facts={**facts(A=str(each)), "packages": newer if each else names}, job=job)
        for each in range(size)
    ]
    monkeypatch.setattr(fleet_assertion, "inspect_rank", lambda rank, *_: (None, made[rank.rank]))

    def come(number: int) -> None:
        gather_report(Rank(number, size, f"n{number}", job), Folder(str(folder), job), None, None, 30.0)

    threads = [threading.Thread(target=come, args=(number,)) for number in range(size)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    Folder(str(folder), job).keep(*made[1])


def age(folder: Path, days: float) -> None:
    """Let every file in a folder be that old."""
    then = time.time() - days * DAY
    for file in folder.rglob("*"):
        os.utime(file, (then, then), follow_symlinks=False)


def test_all_that_a_job_wrote_is_removed_once_it_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meeting(tmp_path, monkeypatch)
    (attempt,) = [each for each in (tmp_path / "7.0").iterdir() if each.is_dir()]
    (attempt / "5.json.123.0123abcd").write_bytes(b'{"statement"')  # of a process that was killed
    files = [each for each in (tmp_path / "7.0").rglob("*") if each.is_file()]
    stems = {each.name.partition(".")[0].partition("-")[0] for each in files if each.parent.name == "7.0"}
    assert stems - {attempt.name} == {"call", "facts", "printed", "rank", "report"}
    assert {each.name.partition(".")[0] for each in attempt.iterdir()} == {"of", *map(str, range(12))}
    assert clean_fleet(str(tmp_path)).describe() == ["removed 0 files, 0.0 kB of 0 jobs"]
    age(tmp_path, 8)
    size = sum(each.stat().st_size for each in files)
    amount = f"{len(files)} files, {size / 1000:,.1f} kB"
    tried = clean_fleet(str(tmp_path), dry_run=True)
    assert tried.describe(dry_run=True) == [f"  job 7.0: {amount}", f"would remove {amount} of 1 job"]
    assert all(each.exists() for each in files)
    assert clean_fleet(str(tmp_path)).describe() == [f"  job 7.0: {amount}", f"removed {amount} of 1 job"]
    assert os.listdir(tmp_path) == []


def test_a_job_is_as_old_as_its_newest_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meeting(tmp_path, monkeypatch, size=2)
    age(tmp_path, 8)
    os.utime(tmp_path / "7.0" / "call.json")
    assert clean_fleet(str(tmp_path)).jobs == {}
    assert list(clean_fleet(str(tmp_path), 0.0).jobs) == ["7.0"]


def test_nothing_else_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of others, files of ours by name only, links, and folders without a file of ours."""
    meeting(tmp_path / "jobs", monkeypatch, size=2)
    outside = tmp_path / "outside"
    meeting(outside, monkeypatch, "8.0", size=2)
    job = tmp_path / "jobs" / "7.0"
    others = {
        job / "rank-9.json": b'{"rank": 9}',
        job / "notes.txt": b"x",
        job / ("0" * 16) / "weights.json": b"{}",
        tmp_path / "jobs" / "results" / "call.json": b"[]",
        tmp_path / "jobs" / "file": b"",
    }
    for file, data in others.items():
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
    (tmp_path / "jobs" / "8.0").symlink_to(outside / "8.0")
    (job / ("1" * 16)).symlink_to(outside / "8.0")
    (job / "call.json").unlink()
    (job / "call.json").symlink_to(outside / "8.0" / "call.json")
    os.mkfifo(job / "absent.0.json")
    age(tmp_path, 8)
    before = sorted(outside.rglob("*"))
    done = clean_fleet(str(tmp_path / "jobs"))
    assert (list(done.jobs), done.kept) == (["7.0"], {"7.0": "6 files of another kind"})
    assert [file for file, data in others.items() if file.read_bytes() != data] == []
    assert sorted(outside.rglob("*")) == before
    assert (job / "call.json").is_symlink()
    assert sorted(each.name for each in job.iterdir()) == [
        "0" * 16,
        "1" * 16,
        "absent.0.json",
        "call.json",
        "notes.txt",
        "rank-9.json",
    ]


def test_the_work_of_a_call_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for job in ("7.0", "8.0"):
        meeting(tmp_path, monkeypatch, job, size=2)
    age(tmp_path, 8)
    monkeypatch.setattr(fleet_clean, "MOST_FILES", 8)
    done = clean_fleet(str(tmp_path))
    assert (list(done.jobs), done.describe()[-1]) == (["7.0"], "stopped after 8 files: run it again")
    assert list(clean_fleet(str(tmp_path)).jobs) == ["8.0"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        clean_fleet(str(tmp_path / "no"))
    assert str(raised.value) == (
        f"cannot read {tmp_path}/no: No such file or directory\n"
        "hint: name the folder that jobs share: ENVLOCK_FLEET_DIR"
    )


def test_files_that_cannot_be_removed_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meeting(tmp_path, monkeypatch, size=2)
    age(tmp_path, 8)

    def refuse(name: str, *, dir_fd: int) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "unlink", refuse)
    done = clean_fleet(str(tmp_path))
    number = len([each for each in tmp_path.rglob("*") if each.is_file()])
    assert (done.failed, done.kept) == (number, {"7.0": f"{number} files cannot be removed"})


def test_the_command(envlock: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = envlock.folder / ".envlock-fleet"
    meeting(folder, monkeypatch, size=2)
    assert envlock("fleet", "clean").stderr == "removed 0 files, 0.0 kB of 0 jobs\n"
    done = envlock("fleet", "clean", "--older-than", "0", "--dry-run")
    assert (done.returncode, done.stderr.splitlines()[0].partition(":")[0]) == (0, "  job 7.0")
    assert json.loads((folder / "7.0" / "call.json").read_bytes())["node"] == "n1"
    assert envlock("fleet", "clean", "--older-than", "0", "-q").stderr == ""
    assert os.listdir(folder) == []
