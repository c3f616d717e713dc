"""The content of a package that is installed from a folder or file of this machine: no index and no
version says what it is, so its digest is a fact.

Of an editable install, that is the source that Python can import: each package as a whole, with its
data, and the modules beside it. Whether Git ignores a file does not matter, since Python does not
ask Git. What no import reaches is left out: names that begin with a dot, bytecode, metadata,
virtual environments, and in the folder of a project whatever is neither in a package nor a module.
Of another install, it is the installed code, as its RECORD lists it.

Reading is avoided where the user's cache has a note on files of the same sizes and times.
"""

from __future__ import annotations

import os
import stat
from hashlib import sha256

from envlock.runtime.data_files import DataFile, Survey
from envlock.runtime.editable_installs import list_roots
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Container,
        FrozenSet,
        Iterator,
        List,
        Mapping,
        Optional,
        Set,
        Tuple,
        Union,
    )

    from envlock.runtime.distributions import Distribution

LIMIT = 100_000
"""Files and folders of one source: more take a script seconds at each start."""
PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
"""A folder with one of them holds more than source: data, results, documents."""
MODULES = (".py", ".pyc", ".so", ".pyd")
TOOLS = ("__pycache__", "node_modules", "site-packages")
"""Folders that tools fill."""
LEFTOVERS = ("~", ".egg-info", ".dist-info")
ENVIRONMENTS = ("pyvenv.cfg", "conda-meta")
"""A folder with one of them is an environment."""
BUILDS = ("build", "dist")
"""Folders beside `pyproject.toml` that a build fills; a package of such a name counts."""
GENERATED = (".dist-info/", "__pycache__/")
CHUNK = 1 << 20


class _TooManyError(Exception):
    """There are more than `LIMIT` entries."""


def digest_source(
    distribution: Distribution, project: str, environ: Mapping[str, str]
) -> Union[str, Unavailable]:
    """Return the digest of the source of an editable install.

    Args:
        distribution: the install.
        project: the folder of its project.
        environ: the variables of the process, which say where its user's cache is.
    """
    # Not at the top: in most environments no package is editable, and nothing is hashed.
    from envlock.runtime.data_contents import read_note

    found = survey_source(distribution, project)
    if isinstance(found, Unavailable):
        return found
    known = read_note(environ, distribution.info, found)
    if known is not None:
        return known
    try:
        return read_source(found)
    except OSError as error:
        return Unavailable(f"its source cannot be read: {error.strerror}", "unreadable")


def survey_source(distribution: Distribution, project: str) -> Union[Survey, Unavailable]:
    """Return the files of the source of an editable install, without opening any."""
    files: List[DataFile] = []
    seen: Set[str] = set()
    try:
        for root in list_roots(distribution, project):
            for file in _list_root(root):
                if file.path not in seen:
                    seen.add(file.path)
                    files.append(file)
                if len(files) > LIMIT:
                    raise _TooManyError
    except _TooManyError:
        return Unavailable(f"its source has more than {LIMIT:,} files and folders", "too-many")
    except OSError as error:
        return Unavailable(f"its source cannot be read: {error.strerror}", "unreadable")
    if not files:
        return Unavailable("its folder of sources is missing or empty", "no-source")
    files.sort(key=_get_order)
    return Survey(files)


def _get_order(file: DataFile) -> Tuple[bytes, str]:
    return file.name, file.path


def read_source(found: Survey) -> str:
    """Return the digest of the names and contents of these files.

    Raises:
        OSError: one cannot be read.
    """
    whole = sha256()
    for file in found.files:
        digest = sha256()
        with open(file.path, "rb", buffering=0) as stream:
            data = stream.read(CHUNK)
            while data:
                digest.update(data)
                data = stream.read(CHUNK)
        whole.update(b"%s\0%s\n" % (file.name, digest.hexdigest().encode("ascii")))
    return "sha256:" + whole.hexdigest()


