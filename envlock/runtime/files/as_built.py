"""What no RECORD vouches for in an image: written down when it is built, and the same at every start, or named.

NVIDIA's images, and others, have files that contradict their RECORDs, belong to no package or have no hash. The digest
of the base stands for them, but nothing in a container knows it: so a build writes down what they are.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from typing import NamedTuple

from envlock.runtime.errors import FactError
from envlock.runtime.files.check_file import UNSIGNED, can_be_checked
from envlock.runtime.files.findings import Fault
from envlock.runtime.files.read_file import BUFFER, ODD_SIZE_LIMIT
from envlock.runtime.files.survey import Survey, trees
from envlock.runtime.report import INFO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FOR_ANYBODY = 0o004


class Known(NamedTuple):
    """Something that no RECORD vouches for: the kind of fault, or "" for none; where; and its fingerprint."""

    kind: str
    path: str
    state: str


def known(survey: Survey, faults: Iterable[Fault]) -> list[Known]:
    """Return what there is to write down of an environment, by what is wrong with it and by what has no hash."""
    wrong = {(fault.kind, fault.path) for fault in faults if fault.severity != INFO}
    closed = {("permission", path) for path in survey.claims if _is_closed(path)}
    plain = {("", path) for path in [*_without_hash(survey), *_without_record(survey)]}
    return [Known(*each, _state(survey, *each)) for each in sorted(wrong | closed | plain)]


def accept(survey: Survey, faults: Iterable[Fault], written: Iterable[Known]) -> list[Fault]:
    """Return faults, those that were written down as information; and what is no longer as it was then."""
    rows = list(written)
    there = {(row.kind, row.path) for row in rows}
    changed = {row.path for row in rows if _state(survey, row.kind, row.path) != row.state}
    judged = [
        fault._replace(severity=INFO, what=f"{fault.what} (so in the base of the image)")
        if (fault.kind, fault.path) in there
        else fault
        for fault in faults
    ]
    return judged + [
        Fault("since-built", path, "was changed after the image was built")
        for path in sorted(changed)
    ]


def write(rows: Iterable[Known], path: str) -> None:
    """Write rows into a file, the same bytes for the same rows."""
    with open(path, "w", encoding="ascii") as stream:
        json.dump([list(row) for row in rows], stream, indent=0)
        stream.write("\n")


def read(path: str) -> list[Known]:
    """Return the rows of a file; none where there is no file.

    Raises:
        FactError: it is not what `write` has written.
    """
    try:
        with open(path, encoding="ascii") as stream:
            return [
                Known(str(kind), str(where), str(state)) for kind, where, state in json.load(stream)
            ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as error:
        raise FactError(f"{path} cannot be read: {error}", hint="build the image again") from None


def fingerprint(paths: Iterable[str]) -> str:
    """Return the SHA-256 of what lies at paths: kinds, modes, names, targets and bytes, of folders all that is in them.

    What is not for everybody to read is known by its mode and size, so that the answer is the same for everybody; so
    are files above 4 GB, which may be holes.
    """
    digest = hashlib.sha256()
    for path in paths:
        for where, what in _everything(path):
            digest.update(f"{where}\0{what}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _state(survey: Survey, kind: str, path: str) -> str:
    if kind == "permission":
        return _mode(path)
    if not path.startswith("/"):  # a row that leads outside: it is the RECORDs that have it
        return fingerprint(
            each.info for each in survey.packages if any(row.path == path for row in each.rows)
        )
    return fingerprint([path, os.path.realpath(path)] if os.path.islink(path) else [path])


def _without_hash(survey: Survey) -> Iterator[str]:
    """Yield each file that RECORDs list without a hash that can be checked."""
    for path, claims in survey.claims.items():
        if not path.endswith((*UNSIGNED, ".pyc")) and not any(map(can_be_checked, claims)):
            yield path


def _without_record(survey: Survey) -> Iterator[str]:
    """Yield what belongs to packages without a RECORD that can be read."""
    for package in survey.packages:
        yield from trees(package)


def _is_closed(path: str) -> bool:
    try:
        return not os.stat(path).st_mode & FOR_ANYBODY
    except OSError:
        return False


def _mode(path: str) -> str:
    try:
        return f"{os.stat(path).st_mode:o}"
    except OSError:
        return "missing"


def _everything(path: str) -> Iterator[tuple[str, str]]:
    yield path, _one(path)
    for folder, folders, names in os.walk(path):  # follows no link; a file has none
        folders.sort()
        for name in sorted([*folders, *names]):
            yield f"{folder}/{name}", _one(f"{folder}/{name}")
        folders[:] = [name for name in folders if not _is_closed(f"{folder}/{name}")]


def _one(path: str) -> str:
    try:
        status = os.lstat(path)
        mode = status.st_mode
        if stat.S_ISLNK(mode):
            return f"{mode:o} {os.readlink(path)}"
        if not stat.S_ISREG(mode):
            return f"{mode:o}"
        is_read = mode & FOR_ANYBODY and status.st_size <= ODD_SIZE_LIMIT
        return f"{mode:o} {status.st_size} {_content(path) if is_read else ''}"
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return str(error.strerror)


def _content(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for piece in iter(lambda: stream.read(BUFFER), b""):
            digest.update(piece)
    return digest.hexdigest()
