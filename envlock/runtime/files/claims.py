"""What the metadata folders of an environment claim: which files are whose, with which hash and size.

Metadata is hostile input: every read is bounded and does not wait, and what is wrong with a RECORD is kept as a word
about it, next to the rows that could be read.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from envlock.runtime.distributions import normalise
from envlock.runtime.errors import FactError
from envlock.runtime.files.record import Row, row_of, rows
from envlock.runtime.host import read_bytes

RECORD_LIMIT = 16 * 1024 * 1024  # bytes; the largest RECORD met, TensorFlow's, has 3.2 million
ROW_LIMIT = 200_000  # rows; TensorFlow has 23 thousand, and what is read is held in memory
INSTALLERS_WITH_RECORD = ("pip", "uv")


class Claim(NamedTuple):
    """One row of one package's RECORD; `hash` as `sha256=...`, in the alphabet of RECORD."""

    package: str
    hash: str | None
    size: int | None


@dataclass
class Package:
    """A metadata folder, what its RECORD says, and what is wrong with that."""

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
        """Name and version, as findings show them."""
        return f"{self.name} {self.version}".rstrip()


class Places(NamedTuple):
    """The roots below which a RECORD's paths may lie, and the folders whose links were followed already."""

    roots: tuple[str, ...]
    real: dict[str, str]


def packages(folders: Iterable[str]) -> list[Package]:
    """Return every package that has a metadata folder in one of the folders, in their order, then by name."""
    found = []
    for folder in folders:
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        ours = [
            name
            for name in names
            if name.endswith((".dist-info", ".egg-info")) and not name.startswith("~")
        ]
        found += [_package(folder, name) for name in ours]
    return found


def places(prefix: str, folders: Iterable[str]) -> Places:
    """Return where files of an environment may lie: below its prefix, and below the scheme of each folder."""
    roots = [os.path.realpath(prefix)]
    for folder in folders:
        parts = folder.split("/")
        is_scheme = (
            len(parts) > 4 and parts[-3].startswith("lib") and parts[-2].startswith("python")
        )
        roots.append("/".join(parts[:-3]) if is_scheme else folder)
    return Places(tuple(dict.fromkeys(roots)), {})


def resolve(path: str, folder: str, where: Places) -> str | None:
    """Return the absolute path that a row means, links of its folder followed; None where it leads outside."""
    whole = os.path.normpath(os.path.join(folder, path))
    if not any(whole.startswith(root.rstrip("/") + "/") for root in where.roots):
        return None
    parent, _, name = whole.rpartition("/")
    return f"{_real(parent, where.real)}/{name}"


def _real(folder: str, known: dict[str, str]) -> str:
    """Return `os.path.realpath(folder)`; only folders that exist are remembered, or a RECORD could fill the memory."""
    if folder in known:
        return known[folder]
    parent, _, name = folder.rpartition("/")
    is_plain = parent in known and not os.path.islink(
        folder
    )  # most are: no need to ask for each of their ancestors
    real = f"{known[parent]}/{name}" if is_plain else os.path.realpath(folder)
    if os.path.isdir(real):
        known[folder] = real
    return real


def _package(folder: str, name: str) -> Package:
    stem, kind = os.path.splitext(name)
    title, _, version = stem.partition("-")
    found = Package(
        normalise(title) or title, version.partition("-py")[0], folder, f"{folder}/{name}"
    )
    found.installer = (_text(f"{found.info}/INSTALLER", 1000) or "").strip().lower()
    if kind == ".egg-info":
        return found
    try:
        found.text = _record(f"{found.info}/RECORD")
    except FactError as error:
        found.problem = error.message
        return found
    if found.text is not None:
        found.rows, found.problem = _readable(found.text)
        if not found.rows and found.problem is None:
            found.problem = "its RECORD is empty"
    elif found.installer in INSTALLERS_WITH_RECORD:
        found.problem = f"it has no RECORD, although {found.installer} installed it"
    return found


def _record(path: str) -> str | None:
    try:
        data = read_bytes(path, RECORD_LIMIT + 1)
    except OSError as error:
        raise FactError(f"its RECORD cannot be read: {error.strerror}") from None
    if data is not None and len(data) > RECORD_LIMIT:
        raise FactError(f"its RECORD is larger than {RECORD_LIMIT >> 20} MB")
    if data is not None and data.count(b"\n") > ROW_LIMIT:
        raise FactError(f"its RECORD has more than {ROW_LIMIT:,} lines")
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _text(path: str, limit: int) -> str | None:
    try:
        data = read_bytes(path, limit)
    except OSError:
        return None
    return None if data is None else data.decode("utf-8", "replace")


def _readable(text: str) -> tuple[list[Row], str | None]:
    """Return the rows that can be read, line by line where the whole cannot, and what is wrong with the others."""
    try:
        return rows(text), None
    except FactError:
        lines = [line.rstrip("\r") for line in text.split("\n")]
        found = [_line(line) for line in lines if line]
        bad = sum(row is None for row in found)
        what = "one line is" if bad == 1 else f"{bad} lines are"
        problem = f"its RECORD is damaged: {what} not valid by the packaging specification"
        return [row for row in found if row is not None], problem


def _line(line: str) -> Row | None:
    try:
        return row_of(next(csv.reader([line], strict=True)))
    except (csv.Error, ValueError, StopIteration):
        return None
