"""The files in an image that no RECORD covers: a build writes their state down, and every start
compares it.

NVIDIA's images, and others, have files that contradict their RECORDs, belong to no package or have
no hash. The digest of the base identifies them, but it is unknown inside a container: so the build
records these files.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from envlock.runtime.errors import FactError
from envlock.runtime.files.check_file import UNSIGNED, can_be_checked
from envlock.runtime.files.file_digest import hash_file
from envlock.runtime.files.findings import Fault
from envlock.runtime.files.read_file import ODD_SIZE_LIMIT
from envlock.runtime.files.survey import Survey, guess_trees
from envlock.runtime.report import INFO

FOR_ANYBODY = 0o004  # S_IROTH: an image also runs as another user than the one that built it


class BaselineEntry(NamedTuple):
    """A file or folder that no RECORD covers.

    Attributes:
        kind: the kind of fault, or "" for none.
        path: where it is.
        state: its fingerprint.
    """

    kind: str
    path: str
    state: str


def collect_baseline(survey: Survey, faults: Iterable[Fault]) -> list[BaselineEntry]:
    """Return what a build records about an environment: its faults, and the files without a hash."""
    entries = set()
    for fault in faults:
        if fault.severity != INFO:
            entries.add((fault.kind, fault.path))
    for path in survey.claims:
        if _is_closed(path):
            entries.add(("permission", path))
    for path in (*_find_unhashed(survey), *_find_unrecorded(survey)):
        entries.add(("", path))
    return [
        BaselineEntry(kind, path, _get_state(survey, kind, path)) for kind, path in sorted(entries)
    ]


def accept(
    survey: Survey, faults: Iterable[Fault], written: Iterable[BaselineEntry]
) -> list[Fault]:
    """Return the faults, those in the baseline as information, and the files that have changed
    since the build.
    """
    accepted = set()
    changed = set()
    for row in written:
        accepted.add((row.kind, row.path))
        if _get_state(survey, row.kind, row.path) != row.state:
            changed.add(row.path)
    judged = []
    for fault in faults:
        if (fault.kind, fault.path) in accepted:
            what = f"{fault.what} (so in the base of the image)"
            fault = fault._replace(severity=INFO, what=what)
        judged.append(fault)
    what = "was changed after the image was built"
    return judged + [Fault("changed-after-build", path, what) for path in sorted(changed)]


def write(rows: Iterable[BaselineEntry], path: str) -> None:
    """Write rows into a file, the same bytes for the same rows."""
    with open(path, "w", encoding="ascii") as stream:
        json.dump(list(map(list, rows)), stream, indent=0)
        stream.write("\n")


def read(path: str) -> list[BaselineEntry]:
    """Return the rows of a file; no rows if the file does not exist.

    Raises:
        FactError: the file was not written by `write`.
    """
    rows = []
    try:
        with open(path, encoding="ascii") as stream:
            for kind, where, state in json.load(stream):
                rows.append(BaselineEntry(str(kind), str(where), str(state)))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as error:
        raise FactError(f"{path} cannot be read: {error}", hint="build the image again") from None
    return rows


def hash_paths(paths: Iterable[str]) -> str:
    """Return the SHA-256 of the files and folders at some paths.

    It covers kinds, modes, names, targets and bytes, and everything inside a folder. A file that
    not every user may read counts with its mode and size only, so that the result is the same for
    every user; so do files above 4 GB, which may be sparse.
    """
    digest = hashlib.sha256()
    for path in paths:
        for name, description in _describe_tree(path):
            digest.update(f"{name}\0{description}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _get_state(survey: Survey, kind: str, path: str) -> str:
    if kind == "permission":
        return _get_mode(path)
    if not path.startswith("/"):
        # A row that leads outside: what must not change is the metadata of the packages that list
        # it.
        return hash_paths(_find_metadata(survey, path))
    if os.path.islink(path):
        return hash_paths([path, os.path.realpath(path)])
    return hash_paths([path])


def _find_metadata(survey: Survey, row_path: str) -> Iterator[str]:
    """Yield the metadata folders of the packages that have such a row."""
    for package in survey.packages:
        if any(row.path == row_path for row in package.rows):
            yield package.info


def _find_unhashed(survey: Survey) -> Iterator[str]:
    """Yield each file that RECORDs list without a hash that can be checked."""
    for path, claims in survey.claims.items():
        if not path.endswith((*UNSIGNED, ".pyc")) and not any(map(can_be_checked, claims)):
            yield path


def _find_unrecorded(survey: Survey) -> Iterator[str]:
    """Yield the files of packages without a readable RECORD."""
    for package in survey.packages:
        yield from guess_trees(package)


def _is_closed(path: str) -> bool:
    try:
        return not os.stat(path).st_mode & FOR_ANYBODY
    except OSError:
        return False


def _get_mode(path: str) -> str:
    try:
        return f"{os.stat(path).st_mode:o}"
    except OSError:
        return "missing"


def _describe_tree(path: str) -> Iterator[tuple[str, str]]:
    """Yield (path, description) of a path and, if it is a folder, of everything in it."""
    yield path, _describe_path(path)
    for folder, folders, names in os.walk(path):  # follows no link; a file has no entries
        folders.sort()
        for name in sorted([*folders, *names]):
            yield f"{folder}/{name}", _describe_path(f"{folder}/{name}")
        folders[:] = [name for name in folders if not _is_closed(f"{folder}/{name}")]


def _describe_path(path: str) -> str:
    try:
        status = os.lstat(path)
        mode = status.st_mode
        if stat.S_ISLNK(mode):
            return f"{mode:o} {os.readlink(path)}"
        if not stat.S_ISREG(mode):
            return f"{mode:o}"
        digest = hash_file(path) if mode & FOR_ANYBODY and status.st_size <= ODD_SIZE_LIMIT else ""
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return str(error.strerror)
    return f"{mode:o} {status.st_size} {digest}"