def digest_installed(distribution: Distribution) -> Optional[str]:
    """Return the digest of the installed code of a distribution, as its RECORD lists it; None
    without a RECORD.

    Metadata, which names the folder, and scripts, whose first line installers write, are left out.
    """
    record = distribution.read("RECORD")
    if record is None:
        return None
    rows = record.splitlines()
    kept = [row for row in rows if not row.startswith("..") and not _is_generated(row)]
    text = "\n".join(sorted(kept))
    return "sha256:" + sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _is_generated(row: str) -> bool:
    return any(mark in row for mark in GENERATED)


def list_modules(folder: str) -> Iterator[str]:
    """Yield the names of the modules in the folder of a project, also of those that its build leaves out.

    Raises:
        OSError: it cannot be read.
    """
    try:
        for file in _walk(folder, "", is_whole=False):
            if file.path.endswith(MODULES):
                yield os.fsdecode(file.name)
    except _TooManyError:
        return


def _list_root(root: str) -> Iterator[DataFile]:
    """Yield the files that count of a folder on the import path, of a package, or of a module."""
    note(root)
    try:
        status = os.stat(root)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(status.st_mode):
        yield _describe_file(os.path.basename(root), root, status)
        return
    names = os.listdir(root)
    if _is_package(names):
        yield from _walk(root, os.path.basename(root) + "/", is_whole=True)
        return
    is_project = any(name in names for name in PROJECT_FILES)
    yield from _walk(root, "", is_whole=not is_project)


def _walk(root: str, prefix: str, *, is_whole: bool) -> Iterator[DataFile]:
    """Yield the files that count below a folder: all, or those in packages, and modules."""
    todo: List[Tuple[str, str, bool, FrozenSet[Tuple[int, int]]]] = []
    todo.append((root, prefix, is_whole, frozenset()))
    number = 0
    while todo:
        folder, prefix, is_whole, above = todo.pop()
        note(folder)
        status = os.stat(folder)
        identity = (status.st_dev, status.st_ino)
        if identity in above:  # a link to a folder above it
            continue
        with os.scandir(folder) as entries:
            found = {entry.name: entry for entry in entries}
        number += len(found)
        if number > LIMIT:
            raise _TooManyError
        if any(name in found for name in ENVIRONMENTS):
            continue
        # Everything in a package counts, also in its folders that are none.
        is_whole = is_whole or _is_package(found)
        kept = [entry for name, entry in found.items() if not _is_left_out(name, found)]
        for entry in kept:
            name = prefix + entry.name
            if not entry.is_dir():
                if is_whole or _is_module(entry.name):
                    yield from _describe_entry(name, entry)
            elif is_whole or _can_hold_modules(entry, is_top=folder == root):
                todo.append((entry.path, name + "/", is_whole, above | {identity}))


def _can_hold_modules(entry: os.DirEntry[str], *, is_top: bool) -> bool:
    """Return whether `import` can reach what is in a folder of a project."""
    if is_top and entry.name in BUILDS:
        return _is_package(os.listdir(entry.path))
    return entry.name.isidentifier()


def _describe_entry(name: str, entry: os.DirEntry[str]) -> Iterator[DataFile]:
    """Yield a regular file; nothing for a link that leads nowhere."""
    try:
        status = entry.stat()
    except FileNotFoundError:
        return
    if stat.S_ISREG(status.st_mode):
        yield _describe_file(name, entry.path, status)


def _describe_file(name: str, path: str, status: os.stat_result) -> DataFile:
    note(path)
    return DataFile(os.fsencode(name), path, status)


def _is_package(names: Container[str]) -> bool:
    return any(f"__init__{ending}" in names for ending in MODULES)


def _is_module(name: str) -> bool:
    """Return whether `import` can reach a file of this name."""
    return name.endswith(MODULES) and name.partition(".")[0].isidentifier()


def _is_left_out(name: str, beside: Container[str]) -> bool:
    """Return whether a file or folder never counts as source."""
    if name.startswith(".") or name in TOOLS or name.endswith(LEFTOVERS):
        return True
    # Python takes the source beside it.
    return name.endswith(".pyc") and name[:-1] in beside
