"""Find modules that `import` loads instead of an installed package, because they are earlier on the
path.

Distributions are found by their metadata, so without this module a `keras` folder on PYTHONPATH, or
beside the script, would change what runs without changing a fact. Each entry of the import path is
listed once, as by Python's own finder, and only names that an installed package has as well are
examined further.

Source: https://docs.python.org/3/reference/import.html#the-path-based-finder
"""

from __future__ import annotations

import os

from envlock.runtime.distributions import (
    Distribution,
    find_distributions,
    get_import_path,
    list_doubled,
    list_entries_of_pythonpath,
    normalise,
)
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host, note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, Iterator, List, Set, Tuple


COMMON = frozenset(
    {"benchmarks", "conftest", "docs", "examples", "scripts", "setup", "test", "tests", "tools"}
)
"""Top-level names that many wheels contain by mistake and many projects have: no program imports
those of a package.
"""

ENDINGS = (".py", ".pyc", ".so")
PACKAGE_FILES = ("__init__.py", "__init__.pyc", "__init__.so")


def find_shadows(host: Host) -> Dict[str, Unavailable]:
    """Return, by module name, why an installed module or package is not the one that runs."""
    if "shadows" not in host.cache:
        host.cache["shadows"] = {**dict(_iter_hidden_modules(host)), **dict(_iter_doubled(host))}
    reasons: Dict[str, Unavailable] = host.cache["shadows"]
    return reasons


def find_shadowed_distributions(host: Host) -> Dict[str, Unavailable]:
    """Return the same by distribution: those that own a module which another one hides."""
    hidden = find_shadows(host)
    # The usual case: no RECORD is read.
    if not hidden:
        return {}
    reasons = {}
    for name, reason in hidden.items():
        for distribution in find_distributions(host).values():
            if owns(distribution, name):
                reasons[distribution.name] = reason
    return reasons


def _iter_hidden_modules(host: Host) -> Iterator[Tuple[str, Unavailable]]:
    """Yield the names of installed modules that also exist earlier on the path, and what hides
    each.
    """
    # A zip file hides what it has besides its own distributions, which are compared by their versions.
    sites = set(filter(os.path.isdir, {each.folder for each in find_distributions(host).values()}))
    candidates = _list_candidates(host, sites)
    if not any(candidates.values()):
        return
    owned = _filter_owned(sites, set().union(*candidates.values()))
    # In the order of the path: the first entry that has a name is the one that is imported.
    taken: Set[str] = set()
    for entry in host.path:
        if entry in sites:
            taken |= _filter_owned({entry}, owned)
        for name in (candidates.get(entry, set()) & owned) - taken:
            if _is_module(entry or os.curdir, name):
                taken.add(name)
                yield name, _explain(host, entry, name)
                continue
            for deeper in _iter_hidden_parts(entry or os.curdir, name, sites):
                yield deeper, _explain(host, entry, deeper)


def _iter_doubled(host: Host) -> Iterator[Tuple[str, Unavailable]]:
    """Yield the installed modules that a package or a library in the same folder goes before, which no RECORD lists.

    Source: FileFinder in importlib/_bootstrap_external.py
    """
    for folder, names in list_doubled(host).items():
        for name in names:
            first = f"{name}/__init__.py"
            if not os.path.isfile(os.path.join(folder, first)):
                libraries = [
                    file
                    for file in list_files(folder)
                    if file.startswith(f"{name}.") and file.endswith(".so")
                ]
                if not libraries:
                    continue
                first = libraries[0]
            records = [each.read("RECORD") or "" for each in find_distributions(host).values()]
            installed, listed = (
                any(f"\n{file}," in f"\n{text}" for text in records)
                for file in (f"{name}.py", first)
            )
            if installed and not listed:
                yield (
                    name,
                    Unavailable(
                        f"{first} beside it is imported instead of the installed {name}.py",
                        "shadowed",
                    ),
                )


def _iter_hidden_parts(place: str, name: str, sites: Set[str]) -> Iterator[str]:
    """Yield what a folder without `__init__` hides of an installed one without it: `google.protobuf`.

    The parts of a namespace package are searched in the order of the path, each by itself.
    """
    open_folders = [name]
    while open_folders:
        within = open_folders.pop()
        beside = [os.path.join(site, *within.split(".")) for site in sites]
        if any(_is_package(folder) for folder in beside):
            continue
        here = os.path.join(place, *within.split("."))
        for part in sorted(_list_names(here) & _filter_owned(beside, _list_names(here))):
            if _is_module(here, part):
                yield f"{within}.{part}"
            else:
                open_folders.append(f"{within}.{part}")


