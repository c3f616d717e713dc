"""Which commit a project is at, as real git repositories have it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from envlock.lock.revision import find_revision
from envlock.runtime import lockfile
from tests.cli.test_entry_points import Project
from tests.conftest import Command

pytestmark = pytest.mark.processes


class Repository:
    """A git repository with one commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q")
        (folder / "train.py").write_text("import keras\n", encoding="utf-8")
        (folder / ".gitignore").write_text("ignored\nenv\n", encoding="utf-8")
        self.first = self.commit()

    def git(self, *words: str) -> str:
        """Run git, and return what it prints."""
        argv = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main", *words]
        done = subprocess.run(argv, cwd=self.folder, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.strip()

    def commit(self) -> str:
        """Commit all files, and return the commit."""
        self.git("add", ".")
        self.git("commit", "-qm", "x", "--allow-empty")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_the_commit_is_read_wherever_git_keeps_it(repository: Repository, tmp_path: Path) -> None:
    first = {"commit": repository.first, "dirty": False}
    assert find_revision(tmp_path) == first
    repository.git("pack-refs", "--all")
    assert find_revision(tmp_path) == first
    repository.git("checkout", "-q", "--detach")
    assert find_revision(tmp_path) == first
    repository.git("worktree", "add", "-q", "-b", "topic/a", str(tmp_path / "ignored"))
    assert find_revision(tmp_path / "ignored") == first
    repository.git("checkout", "-q", "--orphan", "empty")
    assert find_revision(tmp_path) == {}


def test_what_makes_a_project_dirty(repository: Repository, tmp_path: Path) -> None:
    lock = tmp_path / "envlock.lock"
    lock.write_text("{}", encoding="utf-8")
    (tmp_path / "ignored").write_text("", encoding="utf-8")
    assert find_revision(tmp_path, lock)["dirty"] is False
    assert find_revision(tmp_path)["dirty"] is True
    repository.commit()
    (tmp_path / "part").mkdir()
    (tmp_path / "train.py").write_text("import numpy\n", encoding="utf-8")
    assert (find_revision(tmp_path, lock)["dirty"], find_revision(tmp_path / "part", lock)["dirty"]) == (True, False)


@pytest.mark.usefixtures("repository")
def test_without_git_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_revision(tmp_path) == {}


@pytest.mark.parametrize("head", ["ref: refs/../../secret", "ref: refs/heads/none", "secret", "\0", "gitdir: /"])
def test_a_repository_that_is_none_says_nothing(head: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text(head, encoding="utf-8")
    (tmp_path / "secret").write_text("token", encoding="utf-8")
    assert find_revision(tmp_path) == {}


def test_a_commit_is_recorded_shown_and_never_held(repository: Repository, envlock: Command, tmp_path: Path) -> None:
    project = Project(envlock, tmp_path)
    repository.commit()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"\n', encoding="utf-8")
    at = repository.commit()
    project.run("capture")
    lock = (tmp_path / lockfile.NAME).read_bytes()
    assert project.recorded == {"name": "mine", "commit": at, "dirty": False}
    assert f"project: commit {at[:12]} (as locked)\n" in project.run("verify", "-v").stdout
    new = repository.commit()
    (tmp_path / "train.py").write_text("import numpy\n", encoding="utf-8")
    done = project.run("verify", "-v")
    assert (
        done.returncode,
        f"project: commit {new[:12]} with changes (commit {at[:12]} when locked)\n" in done.stdout,
    ) == (
        0,
        True,
    )
    assert project.run("capture", "--check").returncode == 0
    project.run("capture")
    assert (tmp_path / lockfile.NAME).read_bytes() == lock
    project.install("flask", "3")
    project.run("capture")
    assert project.recorded == {"name": "mine", "commit": new, "dirty": True}
    assert f"project: mine, commit {new[:12]} with changes\n" in project.run("show").stdout
