"""The rows of a RECORD, and whether two RECORDs list the same files. Pure.

A wheel's RECORD and that of its installation differ in what the installer adds (INSTALLER,
bytecode, scripts for entry points) and moves (`NAME.data/`); `get_common_content` returns what both
must have in common. Source:
https://packaging.python.org/en/latest/specifications/recording-installed-packages/
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Iterable
from typing import NamedTuple

from envlock.runtime.errors import FactError

GENERATED = {
    "INSTALLER",
    "RECORD",
    "RECORD.jws",
    "RECORD.p7s",
    "REQUESTED",
    "direct_url.json",
    "provenance_url.json",
    "uv_build.json",
    "uv_cache.json",
}
"""What installers add to a metadata folder, or change in it.

Sources: the specification named above, and what pip 26 and uv 0.13 write.
"""
SCRIPT_FOLDERS = ("bin", "Scripts")


class Row(NamedTuple):
    """One file: path relative to `site-packages`, hash as `sha256=...`, size in bytes."""

    path: str
    hash: str | None
    size: int | None


def parse_rows(text: str) -> list[Row]:
    """Return the rows of a RECORD.

    Raises:
        FactError: it does not follow the specification.
    """
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return [parse_row(fields) for fields in lines if fields]
    except (csv.Error, ValueError):
        raise FactError("its RECORD does not follow the packaging specification") from None


def parse_row(fields: list[str]) -> Row:
    """Return the row with the three fields of a line.

    A path with a comma that its wheel's builder did not quote is put together again: such a line has
    more fields, of which pip keeps the first three.

    Raises:
        ValueError: they do not follow the specification.
    """
    if len(fields) > 3:
        fields = [",".join(fields[:-2]), *fields[-2:]]
    elif len(fields) == 3 and "=" in fields[2]:
        fields = [",".join(fields[:2]), fields[2], ""]
    path, digest, size = fields
    if not path or "\0" in path or (digest and "=" not in digest):
        raise ValueError(path)
    if path.endswith(".pyc") and "__pycache__/" in path:
        # numpy 2.0's wheel lists one with a hash, and every installer compiles it again.
        return Row(path, None, None)
    return Row(path, digest.rstrip("=") or None, int(size) if size else None)


def mend_rows(
    rows: Iterable[Row], is_file: Callable[[str], bool] = lambda _: False
) -> tuple[list[Row], list[str]]:
    """Return the rows with the paths that are meant, and the paths that were wrong.

    Installers copy the rows of a wheel, whatever its publisher wrote there (`/six.py`, `../six.py`,
    `six\\core.py`), and pip and uv add a row without a hash for each file that has none. A wrong row
    and one without a hash for the same file become one.

    Args:
        rows: those of an installed RECORD.
        is_file: whether a path relative to `site-packages` is a file.
    """
    rows = list(rows)
    unhashed = {row.path for row in rows if row.hash is None}
    mended, wrong, hashed = [], [], set()
    for row in rows:
        meant = find_meant_path(row.path)
        is_foreign_form = row.path.startswith("/") or "\\" in row.path
        if row.hash is not None and (meant in unhashed or (is_foreign_form and is_file(meant))):
            wrong.append(row.path)
            row = row._replace(path=meant)
        if row.hash is not None:
            hashed.add(row.path)
        mended.append(row)
    kept = [row for row in mended if row.hash is not None or row.path not in hashed]
    return kept, wrong


def find_meant_path(path: str) -> str:
    """Return a path as a row of a wheel must have it: with slashes, and relative."""
    parts = path.replace("\\", "/").split("/")
    while len(parts) > 1 and parts[0] in ("", ".", ".."):
        del parts[0]
    return "/".join(parts)


def get_common_content(listed: Iterable[Row]) -> dict[str, str]:
    """Return path -> hash of the files that a wheel and its installation have in common.

    A file that is installed outside `site-packages` has only its last name as path, because the
    installer decides where it goes. Scripts are left out, because installers rewrite their first
    line, and so is bytecode, which has no hash.
    """
    hashes: dict[str, list[str]] = {}
    for row in mend_rows(listed)[0]:
        path = find_common_path(row)
        if path is not None:
            hashes.setdefault(path, []).append(row.hash or "")
    common = {}
    for path, values in hashes.items():
        common[path] = " ".join(sorted(values))
    return common


def find_common_path(row: Row) -> str | None:
    """Return the path of a file in the common content; None if it is left out."""
    parts = row.path.replace("\\", "/").split("/")
    moved = f"../{parts[-1]}"
    if len(parts) > 2 and parts[0].endswith(".data"):
        scheme, folder = parts[1], parts[2]
        if scheme in ("purelib", "platlib"):
            return "/".join(parts[2:])
        if scheme == "scripts" or (scheme == "data" and folder in SCRIPT_FOLDERS):
            return None
        return moved
    if parts[0] in ("..", ""):
        return None if parts[-2] in SCRIPT_FOLDERS else moved
    if len(parts) == 2 and parts[0].endswith(".dist-info") and parts[1] in GENERATED:
        return None
    if row.hash is None and parts[-1].endswith(".pyc"):
        return None
    return row.path


def hash_content(common: dict[str, str]) -> str:
    """Return the sha256 of the common content, in the form that a lockfile has."""
    text = "".join([f"{path}\t{value}\n" for path, value in sorted(common.items())])
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def describe_difference(installed: dict[str, str], remote: dict[str, str]) -> str | None:
    """Return a phrase on how the installed files differ from the wheel's, or None if they do not."""
    common = installed.keys() & remote.keys()
    differing = sorted(path for path in common if installed[path] != remote[path])
    missing = sorted(remote.keys() - installed.keys())
    extra = sorted(installed.keys() - remote.keys())
    if differing:
        first = f"{differing[0]} has a different hash"
    elif missing:
        first = f"{missing[0]} is not installed"
    elif extra:
        first = f"{extra[0]} is not in the wheel"
    else:
        return None
    others = len(differing) + len(missing) + len(extra) - 1
    if others == 0:
        return first
    if others == 1:
        return f"{first}, and 1 more file differs"
    return f"{first}, and {others} more files differ"
