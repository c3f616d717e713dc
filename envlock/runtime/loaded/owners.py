"""Which installed package lists a file: by the text of its RECORD, without a look at the file."""

from __future__ import annotations

import os

from envlock.runtime.distributions import find_distributions, normalise
from envlock.runtime.loaded.identities import get_mark
from envlock.runtime.shadows import owns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Optional, Tuple

    from envlock.runtime.distributions import Distribution
    from envlock.runtime.host import Host

LISTED, UNLISTED, FOREIGN = "listed", "unlisted", "foreign"
"""A package lists the file; none does, though it lies among them; it lies elsewhere."""


class Owners:
    """The files of the installed packages, by their RECORDs, which are read when they are asked for."""

    def __init__(self, host: Host) -> None:
        """Find the packages."""
        self._packages: Dict[str, List[Distribution]] = {}
        for distribution in find_distributions(host).values():
            folder = os.path.realpath(distribution.folder)
            self._packages.setdefault(folder, []).append(distribution)
        for entry in host.path:  # a folder of packages may hold none that is described
            if entry.endswith(("site-packages", "dist-packages")):
                self._packages.setdefault(os.path.realpath(entry), [])
        self._rows: Dict[str, Dict[str, str]] = {}
        self._real: Dict[str, str] = {}

    def list_marks(self) -> List[object]:
        """Return the state of the folders of packages: it changes with each that is installed or removed."""
        return [[folder, get_mark(folder)] for folder in sorted(self._packages)]

    def find(self, path: str) -> Tuple[str, Optional[int]]:
        """Return whether a package lists a file, and with which size; None if it gives none."""
        place = self._split(path)
        if place is None:
            return FOREIGN, None
        folder, name = place
        for distribution in self._order(folder, name.partition("/")[0]):
            row = self._read(distribution).get(name)
            if row is not None:
                size = row.rpartition(",")[2]
                return LISTED, int(size) if size.isdigit() else None
            if not self._read(distribution) and owns(distribution, _name_module(name)):
                return LISTED, None  # Debian's and other packages without a RECORD
        return UNLISTED, None

    def _split(self, path: str) -> Optional[Tuple[str, str]]:
        """Return the folder of packages that a file lies in, and its path there."""
        parent, _, name = path.rpartition("/")
        if parent not in self._real:
            self._real[parent] = os.path.realpath(parent)
        path = f"{self._real[parent]}/{name}"
        for folder in self._packages:
            if path.startswith(folder + "/"):
                return folder, path[len(folder) + 1 :]
        return None

    def _order(self, folder: str, top: str) -> Iterator[Distribution]:
        """Yield the packages of a folder, those first whose name a file's first folder has."""
        name = normalise(top.partition(".")[0])
        packages = self._packages[folder]
        yield from (each for each in packages if each.name == name)
        yield from (each for each in packages if each.name.startswith(name) and each.name != name)
        yield from (each for each in packages if not each.name.startswith(name))

    def _read(self, distribution: Distribution) -> Dict[str, str]:
        """Return the rows of a RECORD, by path."""
        rows = self._rows.get(distribution.info)
        if rows is None:
            rows = {}
            for line in (distribution.read("RECORD") or "").splitlines():
                name = line.partition(",")[0]
                if line.startswith('"'):
                    name = line[1:].partition('"')[0]
                rows[os.path.normpath(name) if ".." in name else name] = line
            self._rows[distribution.info] = rows
        return rows


def _name_module(name: str) -> str:
    """Return the module at the top of a path among packages."""
    return name.partition("/")[0].partition(".")[0]
