"""Describe the files that a variable names, without a path of this machine: by their content."""

from __future__ import annotations

import os

from envlock.runtime.collectors.environment_variables import make_flag_recordable, make_recordable
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host, note, read_text
from envlock.runtime.loader.elf import read_elf
from envlock.runtime.loader.search import Found, Loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, List, Set, Union

    from envlock.runtime.facts import Tree

MISSING = "no such file"
"""What reads a variable may fail then; the loader goes on without a library that does not exist."""
BLOCK = 1 << 20
CONTENT_LIMIT = 8 << 20
"""Bytes: of a larger library the build-id and the size identify it, where it has a build-id."""


def describe(row: Tree, value: str, host: Host) -> Union[List[str], Unavailable]:
    """Return what a variable leads to, each in a few words without a name of this machine.

    Args:
        row: the variable's row of the table `environ`, which says what it names.
        value: its value, which is not empty.
        host: the machine.
    """
    try:
        return READERS[row["names"]](row, value, host)
    except OSError as error:
        return Unavailable(f"what it names cannot be read: {error.strerror}", "unreadable")


def _describe_file(row: Tree, value: str, host: Host) -> List[str]:
    path = host.system(os.path.abspath(value))
    return [identify(path)] if os.path.isfile(path) else [MISSING]


def _describe_flags(row: Tree, value: str, host: Host) -> List[str]:
    """Return the flags in a value, or in the file that it names.

    Source: ParseFlagsFromEnvAndDieIfUnknown in xla/parse_flags_from_env.cc
    """
    if not value.lstrip().startswith("-"):
        path = host.system(os.path.abspath(value.strip()))
        if not os.path.isfile(path):
            return [MISSING]
        value = read_text(path) or ""
    return [make_flag_recordable(flag, row["words"]) for flag in value.split()]


def _describe_folder(row: Tree, value: str, host: Host) -> List[str]:
    path = host.system(os.path.abspath(value))
    return identify_libraries(path) if os.path.isdir(path) else _describe_file(row, value, host)


def identify_libraries(folder: str) -> List[str]:
    """Return the shared libraries in a folder by their content, in any order that they are opened in."""
    note(folder)
    paths = [os.path.join(folder, name) for name in os.listdir(folder) if ".so" in name]
    return sorted(identify(path) for path in paths if os.path.isfile(path))


def _describe_libraries(row: Tree, value: str, host: Host) -> List[str]:
    """Return the libraries that the loader puts into the process first, in its order."""
    loader = Loader(host)
    found = []
    for name in value.replace(":", " ").split():
        path = None
        if "/" in name:
            path = next(iter(loader.expand(name, None)), None)
        else:
            path = loader.load(name, Found(name)).file
        if path is not None and os.path.isfile(loader.locate(path)):
            found.append(identify(loader.locate(path)))
    return found


def _describe_search(row: Tree, value: str, host: Host) -> List[str]:
    """Return the computing libraries that a search path puts in front of the system's own.

    CUDA's are facts of their own. A library that equals the one that is found without the path is left
    out.
    """
    roles = tuple(row["computing"])
    loader = Loader(host)
    seen: Set[str] = set()
    found = []
    for folder in loader.expand(value.replace(";", ":"), None):
        for subfolder in loader.list_subfolders(folder):
            for name in _list_names(loader.locate(subfolder), roles):
                path = loader.locate(subfolder + name)
                if name in seen or not _is_library(path, name, loader):
                    continue
                seen.add(name)
                usual = loader.find_usual(name)
                if usual is None or not _has_same_bytes(path, loader.locate(usual)):
                    found.append(f"{name} {identify(path)}")
    return sorted(found)


def _list_names(folder: str, roles: tuple[str, ...]) -> List[str]:
    note(folder.rstrip("/"))
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in names if name.startswith(roles) and ".so" in name)


def _is_library(path: str, name: str, loader: Loader) -> bool:
    """Return whether the loader takes a file for a library of this name."""
    try:
        elf = read_elf(path, loader.machine)
    except (OSError, ValueError):
        return False
    return elf.soname in (None, name)


def _has_same_bytes(path: str, usual: str) -> bool:
    try:
        if os.path.samefile(path, usual):
            return True
        return os.path.getsize(path) == os.path.getsize(usual) and identify(path) == identify(usual)
    except OSError:
        return False


def _describe_tunables(row: Tree, value: str, host: Host) -> List[str]:
    """Return the tunables of glibc that choose code: the others only move memory."""
    harmless = tuple(row["harmless"])
    tunables = [each for each in value.split(":") if each and not each.startswith(harmless)]
    recorded = [make_recordable(each, row) for each in tunables]
    return sorted(filter(None, recorded))


READERS: Dict[str, Callable[[Tree, str, Host], List[str]]] = {
    "file": _describe_file,
    "flags": _describe_flags,
    "folder": _describe_folder,
    "libraries": _describe_libraries,
    "search": _describe_search,
    "tunables": _describe_tunables,
}


def identify(path: str) -> str:
    """Return the SHA-256 of a file; of a large library its build-id and its size.

    Raises:
        OSError: it cannot be read.
    """
    # Not at the top of the package: it loads OpenSSL.
    from hashlib import sha256

    note(path)
    size = os.path.getsize(path)
    if size > CONTENT_LIMIT:
        try:
            build_id = read_elf(path).build_id
        except ValueError:
            build_id = None
        if build_id:
            return f"build-id:{build_id} {size}"
    digest = sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(BLOCK), b""):
            digest.update(block)
    return f"sha256:{digest.hexdigest()}"
