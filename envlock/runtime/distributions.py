"""The distributions on the import path, from folder names: `importlib.metadata` costs 40 ms to import."""

from __future__ import annotations

import os
import sys

from envlock.runtime.facts import Unavailable
from envlock.runtime.host import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional

    from envlock.runtime.host import Host

OWN_NAME = "tf-envlock"
"""Left out of every lock: which envlock looks changes nothing that it looks at (`created_by` tells it)."""

NO_VERSION = Unavailable("its metadata gives no version", "no-metadata")


VENDORED = "/setuptools/_vendor"
"""What setuptools 71 and newer puts on the import path of whoever imports it.

Source: https://github.com/pypa/setuptools/blob/v71.0.0/setuptools/__init__.py
"""


class Distribution:
    """One installed distribution.

    Attributes:
        name: normalised as PEP 503 says.
        version: as its metadata folder states it, with the local label; empty when that is no version.
        folder: the `site-packages` it lies in.
        info: the `.dist-info` or `.egg-info` folder or file.
        rivals: versions of further metadata folders of the same name in the same folder; normally empty.
    """

    __slots__ = ("folder", "info", "name", "rivals", "version")

    def __init__(self, name: str, version: str, folder: str, info: str) -> None:
        self.name = name
        self.version = version
        self.folder = folder
        self.info = info
        self.rivals: List[str] = []

    def read(self, file: str) -> Optional[str]:
        """Return a file of the metadata folder, or None when there is none (or it cannot be read)."""
        try:
            return read_text(f"{self.info}/{file}")
        except OSError:
            return None

    def has(self, file: str) -> bool:
        """Return whether the metadata folder has a file: half the cost of reading one that it has not."""
        return os.access(f"{self.info}/{file}", os.F_OK)


def installed(host: Host) -> Dict[str, Distribution]:
    """Return every distribution that `import` can reach, by normalised name; the first on the path wins."""
    cached = host.cache.get("distributions")
    if cached is None:
        cached = host.cache["distributions"] = _scan(host)
    found: Dict[str, Distribution] = cached
    return found


def pth_files(host: Host) -> Dict[str, List[str]]:
    """Return the names of the .pth files in each folder of the import path, seen while distributions were listed."""
    installed(host)
    found: Dict[str, List[str]] = host.cache["pth"]
    return found


def import_path(host: Host) -> List[str]:
    """Return the import path without the script's own folder, the current folder, and what a package brings along.

    The first two differ between `envlock capture` and a script of the same environment, and a source checkout in them
    (a stray `.egg-info`) is not installed. Importing setuptools, as TensorFlow does, appends its `_vendor` folder,
    whose packages are nobody's but setuptools'.
    """
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    skipped = {"", os.getcwd() if os.path.exists(".") else ""}
    if isinstance(main, str):
        skipped.add(os.path.dirname(os.path.abspath(main)))
    skipped -= {entry for entry in host.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    kept = [
        entry
        for entry in host.path
        if entry not in skipped or entry.endswith(("site-packages", "dist-packages"))
    ]
    return [entry for entry in kept if not entry.endswith(VENDORED)]


def shadow(host: Host, package: str) -> Optional[Unavailable]:
    """Return why a package cannot be told: what lies under its name beside the script is imported instead."""
    kept = import_path(host)
    for entry in host.path:
        if entry in kept:
            return None
        place = os.path.join(entry or os.curdir, package)
        if os.path.isfile(place + ".py") or os.path.isfile(os.path.join(place, "__init__.py")):
            reason = f"a {package} beside the script or in the current folder is imported instead of the installed one"
            return Unavailable(reason, "shadowed")
    return None


def package_folder(host: Host, package: str) -> Optional[str]:
    """Return the folder of the importable package, or None; nothing is imported."""
    for entry in import_path(host):
        folder = os.path.join(entry, package)
        if os.path.isfile(os.path.join(folder, "__init__.py")):
            return folder
    return None


def normalise(name: str) -> str:
    """Return a distribution name as PEP 503 compares it: lower case, runs of `-_.` as one `-`."""
    return "-".join(filter(None, name.lower().replace("_", "-").replace(".", "-").split("-")))


def _scan(host: Host) -> Dict[str, Distribution]:
    found: Dict[str, Distribution] = {}
    pth: Dict[str, List[str]] = {}
    seen = set()
    for entry in import_path(host):
        real = os.path.realpath(entry)
        if real in seen:
            continue
        seen.add(real)
        try:
            listed = os.listdir(entry)
        except OSError:  # a zip file, or gone
            continue
        names = sorted([file for file in listed if file.endswith((".dist-info", ".egg-info"))])
        pth[entry] = [file for file in listed if file.endswith(".pth")]
        for file in names:
            if file[0].isalnum():  # pip leaves `~name` behind
                new = _distribution(entry, file)
                if _is_name(new.name):  # pip, too, passes over what has no name
                    _add(found, new)
    host.cache["envlock"] = found.pop(OWN_NAME, None)
    host.cache["pth"] = pth
    return found


def _add(found: Dict[str, Distribution], new: Distribution) -> None:
    known = found.setdefault(new.name, new)
    if known is not new and known.folder == new.folder and known.version != new.version:
        known.rivals.append(new.version)


def _distribution(folder: str, file: str) -> Distribution:
    stem = file.rpartition(".")[0]
    name, dash, version = stem.partition("-")
    info = os.path.join(folder, file)
    if file.endswith(".egg-info"):
        version = version.partition("-py")[0]
        if not version:  # a development install: `name.egg-info` without a version
            version = _header(
                Distribution(name, "", folder, info).read("PKG-INFO") or "", "Version"
            )
    elif not dash:
        version = ""
    return Distribution(normalise(name), version if is_version(version) else "", folder, info)


def _is_name(text: str) -> bool:
    return text.isascii() and text.replace("-", "").isalnum() and len(text) <= 128


def is_version(text: str) -> bool:
    """Return whether a lock can hold this text as a version."""
    return (
        text[:1].isalnum()
        and text.isascii()
        and text.translate(_VERSION_SIGNS).isalnum()
        and len(text) <= 128
    )


_VERSION_SIGNS = {ord(char): None for char in ".!+_-"}


def _header(metadata: str, field: str) -> str:
    for line in metadata.splitlines():
        if not line:
            break
        if line.startswith(field + ":"):
            return line[len(field) + 1 :].strip()
    return ""
