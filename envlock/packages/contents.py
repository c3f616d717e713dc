"""What a distribution brings: its files, the modules that they are imported as, and what its own code imports."""

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

from envlock.packages.cache import folder, prepare
from envlock.packages.imports import FILE_LIMIT, of_library
from envlock.packages.installation import record_of
from envlock.runtime.drafts import PREFIX, SUFFIX, sweep
from envlock.runtime.errors import FactError, UsageError

SKIPPED = ("/tests/", "_test.py", "/conftest.py")
"""Files of a library that only its own tests import."""
LAYOUT = "1"
"""Of a cached file: another one where the same files give other names."""
END = "."
"""Its last line: one without was cut off."""


class Contents(NamedTuple):
    """The files of a distribution by their paths below `site`, as its RECORD or whatever it has lists them.

    Attributes:
        site: its `site-packages`.
        files: relative paths; None where nothing lists them.
        record: its RECORD, where this has the hash of every source file; else None.
        checkout: the folder that an editable one is imported from; else None.
        sources: the Python files below `checkout`.
    """

    site: str
    files: list[str] | None
    record: str | None
    checkout: str | None
    sources: list[str]

    def paths(self) -> list[str]:
        """Return the absolute paths of all files."""
        own = [f"{self.site}/{file}" for file in self.files or ()]
        return [*own, *(f"{self.checkout}/{file}" for file in self.sources)]

    def modules(self, name: str) -> set[str]:
        """Return the modules by which a distribution of this name is imported; below a namespace, those put there."""
        if self.files is None:
            return {name.replace("-", "_")}
        return _modules([*self.files, *self.sources])

    def imported(self, modules: set[str]) -> list[str]:
        """Return what its sources import, but for what begins as its own modules do.

        Sources are read once, and what is in them is kept in the user's cache under the hash of their RECORD.
        """
        cached = None if self.record is None else _cached(self.record)
        if cached is not None:
            with suppress(OSError, UnicodeDecodeError):
                *known, last = cached.read_text(encoding="ascii").split()
                if last == END:
                    return known
        own = {module.encode() for module in modules if "." not in module}
        found = {
            name
            for file in self.paths()
            if _is_source(file)
            for name in of_library(_read(file), own)
        }
        names = sorted(name for name in found if name.isascii())
        if cached is not None:
            with suppress(UsageError, OSError):
                _keep(cached, [*names, END])
        return names


def contents(found: Distribution) -> Contents:
    """Return what a distribution brings."""
    try:
        record = record_of(found)
        listed = found.files if record is None else []
    except FactError:
        record = listed = None
    lines = [line for line in (record or "").splitlines() if line]
    files = None if listed is None else [*map(_path, lines), *(file.as_posix() for file in listed)]
    checkout, sources = _checkout(found)
    is_whole = (
        record is not None
        and checkout is None
        and all("sha256=" in line for line in lines if ".py," in line)
    )
    return Contents(
        str(found.locate_file("")), files, record if is_whole else None, checkout, sources
    )


def _cached(record: str) -> Path | None:
    try:
        place = folder(os.environ, Path.home())
    except RuntimeError:  # no home
        return None
    return (
        place
        / "imports"
        / hashlib.sha256(f"{LAYOUT}\n{record}".encode("utf-8", "surrogateescape")).hexdigest()
    )


def _keep(cached: Path, words: list[str]) -> None:
    prepare(cached)
    _swept(cached.parent)
    temporary = cached.with_name(f"{PREFIX}{os.getpid()}{SUFFIX}")
    temporary.write_text("\n".join(words), encoding="ascii")
    temporary.replace(cached)


@cache
def _swept(folder: Path) -> None:
    """Remove what killed processes left, once: there are hundreds of files, and as many calls."""
    sweep(folder)


def _read(file: str) -> bytes:
    try:
        with open(file, "rb", 0) as stream:  # noqa: PTH123 (tens of thousands: a Path each takes as long as reading)
            return stream.read()
    except (OSError, ValueError):  # gone, or no path
        return b""


def _is_source(file: str) -> bool:
    return file.endswith(".py") and not any(sign in file for sign in SKIPPED)


def _checkout(found: Distribution) -> tuple[str | None, list[str]]:
    """Return the folder that an editable distribution is imported from, and its Python files; else None."""
    try:
        origin = json.loads(found.read_text("direct_url.json") or "{}")
        url = urlsplit(origin["url"])
        if url.scheme != "file" or not origin["dir_info"]["editable"]:
            return None, []
    except (AttributeError, ValueError, KeyError, TypeError, RecursionError):
        return None, []
    place = Path(unquote(url.path))
    root = place / "src" if (place / "src").is_dir() else place
    tops = [file for file in root.glob("*.py") if file.stem != "setup"]
    inside = (
        file for package in root.glob("*/__init__.py") for file in package.parent.rglob("*.py")
    )
    return str(root), [
        file.relative_to(root).as_posix() for file in [*tops, *islice(inside, FILE_LIMIT)]
    ]


def _path(line: str) -> str:
    return line[1:].partition('"')[0] if line.startswith('"') else line.partition(",")[0]


def _modules(files: Sequence[str]) -> set[str]:
    packages = {
        file.rpartition("/")[0] for file in files if file.rpartition("/")[2].startswith("__init__.")
    }
    found: set[str] = set()
    for file in files:
        top = file.partition("/")[0]
        if top in packages:
            found.add(top)
            continue
        if (
            not file.endswith((".py", ".so", ".pyd", ".pyc"))
            or file.startswith(("..", "/"))
            or ".dist-info/" in file
        ):
            continue
        parts = file.split("/")
        folders = ["/".join(parts[:end]) for end in range(1, len(parts))]
        inner = next((folder for folder in folders if folder in packages), None)
        module = inner or "/".join([*parts[:-1], parts[-1].partition(".")[0]])
        if "__pycache__" not in module:
            found.add(module.replace("/", "."))
    return found
