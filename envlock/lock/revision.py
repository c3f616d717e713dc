"""The commit of a project at the time of a capture; no policy compares it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

COMMIT = re.compile(r"^# branch\.oid ([0-9a-f]{40}(?:[0-9a-f]{24})?)$", re.MULTILINE)
"""The line of `git status` that names the commit: https://git-scm.com/docs/git-status#_branch_headers"""
TIMEOUT = 10.0  # seconds

HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
"""Variables that can name another state of the repository, inside a hook of Git."""


def find_revision(folder: Path, lock: Path | None = None) -> dict[str, str | bool]:
    """Return the `commit` of a project's folder, and whether it is `dirty`; empty outside of a Git
    repository, or if `git` is not installed or fails.

    It is dirty if a file below the folder differs from the commit, or is neither committed nor
    ignored; the lockfile itself does not count.
    """
    # Most folders that are in no repository are known without a process.
    if not any(os.path.lexists(parent / ".git") for parent in (folder, *folder.parents)):
        return {}
    status = _read_status(folder, lock) or ""
    commit = COMMIT.search(status)
    if commit is None:
        return {}
    changes = [line for line in status.splitlines() if not line.startswith("#")]
    return {"commit": commit[1], "dirty": bool(changes)}


def _read_status(folder: Path, lock: Path | None) -> str | None:
    """Return the output of `git status` for a folder without the lockfile; None if it fails."""
    # A repository can name a program in `core.fsmonitor`, which `git status` would run:
    # https://git-scm.com/docs/git-config#Documentation/git-config.txt-corefsmonitor
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--branch"]
    command += ["--porcelain=v2", "--untracked-files=normal", "--", "."]
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
    return process.stdout.decode("utf-8", "replace")
