"""The commit of a project at the time of a capture; no policy compares it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
TIMEOUT = 10.0  # seconds
SIZE_LIMIT = 16 * 1024 * 1024  # bytes of packed-refs

HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
"""Variables that can name another state of the repository, inside a hook of Git."""


def find_revision(folder: Path, lock: Path | None = None) -> dict[str, str | bool]:
    """Return the `commit` of a project's folder, and whether it is `dirty`; empty outside of a Git
    repository.

    It is dirty if a file below the folder differs from the commit, or is neither committed nor
    ignored; the lockfile itself does not count. `dirty` is left out if `git` is not installed, or
    fails.
    """
    commit = _find_head(folder)
    if commit is None:
        return {}
    status = _read_status(folder, lock)
    if status is None:
        return {"commit": commit}
    return {"commit": commit, "dirty": bool(status.strip())}


def _find_head(folder: Path) -> str | None:
    """Return the commit of HEAD, read from the files in Git's folder without running the program.

    Source: https://git-scm.com/docs/gitrepository-layout
    """
    try:
        git = _find_git_folder(folder)
        if git is None:
            return None
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: refs/"):
            return _check_commit(head)
        return _resolve(head.removeprefix("ref: "), git)
    except (OSError, ValueError):
        return None


def _find_git_folder(folder: Path) -> Path | None:
    for parent in (folder, *folder.parents):
        git = parent / ".git"
        if not os.path.lexists(git):
            continue
        # In another work tree or a submodule, it is a file that names the folder.
        if git.is_file():
            return parent / git.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
        return git
    return None


def _check_commit(text: str) -> str | None:
    if COMMIT.fullmatch(text):
        return text
    return None


def _resolve(reference: str, git: Path) -> str | None:
    """Return the commit that a reference names."""
    # Work trees of one repository share their branches.
    shared = git
    if (git / "commondir").is_file():
        shared = git / (git / "commondir").read_text(encoding="utf-8").strip()
    if (shared / reference).is_file():
        return _check_commit((shared / reference).read_text(encoding="utf-8").strip())
    with (shared / "packed-refs").open(encoding="utf-8") as stream:
        lines = stream.read(SIZE_LIMIT).splitlines()
    for line in lines:
        if COMMIT.match(line) and line.endswith(f" {reference}"):
            return line.split()[0]
    return None


def _read_status(folder: Path, lock: Path | None) -> bytes | None:
    """Return the output of `git status` for a folder without the lockfile; None if it fails."""
    # A repository can name a program in `core.fsmonitor`, which `git status` would run:
    # https://git-scm.com/docs/git-config#Documentation/git-config.txt-corefsmonitor
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status"]
    command += ["--porcelain", "--untracked-files=normal", "--", "."]
    if lock is not None:
        relative = os.path.relpath(lock, folder)
        if not relative.startswith(".."):
            command.append(f":(exclude,literal){relative}")
    environ = {name: value for name, value in os.environ.items() if name not in HOOK_VARIABLES}
    try:
        process = subprocess.run(
            command,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if process.returncode != 0:
        return None
    return process.stdout
