"""A folder of sources as a build may have it: a copy, so that nothing is left in the original, and nothing is used that
an earlier build has left there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from envlock.guest import launch
from envlock.lock.drafts import draft_folder
from envlock.packages.sources import Source
from envlock.runtime.errors import OutsideError, UsageError

TIMEOUT = 600.0  # seconds for one command of Git

LEFTOVERS = ("build", "dist", ".git", ".hg", ".tox", ".nox", ".venv", "node_modules")
"""Folders beside `pyproject.toml` that tools make, and that no build should see; Git knows better, where it is used."""

QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
"""Variables: write nothing into the original's repository, and ask nobody for a password."""


@contextmanager
def copied(source: Source) -> Iterator[Path]:
    """Give a copy of a folder of sources, or a clone of a commit; it is removed afterwards.

    Of a Git work tree, the copy has the tracked files of the whole repository, and of the project's own folder also
    those that are new and not ignored. It stands on the same repository, so that a version made from tags is the same.

    Raises:
        OutsideError: the folder is gone or cannot be read, or Git failed; the message names no URL.
    """
    with draft_folder(None) as copy:
        target = copy / "source"
        try:
            folder = (
                _cloned(source, target)
                if source.kind == "commit"
                else _copied(Path(source.place), target)
            )
        except OSError as error:
            why = error.strerror or "some of its files are gone"
            raise OutsideError(f"its sources cannot be copied: {why}") from None
        if not folder.is_dir():
            raise OutsideError("its sources have no such folder any more")
        _settle(target)
        yield folder


def epoch(folder: Path) -> int:
    """Return the time of the last commit of a work tree, in seconds since 1970; that of 1980, where there is none.

    Older times do not fit into a wheel. Source: https://reproducible-builds.org/docs/source-date-epoch/
    """
    oldest = 315_532_800
    found = _git(["log", "-1", "--format=%ct"], folder)
    return max(int(found), oldest) if found is not None and found.strip().isdigit() else oldest


def _copied(folder: Path, target: Path) -> Path:
    top = _git(["rev-parse", "--show-toplevel"], folder)
    tracked = None if top is None else _git(["ls-files", "-z", "--full-name", ":/"], folder)
    if top is None or not tracked:
        shutil.copytree(folder, target, symlinks=True, ignore=_leftovers(folder))
        return target
    root = Path(top.rstrip("\n"))
    new = _git(["ls-files", "-z", "--others", "--exclude-standard", "--full-name"], folder) or ""
    for name in filter(
        None, [*tracked.split("\0"), *(each for each in new.split("\0") if not _is_wheel(each))]
    ):
        _copy(root / name, target / name)
    git = _git(["rev-parse", "--absolute-git-dir"], folder)
    if git is not None:
        (target / ".git").write_text(f"gitdir: {git}", encoding="utf-8")
    return target / folder.resolve().relative_to(root.resolve())


def _copy(file: Path, target: Path) -> None:
    """Copy a file of a work tree; one that is deleted there, and the folder of a submodule, are left out."""
    if not file.is_symlink() and not file.is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, target, follow_symlinks=False)


def _leftovers(root: Path) -> Callable[[str, list[str]], set[str]]:
    def ignored(folder: str, names: list[str]) -> set[str]:
        is_root = Path(folder) == root
        return {
            name
            for name in names
            if name == "__pycache__"
            or (is_root and (name in LEFTOVERS or name.endswith(".egg-info")))
            or _is_made(Path(folder, name))
        }

    return ignored


def _is_made(folder: Path) -> bool:
    """Return whether a folder is a virtual environment or a wheelhouse."""
    if not folder.is_dir():
        return False
    return (folder / "pyvenv.cfg").exists() or {each.suffix for each in folder.iterdir()} == {
        ".whl"
    }


def _is_wheel(name: str) -> bool:
    return name.endswith(".whl")


def _settle(folder: Path) -> None:
    """Give the files of a copy the modes that Git gives them, whatever this user's mask: they go into the wheel."""
    for place, _, names in os.walk(folder):
        for name in names:
            file = Path(place, name)
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)


def _cloned(source: Source, target: Path) -> Path:
    steps = (
        ["clone", "--quiet", "--no-checkout", "--", source.place, str(target)],
        ["-C", str(target), "checkout", "--quiet", "--detach", source.commit or "HEAD"],
        ["-C", str(target), "submodule", "--quiet", "update", "--init", "--recursive"],
    )
    for words in steps:
        if _git(words, target.parent) is None:
            raise OutsideError(
                f"Git failed to {words[0] if words[0] == 'clone' else words[2]} its repository"
            )
    folder = (target / (source.subdirectory or ".")).resolve()
    if not folder.is_relative_to(target.resolve()):
        raise OutsideError("its folder is not in its repository")
    return folder


def _git(words: Sequence[str], folder: Path) -> str | None:
    """Return what Git writes about a folder; None where it fails, or is not installed."""
    program = shutil.which("git")
    if program is None:
        return None
    try:
        done = launch.ask(
            ["-C", str(folder), *words],
            Path(program),
            timeout=TIMEOUT,
            environ={**os.environ, **QUIET},
        )
    except UsageError:
        return None
    return os.fsdecode(done.output) if done.code == 0 else None
