"""What files are by their content, and a note of that in the user's cache: a file is read again only if
its device, inode, size or times have changed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from hashlib import sha256

from envlock.runtime.loaded.explained import SETTLED
from envlock.runtime.loader.elf import read_elf
from envlock.runtime.named_content import identify
from envlock.runtime.user_cache import read_own_file, write_own_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

PART = "loaded"
"""The part of the cache that holds the notes, one for each interpreter."""
LIMIT = 1 << 24  # bytes


class Identities:
    """What files are, as far as this user's envlock has read them.

    Attributes:
        explained: files of modules, and states of libraries (`explained.get_line`), that a package was found to
            list, while `sites` is as it was.
        sites: the state of the folders of installed packages.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read the note of this interpreter, if there is one."""
        self._environ = environ
        self._name = sha256(os.fsencode(f"{sys.executable}\0{sys.version}")).hexdigest()
        noted = read_note(environ, self._name)
        self._known: Dict[str, List[Any]] = noted.get("files", {})
        self.explained = set(noted.get("explained", "").split("\n"))
        self.sites: object = noted.get("sites")
        self.is_changed = False

    def get(self, path: str) -> str:
        """Return what a file is: its size, its build-id if it is a library, and its digest.

        Raises:
            OSError: it cannot be read.
        """
        mark = get_mark(path)
        if mark is None:
            raise FileNotFoundError(path)
        known = self._known.get(path)
        if known is not None and known[:-1] == mark:
            return str(known[-1])
        identity = _describe(path, mark[2])
        if max(mark[3:]) + SETTLED < time.time_ns():
            self._known[path] = [*mark, identity]
            self.is_changed = True
        return identity

    def save(self) -> None:
        """Write the note if something new is known; without a cache, files are read again next time."""
        if self.is_changed:
            noted = {
                "files": self._known,
                "explained": "\n".join(sorted(self.explained)),
                "sites": self.sites,
            }
            write_note(self._environ, self._name, noted)
            self.is_changed = False


def get_mark(path: str) -> Optional[List[int]]:
    """Return what changes if a file or the entries of a folder do; None without it.

    It includes the time of the last change of the inode: the time of modification can be put back.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return [status.st_dev, status.st_ino, status.st_size, *times]


def _describe(path: str, size: int) -> str:
    identity = identify(path)
    if path.endswith(".py") or identity.startswith("build-id:"):
        return identity
    try:
        build_id = read_elf(path).build_id
    except (OSError, ValueError):
        build_id = None
    return f"{size} build-id:{build_id} {identity}" if build_id else f"{size} {identity}"


def read_note(environ: Mapping[str, str], name: str) -> Dict[str, Any]:
    """Return a note of this user's cache; empty without one that can be believed."""
    data: Optional[bytes] = read_own_file(environ, PART, name, LIMIT)
    try:
        noted = json.loads(data or b"{}")
    except ValueError:
        return {}
    return noted if isinstance(noted, dict) else {}


def write_note(environ: Mapping[str, str], name: str, noted: Mapping[str, object]) -> None:
    """Write a note into this user's cache, if there is one."""
    write_own_file(environ, PART, name, json.dumps(noted).encode("ascii"))
