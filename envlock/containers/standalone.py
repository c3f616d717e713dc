"""A build of python-build-standalone as a tar of a context: below /opt/python, with one time and one owner."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO

from envlock.images.candidate import PythonArchive
from envlock.runtime.errors import OutsideError

PLACE = "opt/python"
PYTHON = f"/{PLACE}/bin/python3"
TAR = "python.tar"
_TOP = "python"
"""The one folder in an archive. Source: https://gregoryszorc.com/docs/python-build-standalone/main/distributions.html"""


def write(archive: PythonArchive, folder: Path, epoch: int, stream: IO[bytes]) -> None:
    """Write the tar: what is in the archive, in its order.

    Raises:
        OutsideError: it cannot be read, is not the one that was named, or holds something else than a Python.
        OSError: the stream does not take it.
    """
    path = folder / archive.file
    try:
        with path.open("rb") as source:
            digest = hashlib.sha256()
            while piece := source.read(1 << 20):
                digest.update(piece)
            found = digest.hexdigest()
            if found != archive.sha256:
                raise OutsideError(
                    f"{path} is not the named build of Python: wanted sha256 {archive.sha256}, found {found}",
                    hint="remove it and run `envlock build` again",
                )
            source.seek(0)
            with (
                tarfile.open(fileobj=source, mode="r:gz") as old,
                tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as new,
            ):
                for name in [*reversed(PurePosixPath(PLACE).parents)][1:]:
                    new.addfile(_folder(str(name), epoch))
                new.addfile(_folder(PLACE, epoch))
                for member in old:
                    _add(member, old, new, epoch)
    except (tarfile.TarError, EOFError) as error:
        raise OutsideError(f"cannot read {path}: {error}", hint="remove it and run `envlock build` again") from None


def _folder(name: str, epoch: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.mtime = tarfile.DIRTYPE, 0o755, epoch
    return info


def _add(member: tarfile.TarInfo, old: tarfile.TarFile, new: tarfile.TarFile, epoch: int) -> None:
    """Add a member in its new place; only files, folders and links within the archive belong to a Python."""
    parts = PurePosixPath(member.name).parts
    if parts == (_TOP,):
        return
    if parts[:1] != (_TOP,) or ".." in parts or not (member.isfile() or member.isdir() or member.issym()):
        raise OutsideError(
            f"the archive holds {member.name!r}, which does not belong to a Python", hint="use another build of Python"
        )
    info = tarfile.TarInfo(str(PurePosixPath(PLACE, *parts[1:])))
    info.type, info.size, info.linkname, info.mtime = member.type, member.size, member.linkname, epoch
    info.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    new.addfile(info, old.extractfile(member) if member.isfile() else None)
