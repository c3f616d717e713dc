"""What `import` takes in place of an installed package: a folder, a file or a zip that stands earlier on the path.

Distributions are found by their metadata, so that a `keras` folder on PYTHONPATH, or beside the script, changed what
runs and no fact. Each entry of the import path is listed once, as Python's own finder does, and only names that an
installed package has as well are looked at more closely.

Source: https://docs.python.org/3/reference/import.html#the-path-based-finder
"""

from __future__ import annotations

import os

from envlock.runtime.distributions import import_path, installed, normalise
from envlock.runtime.facts import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, Iterator, List, Optional, Set

    from envlock.runtime.distributions import Distribution
    from envlock.runtime.host import Host

COMMON = frozenset(
    {"benchmarks", "conftest", "docs", "examples", "scripts", "setup", "test", "tests", "tools"}
)
"""Top-level names that many wheels ship by mistake and many projects have: no program imports a package's own."""

ENDINGS = (".py", ".pyc", ".so")
PACKAGE_FILES = ("__init__.py", "__init__.pyc", "__init__.so")


def shadows(host: Host) -> Dict[str, Unavailable]:
    """Return, by the name that is imported, why an installed module or package of that name is not what runs."""
    found: Optional[Dict[str, Unavailable]] = host.cache.get("shadows")
    if found is None:
        found = host.cache["shadows"] = dict(_found(host))
    return found


def shadowed(host: Host) -> Dict[str, Unavailable]:
    """Return the same by distribution: those that own a module which another one hides."""
    hidden = shadows(host)
    if not hidden:  # the usual case: no RECORD is read
        return {}
    return {
        each.name: reason
        for name, reason in hidden.items()
        for each in installed(host).values()
        if _owns(each, name)
    }


def _found(host: Host) -> Iterator[tuple[str, Unavailable]]:
    sites = {each.folder for each in installed(host).values()}
    library = (
        os.path.dirname(os.__file__) + "/"
    )  # a backport of one of its modules is installed to be hidden by it
    earlier = [
        entry for entry in host.path if entry not in sites and not f"{entry}/".startswith(library)
    ]
    candidates = {
        entry: names for entry in earlier if (names := _names(entry or os.curdir) - COMMON)
    }
    if not any(candidates.values()):
        return
    first: Set[str] = set()
    owned = _owned(sites, set().union(*candidates.values()))
    for entry in host.path:
        if entry in sites:
            first |= _owned({entry}, owned)
        for name in (candidates.get(entry, set()) & owned) - first:
            if _is_module(entry or os.curdir, name):
                first.add(name)
                yield name, _reason(host, entry, name)


def _owned(sites: Iterable[str], names: Set[str]) -> Set[str]:
    """Return which of some names are modules or packages in folders of installed packages."""
    files = {file for site in sites for file in _files(site)}
    compiled = {file.partition(".")[0] for file in files if file.endswith(".so")}
    return {name for name in names if name in files or f"{name}.py" in files or name in compiled}


def _reason(host: Host, entry: str, name: str) -> Unavailable:
    """Return why; no path is named, since a lockfile may hold the sentence."""
    variable = [
        os.path.abspath(each)
        for each in host.environ.get("PYTHONPATH", "").split(os.pathsep)
        if each
    ]
    if os.path.isfile(entry):
        where = "in a zip file on the import path"
    elif entry not in import_path(host):
        where = "beside the script or in the current folder"
    elif os.path.abspath(entry) in variable:
        where = "in a folder of PYTHONPATH"
    else:
        where = "in an earlier folder of the import path"
    return Unavailable(f"a {name} {where} is imported instead of the installed one", "shadowed")


def _names(place: str) -> Set[str]:
    """Return the names that may be importable from an entry of the path."""
    names = [
        file.partition(".") for file in _files(place) if "." not in file or file.endswith(ENDINGS)
    ]
    return {name for name, _, _ in names if name.isidentifier()}


def _files(place: str) -> List[str]:
    """Return what a folder holds, or a zip file at its top; nothing where there is neither."""
    try:
        return os.listdir(place)
    except NotADirectoryError:
        return _zipped(place)
    except OSError:
        return []


def _zipped(place: str) -> List[str]:
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(place) as archive:
            return [name.partition("/")[0] for name in archive.namelist()]
    except (OSError, BadZipFile, ValueError):
        return []


def _is_module(place: str, name: str) -> bool:
    """Return whether a name is a module or a package there.

    A folder without `__init__` yields to a later package; a file without an ending is a command, as in `bin`.
    """
    if os.path.isfile(place):
        return True
    folder = os.path.join(place, name)
    if os.path.isdir(folder):
        return any(os.path.exists(os.path.join(folder, file)) for file in PACKAGE_FILES)
    return any(file.startswith(name + ".") and file.endswith(ENDINGS) for file in _files(place))


def _owns(each: Distribution, name: str) -> bool:
    """Return whether a distribution installed the top-level module `name`, by its RECORD."""
    if each.name == normalise(name):
        return True
    lines = each.read("RECORD") or each.read("installed-files.txt") or ""
    begins = (f"{name}/", f"{name}.py,", f"{name}.cpython", f"{name}.abi3", f"{name}.so")
    return any(line.startswith(begins) for line in lines.splitlines())
