"""Repack a build of python-build-standalone as a tar below /opt/python, with one time and one
owner.
"""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO

from envlock.image.bases.candidate import PythonArchive
from envlock.runtime.archives import DamagedArchiveError, open_tar
from envlock.runtime.errors import OutsideError

PLACE = "opt/python"
PYTHON = f"/{PLACE}/bin/python3"
TAR = "python.tar"
_TOP = "python"
"""The one folder in an archive.

Source: https://gregoryszorc.com/docs/python-build-standalone/main/distributions.html
"""


def write(archive: PythonArchive, folder: Path, epoch: int, stream: IO[bytes]) -> None:
    """Write the tar with the members of the archive, in their order.

    Raises:
        OutsideError: the archive cannot be read, is not the named one, or contains something other
            than a Python.
        OSError: the stream cannot be written.
    """
    path = folder / archive.file
    try:
        with path.open("rb") as source:
            _check_digest(source, path, archive.sha256)
            source.seek(0)
            with (
                open_tar(source, "r:gz") as old,
                tarfile.open(
                    fileobj=stream, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8"
                ) as new,
            ):
                folders: set[PurePosixPath] = set()
                for member in old:
                    _add(member, old, new, epoch, folders)
    except DamagedArchiveError as error:
        raise OutsideError(
            f"cannot read {path}: {error}", hint="remove it and run `envlock build` again"
        ) from None


def _check_digest(source: IO[bytes], path: Path, wanted: str) -> None:
    digest = hashlib.sha256()
    while piece := source.read(1 << 20):
        digest.update(piece)
    if digest.hexdigest() != wanted:
        raise OutsideError(
            f"{path} is not the named build of Python: "
            f"wanted sha256 {wanted}, found {digest.hexdigest()}",
            hint="remove it and run `envlock build` again",
        )


def _add(
    member: tarfile.TarInfo,
    old: tarfile.TarFile,
    new: tarfile.TarFile,
    epoch: int,
    folders: set[PurePosixPath],
) -> None:
    """Add a member at its new path, and its parent folders that are not in `folders` yet."""
    parts = PurePosixPath(member.name).parts
    # A Python consists only of files, folders and links within the archive.
    is_content = member.isfile() or member.issym()
    is_known = member.isdir() or (len(parts) > 1 and is_content)
    if parts[:1] != (_TOP,) or ".." in parts or not is_known:
        raise OutsideError(
            f"the archive holds {member.name!r}, which does not belong to a Python",
            hint="use another build of Python",
        )
    place = PurePosixPath(PLACE, *parts[1:])
    # From the outermost folder on; the last of the parents is `.`, which has no entry.
    missing = list(place.parents[-2::-1])
    if member.isdir():
        missing.append(place)
    # A folder without an entry would get the time of the build.
    for folder in missing:
        if folder not in folders:
            entry = tarfile.TarInfo(str(folder))
            entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, epoch
            new.addfile(entry)
            folders.add(folder)
    if member.isdir():
        return
    info = tarfile.TarInfo(str(place))
    info.type, info.size, info.linkname = member.type, member.size, member.linkname
    info.mtime = epoch
    info.mode = 0o755 if member.mode & 0o100 else 0o644
    content = old.extractfile(member) if member.isfile() else None
    new.addfile(info, content)
