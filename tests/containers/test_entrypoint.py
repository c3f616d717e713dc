"""What the entrypoint of an image prints where its folder holds no lockfile."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import envlock
from envlock.guest.image import entrypoint
from envlock.runtime.collectors import COLLECTORS

pytestmark = pytest.mark.processes


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Return what the entrypoint says in a folder that has nothing but it and the runtime half."""
    shutil.copy(entrypoint.__file__, folder / "entrypoint.py")
    (folder / "envlock").symlink_to(Path(envlock.__file__).parent)
    command = [sys.executable, "-B", str(folder / "entrypoint.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_facts_need_no_lockfile(tmp_path: Path) -> None:
    done = run(tmp_path, "--facts")
    assert (done.returncode, done.stderr) == (0, "")
    facts, unavailable = json.loads(done.stdout)
    assert set(facts) <= set(COLLECTORS)
    assert facts["python"]["implementation"] == sys.implementation.name
    assert isinstance(unavailable, dict)


def test_files_are_judged_by_a_lockfile(tmp_path: Path) -> None:
    done = run(tmp_path, "--deep")
    assert (done.returncode, done.stdout) == (3, "")
    lock = tmp_path / "envlock.lock"
    assert done.stderr.startswith(f"envlock: lockfile not found: {lock} (")
