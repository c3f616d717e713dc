"""What a RECORD says of a distribution's files, and whether two RECORDs tell of the same ones. Pure.

A wheel's RECORD and the one that an installer leaves behind differ in what the installer adds (INSTALLER, bytecode,
scripts for entry points) and moves (`NAME.data/`); `content` is what both must have in common.
Source: https://packaging.python.org/en/latest/specifications/recording-installed-packages/
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable
from typing import NamedTuple

from envlock.runtime.errors import FactError

GENERATED = {
    *(
        "INSTALLER",
        "RECORD",
        "RECORD.jws",
        "RECORD.p7s",
        "REQUESTED",
        "direct_url.json",
        "provenance_url.json",
    ),
    *("uv_build.json", "uv_cache.json"),
}
"""What installers add to a metadata folder, or change in it.

Sources: the specification named above, and what pip 26 and uv 0.13 write.
"""
SCRIPT_FOLDERS = ("bin", "Scripts")


class Row(NamedTuple):
    """One file: its path relative to `site-packages`, its hash as `sha256=...`, its size in bytes."""

    path: str
    hash: str | None
    size: int | None


def rows(text: str) -> list[Row]:
    """Return the rows of a RECORD.

    Raises:
        FactError: it is not what the specification says.
    """
    try:
        return [
            row_of(fields)
            for fields in csv.reader(io.StringIO(text, newline=""), strict=True)
            if fields
        ]
    except (csv.Error, ValueError):
        raise FactError("its RECORD does not follow the packaging specification") from None


def row_of(fields: list[str]) -> Row:
    """Return the row that the three fields of a line make.

    Raises:
        ValueError: they are not what the specification says.
    """
    path, digest, size = fields
    if not path or "\0" in path or (digest and "=" not in digest):
        raise ValueError(path)
    if path.endswith(".pyc") and "__pycache__/" in path:
        return Row(
            path, None, None
        )  # numpy 2.0's wheel lists one with a hash, and every installer compiles it anew
    return Row(path, digest.rstrip("=") or None, int(size) if size else None)


def content(listed: Iterable[Row]) -> dict[str, str]:
    """Return path -> hash of what a wheel and its installation have in common.

    A file that is installed outside `site-packages` is known by its last name only: where it goes is up to the
    installer. Scripts are left out, since their first line is rewritten, and so is bytecode, which has no hash.
    """
    found: dict[str, list[str]] = {}
    for row in listed:
        path = _common(row)
        if path is not None:
            found.setdefault(path, []).append(row.hash or "")
    return {path: " ".join(sorted(hashes)) for path, hashes in found.items()}


def _common(row: Row) -> str | None:
    parts = row.path.replace("\\", "/").split("/")
    if len(parts) > 2 and parts[0].endswith(".data"):
        if parts[1] in ("purelib", "platlib"):
            return "/".join(parts[2:])
        is_script = parts[1] == "scripts" or (parts[1] == "data" and parts[2] in SCRIPT_FOLDERS)
        return None if is_script else f"../{parts[-1]}"
    if parts[0] in ("..", ""):
        return None if parts[-2] in SCRIPT_FOLDERS else f"../{parts[-1]}"
    if len(parts) == 2 and parts[0].endswith(".dist-info") and parts[1] in GENERATED:
        return None
    return None if row.hash is None and parts[-1].endswith(".pyc") else row.path


def digest(common: dict[str, str]) -> str:
    """Return the sha256 of `content`, as a lock holds it."""
    text = "".join(f"{path}\t{value}\n" for path, value in sorted(common.items()))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def difference(installed: dict[str, str], remote: dict[str, str]) -> str | None:
    """Return in words how the installed files differ from the wheel's, or None when they are the same."""
    other = sorted(
        path for path in installed.keys() & remote.keys() if installed[path] != remote[path]
    )
    missing = sorted(remote.keys() - installed.keys())
    added = sorted(installed.keys() - remote.keys())
    for paths, what in (
        (other, "has a different hash"),
        (missing, "is not installed"),
        (added, "is not in the wheel"),
    ):
        if paths:
            more = len(other) + len(missing) + len(added) - 1
            return f"{paths[0]} {what}" + (
                f", and {more} more {'file differs' if more == 1 else 'files differ'}"
                if more
                else ""
            )
    return None