def _list_candidates(host: Host, sites: Set[str]) -> Dict[str, Set[str]]:
    """Return the names in each entry of the path that is not a folder of installed packages."""
    # A backport of a module of the standard library is meant to be hidden by it.
    library = os.path.dirname(os.__file__) + "/"
    candidates = {}
    for entry in host.path:
        if entry not in sites and not f"{entry}/".startswith(library):
            candidates[entry] = _list_names(entry or os.curdir) - COMMON
    return candidates


def _filter_owned(sites: Iterable[str], names: Set[str]) -> Set[str]:
    """Return those of some names that are modules or packages in folders of installed packages."""
    owned: Set[str] = set()
    for site in sites:
        files = list_files(site)
        owned.update(names.intersection(files))
        # Most files there are folders of metadata.
        for file in filter(_is_code, files):
            stem, _, ending = file.partition(".")
            if stem in names and (ending == "py" or file.endswith(".so")):
                owned.add(stem)
    return owned


def _is_code(file: str) -> bool:
    return file.endswith((".py", ".so"))


def _explain(host: Host, entry: str, name: str) -> Unavailable:
    """Return why a module is hidden; no path is named, because a lockfile may contain the sentence."""
    if os.path.isfile(split_archive(entry)[0]):
        where = "in a zip file on the import path"
    elif entry not in get_import_path(host):
        where = "beside the script or in the current folder"
    elif os.path.abspath(entry) in map(os.path.abspath, list_entries_of_pythonpath(host)):
        where = "in a folder of PYTHONPATH"
    else:
        where = "in an earlier folder of the import path"
    return Unavailable(f"a {name} {where} is imported instead of the installed one", "shadowed")


def _list_names(place: str) -> Set[str]:
    """Return the names that may be importable from an entry of the path."""
    names = set()
    for file in list_files(place):
        stem, dot, _ = file.partition(".")
        if (not dot or file.endswith(ENDINGS)) and stem.isidentifier():
            names.add(stem)
    return names


def list_files(place: str) -> List[str]:
    """Return the names in a folder, or in a zip file or a folder of one; empty for anything else."""
    note(place)
    try:
        return os.listdir(place)
    except NotADirectoryError:
        return _list_zip(*split_archive(place))
    except OSError:
        return []


def split_archive(entry: str) -> Tuple[str, str]:
    """Return what exists of an entry of the import path, and the folder below it: `a.zip/lib` is `a.zip` and `lib/`."""
    inside = ""
    while entry and not os.path.lexists(entry):
        entry, _, part = entry.rpartition("/")
        inside = f"{part}/{inside}"
    return entry, inside


def _list_zip(place: str, inside: str = "") -> List[str]:
    # Not at the top: hardly any import path has a zip file, and its reader takes milliseconds.
    from envlock.runtime.archives import open_zip

    try:
        if not os.path.isfile(place):  # opening a FIFO without a writer would block for ever
            return []
        with open_zip(place) as archive:
            names = [name for name in archive.namelist() if name.startswith(inside)]
            return [name[len(inside) :].partition("/")[0] for name in names]
    except (OSError, ValueError):
        return []


def _is_module(place: str, name: str) -> bool:
    """Return whether a name is a module or a package in an entry.

    A folder without `__init__` yields to a later package; a file without an ending is a command, as
    in `bin`.
    """
    if not os.path.isdir(place):  # a zip file
        return True
    folder = os.path.join(place, name)
    if os.path.isdir(folder):
        return _is_package(folder)
    files = list_files(place)
    return any(file.startswith(name + ".") and file.endswith(ENDINGS) for file in files)


def _is_package(folder: str) -> bool:
    """Return whether a folder is a package that no other folder adds to."""
    note(folder)
    return any(os.path.exists(os.path.join(folder, file)) for file in PACKAGE_FILES)


def owns(distribution: Distribution, name: str) -> bool:
    """Return whether a distribution installed the module `name`, according to its metadata."""
    if distribution.name == normalise(name):
        return True
    files = distribution.read("RECORD")
    if not files:
        # An egg lists its files without digests, as they are found from its own folder.
        listed = (distribution.read("installed-files.txt") or "").replace("../", "")
        files = "".join(f"{file},\n" for file in listed.splitlines())
    if not files:
        # Debian's packages and other eggs have only the names of their modules.
        modules = distribution.read("top_level.txt") or ""
        return name.partition(".")[0] in modules.split()
    name = name.replace(".", "/")
    begins = (f"{name}/", f"{name}.py,", f"{name}.cpython", f"{name}.abi3", f"{name}.so")
    # Searched as one text: TensorFlow's RECORD has 14,865 lines, and this runs on line 1 of a script.
    return files.startswith(begins) or any(f"\n{begin}" in files for begin in begins)
