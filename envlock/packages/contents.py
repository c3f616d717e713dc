"""The files of a distribution, their modules, and the imports of its own code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import Distribution
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from envlock.packages.imports import FILE_LIMIT, find_library_imports
from envlock.packages.installation import read_record
from envlock.runtime.drafts import PREFIX, SUFFIX, sweep
from envlock.runtime.errors import FactError, UsageError
from envlock.runtime.user_cache import make_cache, read_own_file

SKIPPED = ("/tests/", "_test.py", "/conftest.py")
"""Files of a library that only its own tests import."""
IMPORTS = "imports"
"""The part of the user's cache that holds the imports of distributions."""
CACHED_LIMIT = 1 << 20
"""Bytes of a cached file; the one of the largest distribution has some thousand."""
LAYOUT = "1"
"""The version of the cached files; it is increased when the same sources give other names."""
END = "."
"""The last line of a cached file; a file without it was truncated."""


class Contents(NamedTuple):
    """The files of a distribution.

    Attributes:
        site: its `site-packages`.
        files: paths relative to `site`; None if no metadata lists them.
        record: its RECORD, if this has the hash of every source file; else None.
        checkout: the folder that an editable distribution is imported from, or None.
        sources: the Python files below `checkout`.
    """

    site: str
    files: list[str] | None
    record: str | None
    checkout: str | None
    sources: list[str]

    def list_paths(self) -> list[str]:
        """Return the absolute paths of all files."""
        installed = [f"{self.site}/{file}" for file in self.files or ()]
        return installed + [f"{self.checkout}/{file}" for file in self.sources]

    def list_modules(self, name: str) -> set[str]:
        """Return the modules of a distribution of this name.

        For a namespace package, they are the modules below it that belong to this distribution.
        """
        if self.files is None:
            return {name.replace("-", "_")}
        return _find_modules([*self.files, *self.sources])

    def find_imports(self, modules: set[str]) -> list[str]:
        """Return the names that its sources import, except those that begin with one of its own
        modules.
        """
        # Sources are read once: their imports are stored in the user's cache under the hash of the
        # RECORD, which changes with every source.
        key = None
        if self.record is not None:
            key = _make_key(self.record)
            names = _read_cached(key)
            if names is not None:
                return names
        own = {module.encode() for module in modules if "." not in module}
        found: set[str] = set()
        for file in self.list_paths():
            if _is_source(file):
                found.update(find_library_imports(_read(file), own))
        names = sorted(name for name in found if name.isascii())
        if key is not None:
            with suppress(UsageError, OSError):
                _write_cached(key, [*names, END])
        return names


def read_contents(distribution: Distribution) -> Contents:
    """Return the files of a distribution."""
    files: list[str] | None = []
    record: str | None = None
    try:
        record = read_record(distribution)
        if record is None:
            files = _list_files(distribution)
    except FactError:
        files = None
    lines = [line for line in (record or "").splitlines() if line]
    if record is not None:
        files = [_parse_path(line) for line in lines]
    checkout, sources = _find_checkout(distribution)
    is_hashed = all("sha256=" in line for line in lines if ".py," in line)
    if checkout is not None or not is_hashed:
        record = None
    return Contents(str(distribution.locate_file("")), files, record, checkout, sources)


def _list_files(distribution: Distribution) -> list[str] | None:
    if distribution.files is None:
        return None
    return [file.as_posix() for file in distribution.files]


def _make_key(record: str) -> str:
    """Return the name of the cached file for a RECORD."""
    return hashlib.sha256(f"{LAYOUT}\n{record}".encode("utf-8", "surrogateescape")).hexdigest()


def _read_cached(key: str) -> list[str] | None:
    """Return the names in a cached file; None if it is missing or truncated, or another user can have
    written it.
    """
    data = read_own_file(os.environ, IMPORTS, key, CACHED_LIMIT)
    with suppress(UnicodeDecodeError):
        words = (data or b"").decode("ascii").split()
        if words and words[-1] == END:
            return words[:-1]
    return None


def _write_cached(key: str, words: list[str]) -> None:
    folder = Path(make_cache(os.environ, IMPORTS))
    _sweep_once(folder)
    # Not synced: hundreds are written, and one that a crash truncates lacks its last line.
    temporary = folder / f"{PREFIX}{os.getpid()}{SUFFIX}"
    temporary.unlink(missing_ok=True)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write("\n".join(words).encode("ascii"))
    temporary.replace(folder / key)


@cache
def _sweep_once(folder: Path) -> None:
    """Remove the files that killed processes have left; only once, because there are hundreds of
    files and calls.
    """
    sweep(folder)


def _read(file: str) -> bytes:
    try:
        # Unbuffered and without a Path: there are tens of thousands of files, and making a Path of
        # each takes as long as reading.
        with open(file, "rb", 0) as stream:  # noqa: PTH123
            return stream.read()
    except (OSError, ValueError):  # it was removed, or its name is not a path
        return b""


def _is_source(file: str) -> bool:
    return file.endswith(".py") and not any(sign in file for sign in SKIPPED)


def _find_checkout(distribution: Distribution) -> tuple[str | None, list[str]]:
    """Return the folder that an editable distribution is imported from, and its Python files."""
    try:
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        url = urlsplit(origin["url"])
        if url.scheme != "file" or not origin["dir_info"]["editable"]:
            return None, []
    except (AttributeError, ValueError, KeyError, TypeError, RecursionError):
        return None, []
    root = Path(unquote(url.path))
    if (root / "src").is_dir():
        root = root / "src"
    top_level = [file for file in root.glob("*.py") if file.stem != "setup"]
    in_packages: list[Path] = []
    for package in root.glob("*/__init__.py"):
        missing = FILE_LIMIT - len(in_packages)
        in_packages += islice(package.parent.rglob("*.py"), missing)
    files = [*top_level, *in_packages]
    return str(root), [file.relative_to(root).as_posix() for file in files]


def _parse_path(line: str) -> str:
    """Return the path in a line of a RECORD, which is quoted if it contains a comma."""
    if line.startswith('"'):
        return line[1:].partition('"')[0]
    return line.partition(",")[0]


def _find_modules(files: Sequence[str]) -> set[str]:
    """Return the top-level modules of files: below a namespace package, the first package or module
    there.
    """
    packages: set[str] = set()
    for file in files:
        folder, _, name = file.rpartition("/")
        if name.startswith("__init__."):
            packages.add(folder)
    modules: set[str] = set()
    for file in files:
        top = file.partition("/")[0]
        if top in packages:
            modules.add(top)
        elif _is_module(file):
            module = _find_inner_package(file, packages)
            if module is None:
                folder, slash, name = file.rpartition("/")
                module = f"{folder}{slash}{name.partition('.')[0]}"
            if "__pycache__" not in module:
                modules.add(module.replace("/", "."))
    return modules


def _is_module(file: str) -> bool:
    if not file.endswith((".py", ".so", ".pyd", ".pyc")):
        return False
    # Scripts are outside of `site-packages`.
    return not file.startswith(("..", "/")) and ".dist-info/" not in file


def _find_inner_package(file: str, packages: set[str]) -> str | None:
    """Return the outermost package that contains a file."""
    parts = file.split("/")
    for end in range(1, len(parts)):
        folder = "/".join(parts[:end])
        if folder in packages:
            return folder
    return None
