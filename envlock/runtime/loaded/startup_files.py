"""Files that code at the start of Python opens, as a lockfile has them: `NAME sha256:...`.

A line of a .pth file can execute any file, of which its text says nothing: `exec(open("/opt/hook.py").read())`. A
process that watches its own start knows the files (envlock/guest/startup_watch.py). Any other finds them by their
names, which say where they lie without a place of one machine or the name of a user, where that is possible.
"""

from __future__ import annotations

import os
import sys

from envlock.runtime.host import read_bytes
from envlock.runtime.startup import hash_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List, Optional, Tuple

STARTUP = "startup"
"""The list in the section `loaded`; a lockfile without such a file has none."""
ABSENT = "absent"
ELSEWHERE = "elsewhere"
"""The folder of a file that only a process that watches its start finds."""
OF_USERS = ("/home/", "/root/", "/Users/")
NAME_LIMIT = 500
READ_LIMIT = 1 << 28  # bytes


def look_at_files(locked: Iterable[str]) -> List[str]:
    """Return what the locked files are by now, in the words of a lockfile."""
    found = []
    for entry in locked:
        name = entry.rpartition(" ")[0]
        path = _find(name)
        found.append(entry if path is None else describe_file(name, path))
    return sorted(found)


def describe_file(name: str, path: str) -> str:
    """Return a name and what the file is by its content."""
    try:
        data = read_bytes(path, READ_LIMIT)
    except OSError:
        data = None
    return f"{name} {ABSENT if data is None else hash_bytes(data)}"


def name_file(path: str) -> str:
    """Return a name of a file from which another process, and another machine, finds it."""
    for role, folder in _list_roles():
        for begin in (folder, os.path.realpath(folder)):
            if begin != "/" and path.startswith(f"{begin}/"):
                return _limit(role + path[len(begin) :])
    if path.startswith(OF_USERS):
        return _limit(f"{ELSEWHERE}/{os.path.basename(path)}")
    return _limit(path)


def _list_roles() -> List[Tuple[str, str]]:
    return [
        ("PREFIX", sys.prefix),
        ("PREFIX/..", os.path.dirname(sys.prefix)),  # often the project
        ("BASE", sys.base_prefix),
        ("~", os.path.expanduser("~")),
    ]


def _limit(name: str) -> str:
    return name if name.isprintable() and len(name) < NAME_LIMIT else ELSEWHERE


def _find(name: str) -> Optional[str]:
    if name.startswith("/"):
        return name
    for role, folder in reversed(_list_roles()):
        if name.startswith(f"{role}/"):
            return folder + name[len(role) :]
    return None
