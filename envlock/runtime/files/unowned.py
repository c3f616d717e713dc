"""Files that no package owns, such as leftovers of upgrades, and files that Python runs when it
starts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from envlock.runtime.files.compiled_file import CompiledFile, parse_compiled_name

COUNT_LIMIT = 10_000
"""Files of a foreign folder that are counted."""
SITES = ("site-packages", "dist-packages")


class Ownership(NamedTuple):
    """What packages own: files, the folders that hold them, and whole trees."""

    files: Container[str]
    folders: set[str]
    trees: set[str]


class Stranger(NamedTuple):
    """A file or folder that no package owns; `files` is the number of files and links in a folder,
    None for a file.
    """

    path: str
    is_link: bool
    files: int | None

    @property
    def is_inert(self) -> bool:
        """Whether it is an empty folder that `import` cannot name.

        uv creates the folder of an empty `NAME.libs/` in a wheel, and pip does not.
        """
        return self.files == 0 and not os.path.basename(self.path).isidentifier()


class Surroundings(NamedTuple):
    """The files that no package owns, and every .pyc file of a `__pycache__`."""

    strangers: list[Stranger]
    bytecode: list[str]


def list_sites(folders: Iterable[str]) -> list[str]:
    """Return the folders of the import path that only installers should write to."""
    return [folder for folder in folders if folder.rpartition("/")[2] in SITES]


def find_manager(folder: str, patterns: Iterable[tuple[str, str]]) -> str | None:
    """Return the package manager of a folder, from (pattern, name) pairs, or None."""
    for pattern, name in patterns:
        if fnmatchcase(folder, pattern):
            return name
    return None


def list_folders(files: Iterable[str], site: str) -> set[str]:
    """Return every folder below `site` that contains one of the files, and `site` itself."""
    folders = {site}
    for path in files:
        folder = path.rpartition("/")[0]
        while folder not in folders and folder.startswith(site + "/"):
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders


def look_around(owned: Ownership) -> Surroundings:
    """Return the contents of the folders of owned files and of their `__pycache__`, sorted by path."""
    strangers, bytecode = [], []
    caches = set()
    for folder in owned.folders:
        if not folder.endswith("/__pycache__"):
            caches.add(f"{folder}/__pycache__")
    for folder in sorted(owned.folders | caches):
        for entry in _list_entries(folder):
            if folder.endswith("/__pycache__") and entry.name.endswith(".pyc"):
                bytecode.append(entry.path)
            elif not _is_owned(entry.path, owned, caches):
                strangers.append(_describe_stranger(entry))
    return Surroundings(strangers, bytecode)


def list_redirected(folders: Iterable[str], prefix: str | None) -> list[CompiledFile]:
    """Return the bytecode of some folders that Python keeps below a prefix instead (PYTHONPYCACHEPREFIX)."""
    found = []
    for folder in sorted(folders) if prefix is not None else ():
        for entry in _list_entries(f"{prefix}{folder}"):
            file = parse_compiled_name(f"{folder}/__pycache__/{entry.name}")
            if file is not None:
                found.append(file._replace(path=entry.path))
    return found


def _list_entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:  # a folder that is missing: its files are reported as missing
        return []


def _is_owned(path: str, owned: Ownership, caches: set[str]) -> bool:
    return path in owned.files or path in owned.folders or path in owned.trees or path in caches


def _describe_stranger(entry: os.DirEntry[str]) -> Stranger:
    try:
        is_link, is_folder = entry.is_symlink(), entry.is_dir(follow_symlinks=False)
    except OSError:
        is_link, is_folder = False, False
    return Stranger(entry.path, is_link, _count(entry.path) if is_folder else None)


def _count(folder: str) -> int:
    """Return the number of files and links in a folder and those below it, at most COUNT_LIMIT; 1 at
    least if a folder cannot be read.
    """
    unread: list[OSError] = []
    total = 0
    for parent, folders, files in os.walk(folder, onerror=unread.append):  # follows no link
        # `os.walk` calls a link to a folder a folder, and what it leads to can be imported.
        links = sum(os.path.islink(f"{parent}/{name}") for name in folders)
        total += len(files) + links
        if total >= COUNT_LIMIT:
            break
    if unread:
        total = max(total, 1)
    return min(total, COUNT_LIMIT)


CUSTOMIZE = ("sitecustomize", "usercustomize")
PTH_LIMIT = 1 << 20
"""Bytes of a .pth file that are read."""
SHOWN = 80
"""Characters of a line in a message."""


class Pth(NamedTuple):
    """What the lines of a .pth file do: code that they run, folders that they add."""

    code: list[str]
    folders: list[str]

    @property
    def what(self) -> str:
        """What it does, as a phrase for messages; empty if it does nothing."""
        parts = []
        if self.code:
            parts.append(f"runs {_shorten_lines(self.code)}")
        if self.folders:
            parts.append(f"adds {_shorten_lines(self.folders)} to the import path")
        return " and ".join(parts)


def read_pth(text: str) -> Pth:
    """Return what `site` does with the lines of a .pth file.

    Source: https://docs.python.org/3/library/site.html (and `addpackage` in Lib/site.py)
    """
    code, folders = [], []
    for line in text.split("\n"):
        line = line.rstrip()
        if line.startswith(("import ", "import\t")):
            code.append(line)
        elif line and not line.startswith("#"):
            folders.append(line)
    return Pth(code, folders)


def matches_patterns(pth: Pth, patterns: Sequence[str]) -> bool:
    """Return whether each line with an effect is one that the known tool writes."""
    return all(_matches_any(line, patterns) for line in (*pth.code, *pth.folders))


def _matches_any(line: str, patterns: Sequence[str]) -> bool:
    return any(re.fullmatch(pattern, line) for pattern in patterns)


def is_customization(name: str) -> bool:
    """Return whether `import sitecustomize` or `import usercustomize` loads a file of this name."""
    stem, _, suffix = name.partition(".")
    return stem in CUSTOMIZE and (suffix in ("", "py", "pyc", "so") or suffix.endswith(".so"))


def _shorten_lines(lines: Sequence[str]) -> str:
    """Return the first line, shortened if it is long, and the number of the others."""
    first = lines[0]
    if len(first) > SHOWN:
        first = first[: SHOWN - 3] + "..."
    if len(lines) == 1:
        return f"`{first}`"
    return f"`{first}` and {len(lines) - 1} more"
