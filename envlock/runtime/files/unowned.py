"""Files that no package owns: single ones, folders, leftovers of upgrades, and what Python runs at its start."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

COUNT_LIMIT = 10_000  # files of a foreign folder that are counted
SITES = ("site-packages", "dist-packages")


class Owned(NamedTuple):
    """What packages own: files, the folders that hold them, and whole trees that are not looked into."""

    files: Container[str]
    folders: set[str]
    trees: set[str]


class Stranger(NamedTuple):
    """A file or folder; `files` is how many files a folder holds, None for a file."""

    path: str
    is_link: bool
    files: int | None


class Around(NamedTuple):
    """What nobody owns, and every .pyc file of a `__pycache__`."""

    strangers: list[Stranger]
    bytecode: list[str]


def sites(folders: Iterable[str]) -> list[str]:
    """Return the folders of the import path that only installers should write to."""
    return [folder for folder in folders if folder.rpartition("/")[2] in SITES]


def managed_by(folder: str, patterns: Iterable[tuple[str, str]]) -> str | None:
    """Return who looks after a folder, by (pattern, name) pairs, or None."""
    return next((name for pattern, name in patterns if fnmatchcase(folder, pattern)), None)


def folders_of(files: Iterable[str], site: str) -> set[str]:
    """Return every folder below `site` that holds one of the files, and `site` itself."""
    found = {site}
    for parent in {path.rpartition("/")[0] for path in files}:
        folder = parent
        while folder not in found and folder.startswith(site + "/"):
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def look_around(owned: Owned) -> Around:
    """Return what is in the folders that somebody owns and in the `__pycache__` of each, sorted by path."""
    found, bytecode = [], []
    caches = {
        f"{folder}/__pycache__" for folder in owned.folders if not folder.endswith("/__pycache__")
    }
    for folder in sorted(owned.folders | caches):
        for entry in _entries(folder):
            if folder.endswith("/__pycache__") and entry.name.endswith(".pyc"):
                bytecode.append(entry.path)
            elif not _is_owned(entry.path, owned, caches):
                found.append(_stranger(entry))
    return Around(found, bytecode)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:  # gone, or no folder: its files are missing, and named so
        return []


def _is_owned(path: str, owned: Owned, caches: set[str]) -> bool:
    return path in owned.files or path in owned.folders or path in owned.trees or path in caches


def _stranger(entry: os.DirEntry[str]) -> Stranger:
    try:
        is_link, is_folder = entry.is_symlink(), entry.is_dir(follow_symlinks=False)
    except OSError:
        is_link, is_folder = False, False
    return Stranger(entry.path, is_link, _count(entry.path) if is_folder else None)


def _count(folder: str) -> int:
    total = 0
    for _, _, files in os.walk(folder):  # follows no link
        total += len(files)
        if total >= COUNT_LIMIT:
            break
    return min(total, COUNT_LIMIT)


CUSTOMIZE = ("sitecustomize", "usercustomize")
PTH_LIMIT = 1 << 20  # bytes of a .pth file that are read
SHOWN = 80  # characters of a line


class Pth(NamedTuple):
    """What the lines of a .pth file do: code that they run, folders that they add."""

    code: list[str]
    folders: list[str]

    @property
    def what(self) -> str:
        """What it does, for people; empty when it does nothing."""
        parts = []
        if self.code:
            parts.append(f"runs {_shown(self.code)}")
        if self.folders:
            parts.append(f"adds {_shown(self.folders)} to the import path")
        return " and ".join(parts)


def read_pth(text: str) -> Pth:
    """Return what `site` does with the lines of a .pth file.

    Source: https://docs.python.org/3/library/site.html (and `addpackage` in Lib/site.py)
    """
    lines = [line.rstrip() for line in text.split("\n")]
    active = [line for line in lines if line and not line.startswith("#")]
    code = [line for line in active if line.startswith(("import ", "import\t"))]
    return Pth(code, [line for line in active if line not in code])


def fits(pth: Pth, patterns: Sequence[str]) -> bool:
    """Return whether each line that does something is one that the known tool writes."""
    lines = [*pth.code, *pth.folders]
    return all(any(re.fullmatch(pattern, line) for pattern in patterns) for line in lines)


def customizes(name: str) -> bool:
    """Return whether `import sitecustomize` or `import usercustomize` would take a file or folder of this name."""
    stem, _, suffix = name.partition(".")
    return stem in CUSTOMIZE and (suffix in ("", "py", "pyc", "so") or suffix.endswith(".so"))


def _shown(lines: Iterable[str]) -> str:
    first, *more = lines
    cut = first if len(first) <= SHOWN else first[: SHOWN - 3] + "..."
    return f"`{cut}`" + (f" and {len(more)} more" if more else "")
