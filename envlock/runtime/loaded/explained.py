"""Which files of a process need no second look: those that were explained before and have not changed.

The note has a line for each. Where the content decides, it is the state and the path; for a module that a package lists, or
that is the program's own, it is the path alone, because the states of 2,700 files would take longer than all else. A note
counts only while the folders of packages are unchanged.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List, Optional, Set

LIMIT = 50_000
"""Lines of a note: a program may have modules of other names in each run."""
SETTLED = 2_000_000_000
"""Nanoseconds: a file that was changed later than this may change again within the same tick of the clock."""


class Note:
    """What is known of earlier processes.

    Attributes:
        sites: the states of the folders of packages.
        needed: the mapped files of which none may be absent.
        lines: what explains the other files.
    """

    __slots__ = ("lines", "needed", "sites")

    def __init__(self, sites: List[str], needed: List[str], lines: Set[str]) -> None:
        self.sites = sites
        self.needed = needed
        self.lines = lines

    def list_new(self, files: Iterable[str]) -> List[str]:
        """Return the files whose state is not noted."""
        return [file for file in files if get_line(file) not in self.lines]

    def add(self, lines: Iterable[str], now: int) -> None:
        """Add what explains files; what has changed a moment ago may change again unnoticed."""
        new = {line for line in lines if "\n" not in line and is_settled(line, now)}
        self.lines = new if len(self.lines) + len(new) > LIMIT else self.lines | new

    def format(self) -> str:
        """Return the text of the note."""
        return "\n".join(["\t".join(self.sites), "\t".join(self.needed), *sorted(self.lines)])


def parse(text: str) -> Note:
    """Return the note in a text; an empty one if a folder of packages has changed since."""
    sites, _, rest = text.partition("\n")
    needed, _, lines = rest.partition("\n")
    noted = sites.split("\t")
    if noted != [get_line(each.split(" ", 5)[-1]) for each in noted]:
        return Note([], [], set())
    return Note(noted, needed.split("\t") if needed else [], set(lines.split("\n")))


def get_line(path: str) -> Optional[str]:
    """Return the state and the path of a file; None if it does not exist.

    It includes the time of the last change of the inode: the time of modification can be put back.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
    return f"{status.st_dev} {status.st_ino} {status.st_size} {times} {path}"


def is_settled(line: str, now: int) -> bool:
    """Return whether the state in a line, if it has one, is older than a tick of the clock."""
    if line.startswith("/"):
        return True
    return max(map(int, line.split(" ", 5)[3:5])) + SETTLED < now
