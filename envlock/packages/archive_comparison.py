"""Installed files and those in a wheel's archive, by their bytes, whatever its RECORD says of them."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from envlock.lock.models import WrongRecord
from envlock.runtime.files.record_rows import (
    Row,
    describe_difference,
    find_common_path,
    find_meant_path,
    get_common_content,
    mend_rows,
)
from envlock.runtime.report import clean, count

UNLISTED = ("RECORD", "RECORD.jws", "RECORD.p7s")
"""Files in `.dist-info` that no RECORD needs to list."""
CHUNK = 1 << 20


def is_as_recorded(rows: Sequence[Row], folder: Path) -> bool:
    """Return whether every installed file has the SHA-256 that its row has.

    Those that installers write themselves are left out.
    """
    for row in rows:
        if find_common_path(row) is None:
            continue
        if row.hash is None or hash_file(folder / row.path) != row.hash:
            return False
    return True


def describe_other_files(
    rows: Sequence[Row], folder: Path, archive: Mapping[str, str]
) -> str | None:
    """Return a phrase on how the installed files differ from those in an archive; None if they do
    not.

    Args:
        rows: those of the installed RECORD.
        folder: the `site-packages`.
        archive: name -> hash of each file in the wheel.
    """
    expected = get_common_content(Row(name, digest, None) for name, digest in archive.items())
    places = {path: path for path in expected if not path.startswith("../")}
    for row in mend_rows(rows, lambda path: (folder / path).is_file())[0]:
        path = find_common_path(row)
        if path is not None:
            places[path] = row.path
    installed = {}
    for path, place in places.items():
        digest = hash_file(folder / place)
        if digest is not None:
            installed[path] = digest
    return describe_difference(installed, expected)


def find_wrong_rows(rows: Iterable[Row], archive: Mapping[str, str]) -> WrongRecord | None:
    """Return what a publisher did wrong in the RECORD of a wheel; None if it is right."""
    listed = {row.path: row.hash for row in rows if not _is_unlisted(row.path)}
    omitted = sorted(name for name in archive if name not in listed and not _is_unlisted(name))
    files: dict[str, str | None] = {}
    absent, other = [], []
    for path, recorded in sorted(listed.items()):
        if path not in archive:
            absent.append(path)
            if find_meant_path(path) not in archive:
                files[path] = None
        elif not _has_hash(archive[path], recorded):
            other.append(path)
            files[path] = _convert_to_hex(archive[path])
    parts = []
    for paths, text in (
        (omitted, "omits {}"),
        (absent, "lists {} that its archive does not have"),
        (other, "does not have the SHA-256 of {}"),
    ):
        if paths:
            parts.append(f"{text.format(count(len(paths), 'file'))}, such as {clean(paths[0])}")
    if not parts:
        return None
    return WrongRecord(what=f"the wheel's own RECORD {', and '.join(parts)}"[:900], files=files)


def hash_file(path: Path) -> str | None:
    """Return the hash of a file in the form of a RECORD; None if it is not a file or unreadable."""
    digest = hashlib.sha256()
    try:
        if not path.is_file():
            return None
        with path.open("rb") as stream:
            while block := stream.read(CHUNK):
                digest.update(block)
    except (OSError, ValueError):
        return None
    return f"sha256={urlsafe_b64encode(digest.digest()).decode().rstrip('=')}"


def _has_hash(own: str, recorded: str | None) -> bool:
    """Return whether a row has the SHA-256 of a file, or a longer hash, which is not compared, or
    none.

    Others are not allowed. Source:
    https://packaging.python.org/en/latest/specifications/recording-installed-packages/#the-record-file
    """
    if recorded is None or recorded.startswith(("sha384=", "sha512=")):
        return True
    # Some builders write hexadecimal digits.
    return recorded in (own, f"sha256={_convert_to_hex(own)}")


def _convert_to_hex(digest: str) -> str:
    return urlsafe_b64decode(digest.partition("=")[2] + "=").hex()


def _is_unlisted(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder.endswith(".dist-info") and name in UNLISTED
