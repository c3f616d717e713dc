"""Copy the sources of a package for a build.

The build leaves nothing in the original, and does not use leftovers of an earlier build.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from envlock.guest import launch
from envlock.lock.temporary import open_draft_folder
from envlock.packages.sources import Source
from envlock.runtime.errors import OutsideError, UsageError

TIMEOUT = 600.0  # seconds for one command of Git

LEFTOVERS = ("build", "dist", ".git", ".hg", ".tox", ".nox", ".venv", "node_modules")
"""Folders beside `pyproject.toml` that tools create and that a build must not see.

They matter only outside of Git, which lists the files of a project.
"""

QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
"""Variables: write nothing into the original's repository, and never ask for a password."""


@contextmanager
def copy_sources(source: Source) -> Iterator[Path]:
    """Yield a copy of a folder of sources, or a clone of a commit; it is removed afterwards.

    The copy of a Git work tree has the tracked files of the whole repository, and those of the
    project's own folder that are new and not ignored.

    Raises:
        OutsideError: the folder was removed or cannot be read, or Git failed; the message names no
            URL.
    """
    with open_draft_folder(None) as draft:
        target = draft / "source"
        try:
            if source.kind == "commit":
                folder = _clone(source, target)
            else:
                folder = _copy_folder(Path(source.place), target)
        except OSError as error:
            why = error.strerror or "some of its files are gone"
            raise OutsideError(f"its sources cannot be copied: {why}") from None
        if not folder.is_dir():
            raise OutsideError("its sources have no such folder any more")
        _settle_modes(target)
        yield folder


def get_commit_time(folder: Path) -> int:
    """Return the time of the last commit of a work tree, in seconds since 1970.

    It is at least the beginning of 1980, also without a commit: a wheel cannot have older times.
    Source: https://reproducible-builds.org/docs/source-date-epoch/
    """
    oldest = 315_532_800
    answer = _run_git(["log", "-1", "--format=%ct"], folder)
    if answer is None or not answer.strip().isdigit():
        return oldest
    return max(int(answer), oldest)


def _copy_folder(folder: Path, target: Path) -> Path:
    top = _run_git(["rev-parse", "--show-toplevel"], folder)
    tracked = None
    if top is not None:
        tracked = _run_git(["ls-files", "-z", "--full-name", ":/"], folder)
    if top is None or not tracked:
        shutil.copytree(folder, target, symlinks=True, ignore=_ignore_leftovers(folder))
        return target
    root = Path(top.rstrip("\n"))
    others = ["ls-files", "-z", "--others", "--exclude-standard", "--full-name"]
    new = (_run_git(others, folder) or "").split("\0")
    for name in tracked.split("\0"):
        if name:
            _copy_file(root / name, target / name)
    for name in new:
        # A wheel that is not tracked was built here before, and does not belong to the sources.
        if name and not name.endswith(".whl"):
            _copy_file(root / name, target / name)
    # The copy uses the same repository, so that a version that is derived from tags is the same.
    git = _run_git(["rev-parse", "--absolute-git-dir"], folder)
    if git is not None:
        (target / ".git").write_text(f"gitdir: {git}", encoding="utf-8")
    return target / folder.resolve().relative_to(root.resolve())


def _copy_file(file: Path, target: Path) -> None:
    # Git also lists files that are deleted in the work tree, and the folders of submodules.
    if not file.is_symlink() and not file.is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, target, follow_symlinks=False)


def _ignore_leftovers(root: Path) -> Callable[[str, list[str]], set[str]]:
    """Return a function for `shutil.copytree` that names the files of a folder that are not copied."""

    def ignore(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if _is_leftover(Path(folder, name), root)}

    return ignore


def _is_leftover(path: Path, root: Path) -> bool:
    """Return whether a path belongs to the bytecode cache, a build, a virtual environment or a
    wheelhouse.
    """
    if path.name == "__pycache__":
        return True
    if path.parent == root and (path.name in LEFTOVERS or path.name.endswith(".egg-info")):
        return True
    if not path.is_dir():
        return False
    if (path / "pyvenv.cfg").exists():
        return True
    return {file.suffix for file in path.iterdir()} == {".whl"}


def _settle_modes(folder: Path) -> None:
    """Give the files of a copy the modes that Git sets, whatever the umask of this user."""
    # The modes become part of the wheel, which must have the same bytes for every user.
    for parent, _, names in os.walk(folder):
        for name in names:
            file = Path(parent, name)
            if file.is_symlink():
                continue
            if file.stat().st_mode & 0o100:
                file.chmod(0o755)
            else:
                file.chmod(0o644)


def _clone(source: Source, target: Path) -> Path:
    steps = (
        ["clone", "--quiet", "--no-checkout", "--", source.place, str(target)],
        ["-C", str(target), "checkout", "--quiet", "--detach", source.commit or "HEAD"],
        ["-C", str(target), "submodule", "--quiet", "update", "--init", "--recursive"],
    )
    for step, words in zip(("clone", "checkout", "submodule"), steps, strict=True):
        if _run_git(words, target.parent) is None:
            raise OutsideError(f"Git failed to {step} its repository")
    folder = (target / (source.subdirectory or ".")).resolve()
    if not folder.is_relative_to(target.resolve()):
        raise OutsideError("its folder is not in its repository")
    return folder


def _run_git(words: Sequence[str], folder: Path) -> str | None:
    """Return the output of Git in a folder; None if it fails or is not installed."""
    program = shutil.which("git")
    if program is None:
        return None
    try:
        ended = launch.ask(
            ["-C", str(folder), *words],
            Path(program),
            timeout=TIMEOUT,
            environ={**os.environ, **QUIET},
        )
    except UsageError:
        return None
    if ended.code != 0:
        return None
    return os.fsdecode(ended.output)
