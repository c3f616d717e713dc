"""Which commit of its project a lock was captured at: information about the code, held by no policy."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
TIMEOUT = 10.0  # seconds
SIZE_LIMIT = 16 * 1024 * 1024  # bytes of packed-refs


def revision(folder: Path, lock: Path | None = None) -> dict[str, Any]:
    """Return the `commit` that a project's folder is at, and whether it is `dirty`; nothing outside of git.

    Dirty is what `git status` does not call clean: a file below the folder differs from the commit, or is neither
    committed nor ignored; the lock itself does not count. This is left out where git is not there or refuses.
    """
    commit = _head(folder)
    if commit is None:
        return {}
    dirty = _is_dirty(folder, lock)
    return {"commit": commit} if dirty is None else {"commit": commit, "dirty": dirty}


def _head(folder: Path) -> str | None:
    """Return the commit that HEAD names, as the files of git's folder say; no git is needed.

    Source: https://git-scm.com/docs/gitrepository-layout
    """
    try:
        home = next(
            each / ".git" for each in (folder, *folder.parents) if os.path.lexists(each / ".git")
        )
        if home.is_file():  # of a work tree or a submodule
            home = home.parent / home.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
        head = (home / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: refs/"):
            return head if COMMIT.fullmatch(head) else None
        return _resolved(head[5:], home)
    except (StopIteration, OSError, ValueError):
        return None


def _resolved(name: str, home: Path) -> str | None:
    common = home / "commondir"
    shared = home / common.read_text(encoding="utf-8").strip() if common.is_file() else home
    if (shared / name).is_file():
        commit = (shared / name).read_text(encoding="utf-8").strip()
        return commit if COMMIT.fullmatch(commit) else None
    with (shared / "packed-refs").open(encoding="utf-8") as stream:
        lines = stream.read(SIZE_LIMIT).splitlines()
    return next(
        (line.split()[0] for line in lines if COMMIT.match(line) and line.endswith(f" {name}")),
        None,
    )


def _is_dirty(folder: Path, lock: Path | None) -> bool | None:
    own = [] if lock is None else [os.path.relpath(lock, folder)]
    besides = [f":(exclude,literal){each}" for each in own if not each.startswith("..")]
    options = ["--no-optional-locks", "-c", "core.fsmonitor=false"]
    command = [
        "git",
        *options,
        "status",
        "--porcelain",
        "--untracked-files=normal",
        "--",
        ".",
        *besides,
    ]
    hooked = (
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
    )  # inside a hook, these can name another state
    environ = {name: value for name, value in os.environ.items() if name not in hooked}
    try:
        done = subprocess.run(
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
    return bool(done.stdout.strip()) if done.returncode == 0 else None
