"""Copy the sources of a package for a build.

The build leaves nothing in the original, and does not use leftovers of an earlier build.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from envlock.guest import launch
from envlock.lock.temporary import open_draft_folder
from envlock.packages.sources import Source
from envlock.packages.wheel_cache import hash_file
from envlock.runtime.errors import OutsideError, UsageError
from envlock.runtime.lockfile import NAME as LOCKFILE
from envlock.runtime.source_files import list_modules

TIMEOUT = 600.0  # seconds for one command of Git

LEFTOVERS = ("build", "dist", ".git", ".hg", ".tox", ".nox", ".venv", "node_modules")
"""Folders beside `pyproject.toml` that tools create and that a build must not see.

They matter only outside of Git, which lists the files of a project.
"""

QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
"""Variables: write nothing into the original's repository, and never ask for a password."""


class SourceTree(NamedTuple):
    """The files of a folder that a build gets.

    Attributes:
        root: the folder that their names begin in: that of the repository, or of the project.
        project: the folder of the project, relative to it.
        names: files and links, sorted.
        git: Git's folder; None outside of Git.
    """

    root: Path
    project: str
    names: tuple[str, ...]
    git: str | None


def list_tree(folder: Path) -> SourceTree:
    """Return the files of a folder of sources that a build gets.

    In a Git work tree, these are the tracked files of the whole repository, submodules included, and
    of the project's own folder those that are new and not ignored. Modules that are ignored count as
    well: a version file or an extension module that was made there is imported. Elsewhere, they are
    all files except what tools and earlier builds have left.

    Raises:
        OSError: the folder cannot be read.
    """
    top = _run_git(["rev-parse", "--show-toplevel"], folder)
    tracked = None
    if top is not None:
        listing = ["ls-files", "-z", "--full-name"]
        # With `--recurse-submodules`, Git refuses pathspecs that begin with a colon.
        tracked = _run_git([*listing, "--recurse-submodules"], Path(top.rstrip("\n")))
    if top is None or not tracked:
        return SourceTree(folder, ".", tuple(sorted(_walk(folder))), None)
    root = Path(top.rstrip("\n"))
    others = ["ls-files", "-z", "--others", "--exclude-standard", "--full-name"]
    names = set(filter(None, tracked.split("\0")))
    # A wheel that is not tracked was built here before, and does not belong to the sources.
    new = (_run_git(others, folder) or "").split("\0")
    names.update(name for name in new if name and not name.endswith(".whl"))
    project = os.path.relpath(folder.resolve(), root.resolve())
    for name in list_modules(str(folder)):
        names.add(os.path.normpath(f"{project}/{name}"))
    # Git also lists files that are deleted in the work tree.
    present = [name for name in names if os.path.lexists(root / name)]
    git = _run_git(["rev-parse", "--absolute-git-dir"], folder)
    return SourceTree(root, project, tuple(sorted(present)), git)


def digest_tree(tree: SourceTree) -> str:
    """Return the digest of the names, modes and contents of the files that a build gets.

    Lockfiles do not count: a build writes into one.

    Raises:
        OSError: a file cannot be read.
    """
    whole = hashlib.sha256()
    for name in tree.names:
        file = tree.root / name
        if file.name == LOCKFILE or not (file.is_symlink() or file.is_file()):
            continue
        if file.is_symlink():
            content = "link " + hashlib.sha256(os.fsencode(file.readlink())).hexdigest()
        else:
            content = hash_file(file).sha256
            if file.stat().st_mode & 0o100:
                content = f"program {content}"
        whole.update(os.fsencode(name) + b"\0" + content.encode("ascii") + b"\n")
    return f"sha256:{whole.hexdigest()}"


@contextmanager
def copy_sources(source: Source, tree: SourceTree | None = None) -> Iterator[Path]:
    """Yield a copy of a folder of sources, or a clone of a commit; it is removed afterwards.

    Args:
        source: the folder or the commit.
        tree: the files of the folder; they are listed when not given.

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
                folder = _copy_tree(tree or list_tree(Path(source.place)), target)
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


def _copy_tree(tree: SourceTree, target: Path) -> Path:
    target.mkdir()
    for name in tree.names:
        _copy_file(tree.root / name, target / name)
    if tree.git is not None:
        # The copy uses the same repository, so that a version that is derived from tags is the same.
        (target / ".git").write_text(f"gitdir: {tree.git}", encoding="utf-8")
    return target / tree.project


def _copy_file(file: Path, target: Path) -> None:
    # Git lists the folder of a submodule that is not checked out.
    if not file.is_symlink() and not file.is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, target, follow_symlinks=False)


def _walk(folder: Path) -> Iterator[str]:
    """Yield the files and links below a folder without those that tools and builds have left."""

    def fail(error: OSError) -> None:
        raise error

    for parent, folders, files in os.walk(folder, onerror=fail):
        kept = []
        for name in [*folders, *files]:
            path = Path(parent, name)
            if _is_leftover(path, folder):
                continue
            if path.is_dir() and not path.is_symlink():
                kept.append(name)
            else:
                yield str(path.relative_to(folder))
        folders[:] = kept


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
