"""The files of a wheel on this machine: its RECORD, and their hashes."""

from __future__ import annotations

import hashlib
import zipfile
from base64 import urlsafe_b64encode
from pathlib import Path

from envlock.runtime.archives import DamagedArchiveError, open_zip
from envlock.runtime.errors import OutsideError
from envlock.runtime.report import clean

RECORD_LIMIT = 64 * 1024 * 1024
"""Bytes of an uncompressed RECORD."""


class BadWheel(OutsideError):  # noqa: N818 (it says what it is)
    """A wheel does not follow the specification, so it is unknown what it installs."""


def read_wheel_record(wheel: Path) -> bytes:
    """Return the RECORD of a wheel on this machine.

    Raises:
        BadWheel: it is not a valid wheel, or cannot be read.
    """
    name = clean(wheel.name)
    try:
        with open_zip(str(wheel)) as archive:
            entry = _find_record(name, archive.infolist())
            with archive.open(entry) as stream:
                data = stream.read(RECORD_LIMIT + 1)
    except DamagedArchiveError as error:
        raise _unsound(name, f"it is not a valid zip file ({error})") from None
    except OSError as error:
        raise BadWheel(f"cannot read the wheel {wheel}: {error.strerror}") from None
    if len(data) != entry.file_size:
        raise _unsound(name, "the length of its RECORD contradicts its table of contents")
    return data


def hash_files(wheel: Path) -> dict[str, str]:
    """Return the hash of every file in a wheel on this machine, in the form of a RECORD, by name.

    Raises:
        BadWheel: it is not a valid wheel, or cannot be read.
    """
    read_wheel_record(wheel)  # refuses an archive that readers could read in different ways
    try:
        with open_zip(str(wheel)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            return {entry.filename: _hash_entry(archive, entry) for entry in entries}
    except (DamagedArchiveError, OSError) as error:
        raise BadWheel(f"cannot read the wheel {wheel}: {error}") from None


def _hash_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str:
    digest = hashlib.sha256()
    with archive.open(entry) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return f"sha256={urlsafe_b64encode(digest.digest()).decode().rstrip('=')}"


def _unsound(name: str, why: str) -> BadWheel:
    return BadWheel(f"{name} is not a valid wheel: {why}", hint="use another index")


def _find_record(wheel: str, entries: list[zipfile.ZipInfo]) -> zipfile.ZipInfo:
    """Return the entry of the RECORD.

    Raises:
        BadWheel: there is not exactly one, or readers could disagree about its content.
    """
    names: set[str] = set()
    for entry in entries:
        if entry.orig_filename != entry.filename:
            raise _unsound(wheel, f"the name {entry.filename} has a NUL byte")
        if entry.filename in names:
            raise _unsound(wheel, f"it has {entry.filename} twice")
        if entry.flag_bits & 0x1:
            raise _unsound(wheel, f"{entry.filename} is encrypted")
        names.add(entry.filename)
    tops = {name.partition("/")[0] for name in names}
    folders = [top for top in tops if top.endswith(".dist-info")]
    if len(folders) != 1:
        raise _unsound(wheel, f"it has {len(folders)} folders named .dist-info, not one")
    for entry in entries:
        if entry.filename == f"{folders[0]}/RECORD":
            break
    else:
        raise _unsound(wheel, "it has no RECORD")
    if entry.file_size > RECORD_LIMIT:
        raise _unsound(wheel, f"its RECORD is larger than {RECORD_LIMIT} bytes")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _unsound(wheel, "its RECORD is compressed in a way that wheels do not use")
    return entry
