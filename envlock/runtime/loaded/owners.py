"""Which installed package lists a file: by the text of its RECORD, without a look at the file."""

from __future__ import annotations

import os
from hashlib import sha256

from envlock.runtime.digits import parse_digits
from envlock.runtime.distributions import Distribution, find_distributions, normalise
from envlock.runtime.loaded.identities import get_mark
from envlock.runtime.shadows import owns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Tuple

    from envlock.runtime.host import Host

LISTED, UNLISTED, FOREIGN = "listed", "unlisted", "foreign"
"""A package lists the file; none does, though it lies among them; it lies elsewhere."""
SYSTEM = ("/usr/lib/", "/usr/lib64/")
"""The system installs packages here, many without a RECORD or any metadata: its own list has their files. What pip
installs lies elsewhere: https://peps.python.org/pep-0668/ and Debian's policy for Python."""


DIGITS = 16
"""Hexadecimal digits of the digest of a package's files, or of a module of Python: there are some hundred of them."""
OTHER_ENDINGS = (".pyc", ".h", ".hpp", ".inc", ".cuh", ".pyi")
"""Installers compile bytecode; headers are for compilers, and are most of TensorFlow's files."""


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
        self._orders: Dict[Tuple[str, str], List[Distribution]] = {}
        self._real: Dict[str, str] = {}

    def list_marks(self) -> List[object]:
        """Return the state of the folders of packages: it changes with each that is installed or removed."""
        return [[folder, get_mark(folder)] for folder in self.list_folders()]

    def list_folders(self) -> List[str]:
        """Return the folders of packages."""
        return sorted(self._packages)

    def find(self, path: str) -> str:
        """Return whether a package lists a file."""
        place = self._split(path)
        if place is None:
            return FOREIGN
        if self._find_row(*place) is not None:
            return LISTED
        folder, name = place
        if folder.startswith(SYSTEM):
            return LISTED
        silent = (each for each in self._packages[folder] if not self._read(each))
        is_owned = any(owns(each, _name_module(name)) for each in silent)
        return LISTED if is_owned else UNLISTED

    def get_size(self, path: str) -> Optional[int]:
        """Return the size with which a package lists a file; None if that says nothing: Debian and conda strip
        and relocate libraries after their RECORD was written.
        """
        place = self._split(path)
        found = self._find_row(*place) if place is not None else None
        if found is None:
            return None
        distribution, row = found
        size = row.rpartition(",")[2]
        installer = (distribution.read("INSTALLER") or "").strip()
        return parse_digits(size) if installer not in ("", "conda") else None

    def list_contents(self) -> Dict[str, Tuple[str, str]]:
        """Return the version and content of each package that an installer unpacked from a wheel, and the path of its
        RECORD, by name.
        """
        found = {}
        for distributions in self._packages.values():
            for each in distributions:
                content = describe_content(each)
                if content is not None:
                    found[each.name] = content, f"{each.info}/RECORD"
        return found

    def _find_row(self, folder: str, name: str) -> Optional[Tuple[Distribution, str]]:
        for distribution in self._order(folder, name.partition("/")[0]):
            row = self._read(distribution).get(name)
            if row is not None:
                return distribution, row
        return None

    def _split(self, path: str) -> Optional[Tuple[str, str]]:
        """Return the folder of packages that a file lies in, and its path there."""
        path = self._resolve_folder(path)
        for folder in self._packages:
            if path.startswith(folder + "/"):
                return folder, path[len(folder) + 1 :]
        return None

    def resolve(self, path: str) -> str:
        """Return what a path leads to; the folders of many paths are few, and are looked at once."""
        path = self._resolve_folder(path)
        return os.path.realpath(path) if os.path.islink(path) else path

    def _resolve_folder(self, path: str) -> str:
        """Return an absolute path with what its folder leads to."""
        folder, _, name = path.rpartition("/")
        real = self._real.get(folder)
        if real is None:
            real = self._real[folder] = self.resolve(folder) if folder else ""
        return f"{real}/{name}"

    def _order(self, folder: str, top: str) -> List[Distribution]:
        """Return the packages of a folder, those first whose name a file's first folder has."""
        order = self._orders.get((folder, top))
        if order is None:
            name = normalise(top.partition(".")[0])
            order = sorted(
                self._packages[folder],
                key=lambda each: (each.name != name, not each.name.startswith(name)),
            )
            self._orders[folder, top] = order
        return order

    def _read(self, distribution: Distribution) -> Dict[str, str]:
        """Return the rows of a RECORD, by path."""
        rows = self._rows.get(distribution.info)
        if rows is None:
            lines = (distribution.read("RECORD") or "").splitlines()
            rows = {line.partition(",")[0]: line for line in lines}
            quoted = [line for line in lines if line.startswith('"')]
            rows.update({line[1:].partition('"')[0]: line for line in quoted})
            self._rows[distribution.info] = rows
        return rows


def describe_content(distribution: Distribution) -> Optional[str]:
    """Return a package's version and a digest of the files that its RECORD lists: wheels of one name and version can differ.

    None stands for one that no wheel describes as a whole, or whose source is a fact: of conda and of the system, whose
    RECORDs say little; compiled here, and so otherwise on each machine; editable, or from a folder or a checkout.
    """
    installer = (distribution.read("INSTALLER") or "").strip()
    if distribution.rivals or installer in ("", "conda"):
        return None
    origin = distribution.read("direct_url.json") or ""
    if (
        "dir_info" in origin
        or "vcs_info" in origin
        or "-linux_" in (distribution.read("WHEEL") or "")
    ):
        return None
    rows = sorted(filter(_is_of_wheel, (distribution.read("RECORD") or "").splitlines()))
    if not rows:
        return None
    text = "\n".join(rows).encode("utf-8", "surrogateescape")
    return f"{distribution.version} {sha256(text).hexdigest()[:DIGITS]}"


def _is_of_wheel(row: str) -> bool:
    """Return whether a row lists a file with code or data that each installer takes from a wheel as it is."""
    path, _, rest = row.rpartition(",")[0].rpartition(",")
    is_made = ".dist-info/" in path or path.startswith("..") or path.endswith(OTHER_ENDINGS)
    return not is_made and rest != ""


def _name_module(name: str) -> str:
    """Return the module at the top of a path among packages."""
    return name.partition("/")[0].partition(".")[0]
