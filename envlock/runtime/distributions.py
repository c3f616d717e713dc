"""The distributions on the import path, from the names of folders: importing `importlib.metadata`
takes 40 ms.
"""

from __future__ import annotations

import os
import sys

from envlock.runtime.facts import Unavailable
from envlock.runtime.host import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional
    from zipfile import ZipFile

    from envlock.runtime.host import Host

OWN_NAME = "tf-envlock"
"""Left out of every lockfile: the version of envlock changes nothing that it records (`created_by`
has it).
"""

NO_VERSION = Unavailable("its metadata gives no version", "no-metadata")


VENDORED = "/setuptools/_vendor"
"""The folder that setuptools 71 and newer adds to the import path when it is imported.

Source: https://github.com/pypa/setuptools/blob/v71.0.0/setuptools/__init__.py
"""


def open_zip(path: str) -> ZipFile:
    """Return a zip file on the import path, opened.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a zip file.
    """
    # Not at the top: hardly any import path has a zip file, and its reader takes milliseconds.
    from zipfile import BadZipFile, ZipFile

    try:
        return ZipFile(path)
    except BadZipFile as error:
        raise ValueError(str(error)) from None


class Distribution:
    """One installed distribution.

    Attributes:
        name: normalised as PEP 503 says.
        version: that of its metadata folder, with the local label; empty if that is not a valid
            version.
        folder: the `site-packages` that contains it.
        info: the `.dist-info` or `.egg-info` folder or file.
        rivals: versions of further metadata folders of the same name in the same folder; normally
            empty.
    """

    __slots__ = ("folder", "info", "name", "rivals", "version")

    def __init__(self, name: str, version: str, folder: str, info: str) -> None:
        self.name = name
        self.version = version
        self.folder = folder
        self.info = info
        self.rivals: List[str] = []

    def read(self, file: str) -> Optional[str]:
        """Return the text of a file in the metadata folder, or None if it does not exist or cannot
        be read.
        """
        try:
            return read_text(f"{self.info}/{file}")
        except OSError:
            return None

    def has(self, file: str) -> bool:
        """Return whether the metadata folder has a file: half the cost of trying to read one that
        does not exist.
        """
        return os.access(f"{self.info}/{file}", os.F_OK)


def find_distributions(host: Host) -> Dict[str, Distribution]:
    """Return every distribution that `import` can reach, by normalised name; of several, the first
    on the path.
    """
    if "distributions" not in host.cache:
        host.cache["distributions"] = _scan(host)
    distributions: Dict[str, Distribution] = host.cache["distributions"]
    return distributions


def list_pth_files(host: Host) -> Dict[str, List[str]]:
    """Return the names of the .pth files in each folder of the import path."""
    # The scan for distributions lists each folder and remembers these names, so that no folder is
    # listed twice.
    find_distributions(host)
    names: Dict[str, List[str]] = host.cache["pth"]
    return names


def get_import_path(host: Host) -> List[str]:
    """Return the import path without the script's own folder, the current one, and vendored ones.

    The first two differ between `envlock capture` and a script of the same environment, and a
    source checkout in them (a stray `.egg-info`) is not installed. Importing setuptools, as
    TensorFlow does, appends its `_vendor` folder, whose packages only setuptools uses.
    """
    skipped = {""}
    if os.path.exists("."):  # else `getcwd` raises, because the folder was removed
        skipped.add(os.getcwd())
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    if isinstance(main, str):
        skipped.add(os.path.dirname(os.path.abspath(main)))
    # Folders that users have put on the path themselves count, even if the script is in one.
    skipped -= set(list_entries_of_pythonpath(host))
    entries = []
    for entry in host.path:
        is_site = entry.endswith(("site-packages", "dist-packages"))
        if (entry not in skipped or is_site) and not entry.endswith(VENDORED):
            entries.append(entry)
    return entries


def list_entries_of_pythonpath(host: Host) -> List[str]:
    """Return the folders that PYTHONPATH names, without empty entries."""
    return list(filter(None, host.environ.get("PYTHONPATH", "").split(os.pathsep)))


def find_shadow(host: Host, package: str) -> Optional[Unavailable]:
    """Return why a package is unavailable: another one beside the script is imported instead."""
    searched = get_import_path(host)
    for entry in host.path:
        # From the first entry of the import path on, the installed package is found.
        if entry in searched:
            return None
        place = os.path.join(entry or os.curdir, package)
        if os.path.isfile(place + ".py") or os.path.isfile(os.path.join(place, "__init__.py")):
            where = "beside the script or in the current folder"
            reason = f"a {package} {where} is imported instead of the installed one"
            return Unavailable(reason, "shadowed")
    return None


def find_package_folder(host: Host, package: str) -> Optional[str]:
    """Return the folder of the importable package, or None; nothing is imported."""
    for entry in get_import_path(host):
        folder = os.path.join(entry, package)
        if os.path.isfile(os.path.join(folder, "__init__.py")):
            return folder
    return None


def normalise(name: str) -> str:
    """Return a distribution name as PEP 503 compares it: lower case, runs of `-_.` as one `-`."""
    return "-".join(filter(None, name.lower().replace("_", "-").replace(".", "-").split("-")))


def _scan(host: Host) -> Dict[str, Distribution]:
    distributions: Dict[str, Distribution] = {}
    pth: Dict[str, List[str]] = {}
    seen = set()
    for entry in get_import_path(host):
        real = os.path.realpath(entry)
        if real in seen:
            continue
        seen.add(real)
        try:
            files = os.listdir(entry)
        except OSError:  # a zip file, or removed
            continue
        pth[entry] = [file for file in files if file.endswith(".pth")]
        # Sorted, so that of two metadata folders with one name the same is first on every file
        # system.
        for file in sorted(files):
            # pip can leave a `~name` there
            if file.endswith((".dist-info", ".egg-info")) and file[0].isalnum():
                new = _make_distribution(entry, file)
                if _is_name(new.name):  # pip, too, skips a folder without a name
                    _add(distributions, new)
    host.cache["envlock"] = distributions.pop(OWN_NAME, None)
    host.cache["pth"] = pth
    return distributions


def _add(distributions: Dict[str, Distribution], new: Distribution) -> None:
    known = distributions.setdefault(new.name, new)
    if known is not new and known.folder == new.folder and known.version != new.version:
        known.rivals.append(new.version)


def _make_distribution(folder: str, file: str) -> Distribution:
    stem = file.rpartition(".")[0]
    name, dash, version = stem.partition("-")
    distribution = Distribution(normalise(name), "", folder, os.path.join(folder, file))
    if file.endswith(".egg-info"):
        version = version.partition("-py")[0]
        if not version:  # a development install: `name.egg-info` without a version
            version = _get_header(distribution.read("PKG-INFO") or "", "Version")
    elif not dash:
        version = ""
    if is_version(version):
        distribution.version = version
    return distribution


def _is_name(text: str) -> bool:
    return text.isascii() and text.replace("-", "").isalnum() and len(text) <= 128


def is_version(text: str) -> bool:
    """Return whether a lockfile can have this text as a version."""
    return (
        text[:1].isalnum()
        and text.isascii()
        and text.translate(_VERSION_SIGNS).isalnum()
        and len(text) <= 128
    )


_VERSION_SIGNS = {ord(char): None for char in ".!+_-"}


def _get_header(metadata: str, field: str) -> str:
    for line in metadata.splitlines():
        if not line:
            break
        if line.startswith(field + ":"):
            return line[len(field) + 1 :].strip()
    return ""
