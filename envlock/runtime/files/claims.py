"""What the metadata folders of an environment list: each file's owner, hash and size.

Metadata is hostile input: every read is bounded and never blocks. A defect of a RECORD is reported
together with the rows that could be read.
"""

from __future__ import annotations

import csv
import os
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from envlock.runtime.distributions import is_metadata_name, is_remnant, normalise
from envlock.runtime.errors import FactError
from envlock.runtime.files.record_rows import Row, parse_row, parse_rows
from envlock.runtime.host import read_bytes

RECORD_LIMIT = 16 * 1024 * 1024
"""Bytes; the largest RECORD seen, that of TensorFlow, has 3.2 million."""
ROW_LIMIT = 200_000
"""Rows; TensorFlow has 23 thousand, and all rows are kept in memory."""
INSTALLERS_WITH_RECORD = ("pip", "uv")


class Claim(NamedTuple):
    """One row of one package's RECORD; `hash` as `sha256=...`, in the alphabet of RECORD."""

    package: str
    hash: str | None
    size: int | None


@dataclass
class Package:
    """A metadata folder, the rows of its RECORD, and the defects of that file."""

    name: str
    version: str
    folder: str
    info: str
    rows: list[Row] = field(default_factory=list)
    text: str | None = None
    problem: str | None = None
    installer: str = ""

    @property
    def title(self) -> str:
        """Name and version, as in findings."""
        return f"{self.name} {self.version}".rstrip()


class Places(NamedTuple):
    """The root folders that files of RECORDs may be in, and the real paths of the folders seen so
    far.
    """

    roots: tuple[str, ...]
    real: dict[str, str]


def read_packages(folders: Iterable[str]) -> list[Package]:
    """Return every package with a metadata folder in one of the folders, by folder and then by
    name.
    """
    packages = []
    for folder in folders:
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        names = [name for name in names if is_metadata_name(name)]
        names = [name for name in names if not is_remnant(f"{folder}/{name}")]
        packages += [_read_package(folder, name) for name in names]
    return packages


def find_places(prefix: str, folders: Iterable[str]) -> Places:
    """Return the folders of an environment's files: its prefix, and the scheme of each folder."""
    roots = [os.path.realpath(prefix)]
    for folder in folders:
        parts = folder.split("/")
        # ROOT/lib/python3.11/site-packages
        if len(parts) > 4 and parts[-3].startswith("lib") and parts[-2].startswith("python"):
            folder = "/".join(parts[:-3])
        roots.append(folder)
    return Places(tuple(dict.fromkeys(roots)), {})


def resolve(path: str, folder: str, where: Places) -> str | None:
    """Return the absolute path of a row, with links in its folder followed; None for a path
    outside.
    """
    absolute = os.path.normpath(os.path.join(folder, path))
    if not any(absolute.startswith(root.rstrip("/") + "/") for root in where.roots):
        return None
    parent, _, name = absolute.rpartition("/")
    return f"{_resolve_folder(parent, where.real)}/{name}"


def _resolve_folder(folder: str, real_folders: dict[str, str]) -> str:
    """Return `os.path.realpath(folder)`.

    Only folders that exist are remembered, or a RECORD could fill the memory.
    """
    if folder in real_folders:
        return real_folders[folder]
    parent, _, name = folder.rpartition("/")
    if parent in real_folders and not os.path.islink(folder):
        # Most folders are of this kind, and their ancestors need no second look.
        real = f"{real_folders[parent]}/{name}"
    else:
        real = os.path.realpath(folder)
    if os.path.isdir(real):
        real_folders[folder] = real
    return real


def _read_package(folder: str, name: str) -> Package:
    stem, kind = os.path.splitext(name)
    title, _, version = stem.partition("-")
    package = Package(
        normalise(title) or title, version.partition("-py")[0], folder, f"{folder}/{name}"
    )
    package.installer = _read_installer(package.info)
    if kind == ".egg-info":
        return package
    try:
        package.text = _read_record(f"{package.info}/RECORD")
    except FactError as error:
        package.problem = error.message
        return package
    if package.text is not None:
        package.rows, package.problem = _parse_record(package.text)
        if not package.rows and package.problem is None:
            package.problem = "its RECORD is empty"
    elif package.installer in INSTALLERS_WITH_RECORD:
        package.problem = f"it has no RECORD, although {package.installer} installed it"
    return package


def _read_record(path: str) -> str | None:
    try:
        data = read_bytes(path, RECORD_LIMIT + 1)
    except OSError as error:
        raise FactError(f"its RECORD cannot be read: {error.strerror}") from None
    if data is None:
        return None
    if len(data) > RECORD_LIMIT:
        raise FactError(f"its RECORD is larger than {RECORD_LIMIT >> 20} MB")
    if data.count(b"\n") > ROW_LIMIT:
        raise FactError(f"its RECORD has more than {ROW_LIMIT:,} lines")
    return data.decode("utf-8", "surrogateescape")


def _read_installer(info: str) -> str:
    """Return the name of the installer in lower case; "" if the metadata folder does not have it."""
    try:
        data = read_bytes(f"{info}/INSTALLER", 1000)
    except OSError:
        return ""
    if data is None:
        return ""
    return data.decode("utf-8", "replace").strip().lower()


def _parse_record(text: str) -> tuple[list[Row], str | None]:
    """Return the rows of a RECORD, and its defect, if any.

    If the file as a whole cannot be parsed, it is parsed line by line.
    """
    try:
        return parse_rows(text), None
    except FactError:
        pass
    readable = []
    damaged = []
    for line in text.split("\n"):
        line = line.rstrip("\r")
        if line:
            row = _parse_line(line)
            if row is None:
                damaged.append(line)
            else:
                readable.append(row)
    # Of a path with several commas that are not quoted, pip keeps the beginning, and adds a row for
    # the file. Of sorted paths, those that begin with a line are the next ones.
    added = sorted(row.path for row in readable if row.hash is None)
    damaged = [
        line
        for line in damaged
        if not any(path.startswith(line) for path in added[bisect_left(added, line) :][:1])
    ]
    if not damaged:
        return readable, None
    what = "one line is" if len(damaged) == 1 else f"{len(damaged)} lines are"
    problem = f"its RECORD is damaged: {what} not valid by the packaging specification"
    return readable, problem


def _parse_line(line: str) -> Row | None:
    try:
        return parse_row(next(csv.reader([line], strict=True)))
    except (csv.Error, ValueError, StopIteration):
        return None
