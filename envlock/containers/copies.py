"""The files of a project that its setting `copy` names, read from its folder."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from envlock.containers.additions import CopiedFile
from envlock.containers.quoting import KINDS
from envlock.runtime import lockfile
from envlock.runtime.errors import UsageError
from envlock.runtime.report import count

MOST = 10_000
"""The most files: more are data, which should be mounted instead of copied."""

_EXAMPLE = 'name files and folders below the project, such as `copy = ["train.py", "src"]`'


def collect(project: Path, names: Sequence[str], but: Path) -> tuple[CopiedFile, ...]:
    """Return the named files and those below named folders, sorted by path.

    Below a folder, hidden files, bytecode, environments, links, lockfiles and the folder `but` are
    left out.

    Raises:
        UsageError: a file does not exist, is outside of the project, cannot be read, or has a name
            that is not portable.
    """
    files: dict[str, CopiedFile] = {}
    for name in names:
        start = Path(os.path.normpath(project / name))
        is_inside = start.is_relative_to(project) and _is_within(start, project)
        if Path(name).is_absolute() or not is_inside:
            raise UsageError(f"`copy` names what is not in the project: {name}", hint=_EXAMPLE)
        for file in _list_files(start, but):
            path = file.relative_to(project).as_posix()
            files[path] = _read(file, path)
            if len(files) > MOST:
                raise UsageError(
                    f"`copy` names more than {count(MOST, 'file')}", hint="mount data; copy code"
                )
    return tuple(files[path] for path in sorted(files))


def _is_within(start: Path, project: Path) -> bool:
    """Return whether a path stays inside the project when links are followed."""
    return start.resolve().is_relative_to(project.resolve())


def _list_files(start: Path, but: Path) -> Iterator[Path]:
    if not start.is_dir():
        yield start
        return
    for folder, folders, names in os.walk(start, onerror=_raise_unreadable):
        parent = Path(folder)
        # Changed in place, because os.walk visits only the folders that are left.
        folders[:] = sorted(name for name in folders if _is_code(parent / name, but))
        for name in sorted(names):
            if _is_source(parent / name):
                yield parent / name


def _raise_unreadable(error: OSError) -> None:
    raise UsageError(
        f"cannot read {error.filename}, which `copy` names: {error.strerror}", hint=_EXAMPLE
    )


def _is_code(folder: Path, but: Path) -> bool:
    """Return whether files below a folder are copied."""
    is_hidden = folder.name.startswith(".") or folder.name == "__pycache__"
    is_environment = os.access(folder / "pyvenv.cfg", os.F_OK)
    if is_hidden or is_environment or folder.is_symlink():
        return False
    return folder.resolve() != but.resolve()


def _is_source(file: Path) -> bool:
    """Return whether a file below a named folder is copied."""
    is_hidden = file.name.startswith(".") or file.name == lockfile.NAME or file.suffix == ".pyc"
    return not is_hidden and not file.is_symlink() and file.is_file()


def _read(file: Path, path: str) -> CopiedFile:
    if KINDS["copied"].fullmatch(path) is None:
        raise UsageError(
            f"`copy` names a file with a name that is not portable: {path}", hint="rename it"
        )
    try:
        with file.open("rb") as stream:
            # Of the file that is open: another one may have its name by now.
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UsageError(f"`copy` names a special file: {path}", hint=_EXAMPLE)
            digest = hashlib.sha256()
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
    except OSError as error:
        raise UsageError(
            f"cannot read {path}, which `copy` names: {error.strerror}", hint=_EXAMPLE
        ) from None
    return CopiedFile(path, digest.hexdigest(), bool(status.st_mode & 0o100), file)
