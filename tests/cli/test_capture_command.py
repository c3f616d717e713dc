"""`envlock capture` and `envlock show` as a shell sees them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.machines import distribution


def test_capture_then_show_then_check(envlock: Command) -> None:
    done = envlock("capture")
    assert (done.returncode, done.stdout) == (0, "")
    written = (envlock.folder / "envlock.lock").read_text(encoding="utf-8")
    count = len(json.loads(written)["facts"]["packages"])
    assert done.stderr == f"wrote envlock.lock: {count} packages, policy strict\n"

    shown = envlock("show", "--format", "json", stdin=b"ignored")
    assert (shown.returncode, shown.stdout.rstrip("\n"), shown.stderr) == (0, written.rstrip("\n"), "")

    check = envlock("capture", "--check")
    path = envlock.folder / "envlock.lock"
    assert (check.returncode, check.stdout, check.stderr) == (0, "", f"{path} is up to date\n")
    assert path.read_text(encoding="utf-8") == written


def test_capture_to_stdout_writes_no_file_and_gives_the_same_bytes_twice(envlock: Command, tmp_path: Path) -> None:
    first, second = envlock("capture", "-o", "-"), envlock("capture", "-o", "-", environ={"PYTHONHASHSEED": "7"})
    assert (first.returncode, first.stderr, list(tmp_path.iterdir())) == (0, "", [])
    assert first.stdout == second.stdout
    assert json.loads(first.stdout)["lock_version"] == 1
    assert (first.stdout[:2], first.stdout[-3:]) == ("{\n", "\n}\n")


def test_check_says_what_would_change_and_writes_nothing(envlock: Command, tmp_path: Path) -> None:
    site = tmp_path / "site"
    distribution(site, "mine", "1.0")
    environ = {"PYTHONPATH": str(site)}
    envlock("capture", "-q", "-o", "x.lock", environ=environ)
    before = (tmp_path / "x.lock").read_bytes()
    distribution(site, "other", "2.0")
    done = envlock("capture", "--check", "-o", "x.lock", environ=environ)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "x.lock would change:\n"
        "does not match under policy strict: 1 fact differs\n"
        "  x packages.other: locked absent, live 2.0\n"
        "      why: A package more or less may replace a kernel, a backend or a plug-in.\n"
        "      fix: Install what the lock has, and uninstall what it has not.\n"
    )
    assert (tmp_path / "x.lock").read_bytes() == before


@pytest.mark.parametrize(
    ("args", "content", "code", "stderr"),
    [
        (["-o", "x.lock"], None, 1, "x.lock would change: it does not exist\n"),
        (
            ["-o", "x.lock"],
            "",
            1,
            "x.lock would change: it is not a valid lockfile (lockfile x.lock is not valid: it is empty)\n",
        ),
        (["-o", "x.lock", "--quiet"], "", 1, ""),
        (
            ["-o", "/"],
            None,
            1,
            "/ would change: it is not a valid lockfile (cannot read lockfile /: it is a folder)\n",
        ),
        (
            ["-o", "-"],
            None,
            2,
            "error: --check compares with a file, and `-` is stdout\nhint: name the file\n",
        ),
    ],
)
def test_check_of_what_is_no_lock(
    args: list[str], content: str | None, code: int, stderr: str, envlock: Command, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "x.lock").write_text(content, encoding="utf-8")
    done = envlock("capture", "--check", *args)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", stderr)


def test_check_does_not_read_what_is_too_large_for_a_lock(envlock: Command, tmp_path: Path) -> None:
    (tmp_path / "x.lock").touch()
    os.truncate(tmp_path / "x.lock", 3 * 2**30)
    limited = Command(["/bin/sh", "-c", 'ulimit -v 2000000; exec "$@"', "sh", *envlock.argv], tmp_path)
    done = limited("capture", "--check", "-o", "x.lock")
    clause = "lockfile x.lock is 3072 MB, the most is 4 MB"
    assert (done.returncode, done.stderr) == (1, f"x.lock would change: it is not a valid lockfile ({clause})\n")


def test_show_for_people(envlock: Command, tmp_path: Path) -> None:
    site = tmp_path / "site"
    url = '{"url": "https://me:SECRET@example.org/mine.git", "vcs_info": {"vcs": "git", "commit_id": "%s"}}'
    distribution(site, "mine", "1.0", {"direct_url.json": url % ("0a" * 20)})
    distribution(site, "mine_two", "1.0", {"direct_url.json": "SECRET"})
    environ = {
        "PYTHONPATH": str(site),
        "TF_DETERMINISTIC_OPS": "1",
        "LD_PRELOAD": "",
        "AWS_SECRET_ACCESS_KEY": "SECRET",
    }
    lock = envlock("capture", "-o", "-", environ=environ)
    assert "SECRET" not in lock.stdout + lock.stderr
    done = envlock("show", "-", stdin=lock.stdout.encode())
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0].startswith("lock_version 1, envlock ")
    assert "  mine 1.0 from https://example.org/mine.git at 0a0a0a0a0a0a" in lines
    assert "  TF_DETERMINISTIC_OPS=1" in lines
    assert "tensorflow: none" in lines
    assert lines[-2:] == [
        "could not be collected",
        "  packages.mine-two.origin: its direct_url.json is not what the packaging specification says",
    ]
