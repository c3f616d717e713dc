"""Finding Python files and notebooks, and reading one: everything here is bounded, whatever lies on
the disk.
"""

from __future__ import annotations

import ast
import os
import re
import stat
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from io import BytesIO
from pathlib import Path, PurePath
from tokenize import detect_encoding

from envlock.linter.module import Module
from envlock.linter.notebooks import SUFFIX, Cells, code
from envlock.linter.python2 import translate
from envlock.runtime.errors import UsageError
from envlock.runtime.host import read_bytes

SIZE_LIMIT = 2 * 1024 * 1024  # bytes; the parser takes about a hundred times as much memory
NOTEBOOK_LIMIT = 32 * 1024 * 1024  # bytes; most of them are pictures
FILE_LIMIT = 100_000  # a quarter of an hour (benchmarks/README.md): a disk was named, no project
PACKAGED = re.compile(rb"^\[(project|build-system|tool\.poetry)\]", re.MULTILINE)
"""What makes a pyproject.toml more than the settings of tools. It is searched for, not parsed: a
file that breaks off or is not valid says it all the same.
"""
SKIPPED = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages", "venv"})


class Unreadable(Exception):  # noqa: N818 (it becomes a finding)
    """A file that is not Python: why, and where."""

    def __init__(self, reason: str, line: int = 1, column: int = 1) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column


def find(paths: Sequence[str], exclude: Sequence[str] = ()) -> list[str]:
    """Return the files to look at: those named, and every *.py and *.ipynb below the folders named,
    sorted, each once.

    Folders without code of the project are skipped: hidden ones, environments, builds. Links to
    folders are not followed. `exclude` holds patterns for paths (`tests/*`) or names (`*_pb2.py`).

    Raises:
        UsageError: a path does not exist or is neither file nor folder, or there are too many
            files.
    """
    found: dict[str, str] = {}
    for path in paths:
        for file in _walk(path, exclude):
            # `envlock lint . train.py`, and links to one file, name it twice.
            found.setdefault(os.path.realpath(file), file)
            if len(found) > FILE_LIMIT:
                raise UsageError(
                    f"there are more than {FILE_LIMIT} files",
                    hint="name the folders of the project",
                )
    return sorted(found.values())


def find_installed(files: Sequence[str]) -> frozenset[str]:
    """Return the files that lie in a folder with a package that can be installed, or below one."""
    known: dict[Path, bool] = {}
    found: set[str] = set()
    for file in files:
        if _is_installed(Path(file).absolute().parent, known):
            found.add(file)
    return frozenset(found)


def _is_installed(folder: Path, known: dict[Path, bool]) -> bool:
    """Return whether a folder, or one around it in the repository, says how it is installed."""
    if folder not in known:
        # What lies above a repository tells nothing: a home folder may have a setup.py, too.
        is_top = folder == folder.parent or (folder / ".git").exists()
        above = not is_top and _is_installed(folder.parent, known)
        known[folder] = above or _says_how_to_install(folder)
    return known[folder]


def _says_how_to_install(folder: Path) -> bool:
    if (folder / "setup.py").is_file():
        return True
    file = folder / "pyproject.toml"
    if not file.is_file():  # to open a pipe would wait for its writer
        return False
    try:
        with file.open("rb") as stream:
            text = stream.read(SIZE_LIMIT)
    except OSError:
        return False
    return PACKAGED.search(text) is not None


def _walk(path: str, exclude: Sequence[str]) -> Iterator[str]:
    try:
        mode = Path(path).stat().st_mode
    # ValueError: there is a NUL byte in it.
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise UsageError(
            f"cannot read {path}: {reason}", hint="name existing files and folders"
        ) from None
    if stat.S_ISREG(mode):
        yield path
        return
    if not stat.S_ISDIR(mode):
        raise UsageError(
            f"cannot read {path}: it is neither a file nor a folder", hint="name files and folders"
        )
    for folder, folders, names in os.walk(path):
        here = Path(folder)
        # Changed in place, so that `os.walk` does not enter what is skipped.
        folders[:] = sorted(name for name in folders if not _is_skipped(here / name, exclude))
        for name in names:
            file = here / name
            if (
                file.suffix in (".py", SUFFIX)
                and not _is_excluded(file, exclude)
                and file.is_file()
            ):
                yield str(file)


