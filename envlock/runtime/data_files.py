"""The files of a data path: their names, sizes and times. No file is opened."""

from __future__ import annotations

import os
import stat
from hashlib import sha256

from envlock.runtime.errors import FactError
from envlock.runtime.report import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, FrozenSet, Iterator, List, Optional, Tuple

    Identity = Tuple[int, int]
    """Device and inode of a folder."""

LIMIT = 100_000
"""Files and folders below one path: more take a script seconds at each start."""


class DataFile:
    """One input file.

    Attributes:
        name: its path below the data path, as bytes; empty where that is the file itself.
        path: the path to open.
        size: bytes.
        state: what changes whenever its content does: size, times and inode.
        changed: when its content or metadata last changed, in nanoseconds.
    """

    __slots__ = ("changed", "name", "path", "size", "state")

    def __init__(self, name: bytes, path: str, status: os.stat_result) -> None:
        self.name = name
        self.path = path
        self.size = status.st_size
        times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
        self.state = f"{status.st_size} {times} {status.st_dev} {status.st_ino}"
        self.changed = max(status.st_mtime_ns, status.st_ctime_ns)


class Survey:
    """The files of one data path, by name; nothing of their contents.

    Attributes:
        files: each of them, sorted by name.
        size: bytes of all files.
        listing: SHA-256 of their names and sizes.
        state: SHA-256 of what changes whenever a name or a content does.
    """

    __slots__ = ("files", "listing", "size", "state")

    def __init__(self, files: List[DataFile]) -> None:
        self.files = files
        self.size = sum(file.size for file in files)
        names, states = sha256(), sha256()
        for file in files:
            names.update(b"%s\0%d\n" % (file.name, file.size))
            states.update(b"%s\0%s\n" % (file.name, file.state.encode("ascii")))
        self.listing = names.hexdigest()
        self.state = states.hexdigest()

    def to_json(self, content: Optional[str]) -> Dict[str, object]:
        """Return the entry of a lockfile; `content` is the digest of the contents, if known."""
        return {
            "files": len(self.files),
            "bytes": self.size,
            "listing": self.listing,
            "content": content,
        }


def survey(path: str) -> Optional[Survey]:
    """Return the files at a path: of a folder all below it, or the file itself; None if it does not
    exist.

    Links are followed: a program reads through them as well.

    Raises:
        FactError: something there cannot be read, is neither a file nor a folder, or leads in a
            circle; or there are more than `LIMIT` entries.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        if os.path.islink(path):
            raise make_error(path, "its link leads nowhere") from None
        return None
    except OSError as error:
        raise make_error(path, error.strerror) from None
    if stat.S_ISREG(status.st_mode):
        return Survey([DataFile(b"", path, status)])
    if not stat.S_ISDIR(status.st_mode):
        raise make_error(path, "it is neither a file nor a folder")
    files = list(_iter_files(path))
    files.sort(key=_get_name)
    return Survey(files)


def _get_name(file: DataFile) -> bytes:
    return file.name


def _iter_files(root: str) -> Iterator[DataFile]:
    """Yield every file below a folder, in no particular order."""
    todo: List[Tuple[str, bytes, FrozenSet[Identity]]] = [(root, b"", frozenset())]
    number = 0
    while todo:
        folder, prefix, above = todo.pop()
        try:
            status = os.stat(folder)
            identity = (status.st_dev, status.st_ino)
            if identity in above:
                raise make_error(folder, "it leads back to a folder above it")
            with os.scandir(folder) as entries:
                for entry in entries:
                    number += 1
                    if number > LIMIT:
                        raise _make_limit_error(root)
                    name = prefix + os.fsencode(entry.name)
                    found = _examine(entry)
                    if stat.S_ISDIR(found.st_mode):
                        todo.append((entry.path, name + b"/", above | {identity}))
                    else:
                        yield DataFile(name, entry.path, found)
        except OSError as error:
            raise make_error(folder, error.strerror) from None


def _examine(entry: os.DirEntry[str]) -> os.stat_result:
    """Return the status of a file or folder.

    Raises:
        FactError: it is something else, or it cannot be examined.
    """
    try:
        found = entry.stat()
    except FileNotFoundError:
        if entry.is_symlink():
            reason = "its link leads nowhere"
        else:
            reason = "it was removed while it was examined"
        raise make_error(entry.path, reason) from None
    except OSError as error:
        raise make_error(entry.path, error.strerror) from None
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        # Opening a FIFO would block for ever.
        raise make_error(entry.path, "it is neither a file nor a folder")
    return found


def make_error(path: str, reason: Optional[str]) -> FactError:
    """Return the error for a file or folder that cannot be read."""
    hint = "correct it, or leave it out of `data` in [tool.envlock]"
    return FactError(f"cannot read the data {clean(path)}: {reason}", hint=hint)


def _make_limit_error(path: str) -> FactError:
    hint = "pack them into fewer files, or name a list of them, such as a `.dvc` file, in `data`"
    return FactError(f"{clean(path)} has more than {LIMIT:,} files and folders", hint=hint)