def _is_skipped(folder: Path, exclude: Sequence[str]) -> bool:
    if folder.name.startswith(".") or folder.name in SKIPPED or _is_excluded(folder, exclude):
        return True
    # An environment, under whatever name: https://docs.python.org/3/library/site.html
    return os.path.lexists(folder / "pyvenv.cfg")


def _is_excluded(path: Path, exclude: Sequence[str]) -> bool:
    return any(matches(str(path), pattern) for pattern in exclude)


def matches(path: str, pattern: str) -> bool:
    """Return whether a pattern of paths (`tests/*`) or names (`*_pb2.py`) fits a file or a folder."""
    name = PurePath(path).name
    return fnmatch(name, pattern) or fnmatch(path.removeprefix("./"), pattern.rstrip("/"))


def read(path: str) -> Module:
    """Return a file as a module.

    Raises:
        Unreadable: it cannot be read, is too large, or is not Python as this interpreter knows it.
    """
    text, cells = _read_code(path)
    return parse(path, text, cells)


def _read_code(path: str) -> tuple[str, Cells | None]:
    """Return the Python in a file, and where the cells of a notebook begin in it."""
    data = _read_bytes(path)
    if not path.endswith(SUFFIX):
        try:
            return data.decode(detect_encoding(BytesIO(data).readline)[0]), None
        except (SyntaxError, UnicodeDecodeError, LookupError) as error:
            raise Unreadable(
                "it holds NUL bytes, as no Python does"  # as `tokenize` says from Python 3.14 on
                if "null bytes" in str(error)
                else "it is not text in the encoding it declares (UTF-8 where it declares none)"
            ) from None
    try:
        text, cells = code(data.decode("utf-8-sig"))
    except ValueError as error:
        raise Unreadable(f"it is not a notebook: {error}") from None
    if len(text) > SIZE_LIMIT:
        raise Unreadable(f"its code is larger than {SIZE_LIMIT // 2**20} MB")
    return text, cells


def parse(path: str, text: str, cells: Cells | None = None) -> Module:
    """Return Python source as a module; Python 2 is translated.

    Raises:
        Unreadable: it is Python neither as this interpreter knows it nor as TensorFlow 1 ran it.
    """
    try:
        return Module(path, text, _parse(path, text), cells)
    except SyntaxError as error:
        line = max(error.lineno or 1, 1)  # Python says 0 or None where it knows no line
        translated = translate(text)
        if translated is not None:
            with suppress(SyntaxError):
                return Module(path, translated, _parse(path, translated), cells, line)
        reason = f"it is not valid Python for this interpreter: {error.msg}"
        if cells is not None:
            cell, line = cells.place(line)
            reason = f"cell {cell}: {reason}"
        raise Unreadable(reason, line, max(error.offset or 1, 1)) from None


def _parse(path: str, text: str) -> ast.Module:
    """Return the syntax tree of Python source.

    Raises:
        SyntaxError: this interpreter does not know the syntax.
        Unreadable: it holds what no parser takes.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the code that is looked at: not ours to say
            return ast.parse(text.removeprefix("\ufeff"), path)
    except ValueError:
        raise Unreadable("it holds a NUL byte") from None
    except (RecursionError, MemoryError):
        raise Unreadable("it is nested too deeply for Python's own parser") from None


def _read_bytes(path: str) -> bytes:
    limit = NOTEBOOK_LIMIT if path.endswith(SUFFIX) else SIZE_LIMIT
    try:
        # One more than allowed tells too large; a size that was asked for may have changed.
        data = read_bytes(path, limit + 1, is_noted=False)
    except OSError as error:
        raise Unreadable(f"it cannot be read: {error.strerror}") from None
    if data is None:
        raise Unreadable("it cannot be read: No such file or directory")
    if len(data) > limit:
        raise Unreadable(f"it is larger than {limit // 2**20} MB")
    return data
