"""The stamp in a model that records the environment in which it was made: a member of a `.keras`
file, or a file of a SavedModel.

Both formats allow it: Keras reads members by name, and `assets.extra` of a SavedModel is meant for
additions. Source: https://www.tensorflow.org/guide/saved_model#the_savedmodel_format_on_disk
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from shutil import copyfileobj
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from envlock.runtime import strict_json
from envlock.runtime.archives import DamagedArchiveError, open_zip, reading
from envlock.runtime.assertion import locate
from envlock.runtime.drafts import replace_atomically
from envlock.runtime.environment_line import make_line, parse_line
from envlock.runtime.errors import LockfileError, UsageError, WriteError
from envlock.runtime.files.file_digest import hash_file
from envlock.runtime.lockfile import SIZE_LIMIT, parse, read_file
from envlock.runtime.report import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Callable, Optional, Union

    from envlock.runtime.facts import Document

    Path = Union[str, "os.PathLike[str]"]

VERSION = 1
MEMBER = "envlock.json"
EXTRA = "assets.extra"
GRAPH = "saved_model.pb"
SAVED = (GRAPH, "fingerprint.pb", "variables/variables.index")
"""Files that change when a SavedModel is saved again: the graph; TensorFlow's own fingerprint, which
has another UUID each time, but which TensorFlow before 2.12 does not write; the checksums of all
weights. Source: https://www.tensorflow.org/guide/saved_model#the_savedmodel_format_on_disk
"""
KERAS = ("config.json", "metadata.json")
"""Members that every `.keras` file has."""
MEMBER_LIMIT = 10_000
"""Members of a `.keras` file, one for each asset; Keras does not write a file with more."""
CONTENTS = 512 * MEMBER_LIMIT
"""Bytes of a table of contents; a larger one has more members, and is refused unread."""
MAGIC = b"PK\x03\x04"
BROKEN = "save the model again, and stamp it"


def stamp(path: Path, lock: Optional[Path] = None, *, whole: bool = True) -> str:
    """Write the environment in which a saved model was made into it; return the line of that
    environment.

    The model loads as before, everywhere. `envlock show MODEL` and `envlock diff MODEL live` read
    the stamp. An existing stamp is replaced. The file is replaced as a whole; all other members are
    copied unchanged.

    Args:
        path: a `.keras` file, or the folder of a SavedModel.
        lock: the lockfile; else the one that `assert_locked()` would use.
        whole: also write the lockfile itself, which a comparison needs; else only its line.

    Raises:
        UsageError: `path` is not a model.
        LockfileError: there is no lockfile, or it is invalid; or the `.keras` file is damaged.
        WriteError: the model cannot be written; it is untouched.
    """
    document = read_file(locate(lock))
    line = make_line(document)
    content: Document = {"stamp_version": VERSION, "line": line}
    if whole:
        content["lock"] = document
    model = os.path.realpath(os.fspath(path))
    if os.path.isfile(os.path.join(model, GRAPH)):
        # A SavedModel can be saved again into its folder, where the stamp stays.
        content["saved"] = _digest_saved(model)
        data = _encode(content)
        _replace(os.path.join(model, EXTRA, MEMBER), lambda stream: stream.write(data))
    elif _is_zip(model):
        data = _encode(content)
        _replace(model, lambda stream: _copy_with(model, stream, data))
    else:
        raise UsageError(
            f"neither a .keras file nor a SavedModel: {os.fspath(path)}",
            hint="save the model first: `model.save('model.keras')` or `model.export('folder')`",
        )
    return line


def read_stamp(path: Path) -> Optional[Document]:
    """Return the stamp of a model: its `line`, and `lock`, a validated document, if it was stamped
    with one; None for a path that is not a model, such as a lockfile.

    Raises:
        LockfileError: the model has no stamp, or the stamp or the model is damaged.
    """
    name = os.fspath(path)
    is_folder = os.path.isfile(os.path.join(name, GRAPH))
    if is_folder:
        data = _read_folder(name)
    elif _is_zip(name):
        data = _read_zip(name)
    else:
        return None
    if data is None:
        raise LockfileError(
            f"model {name} has no stamp", hint="stamp it where it is saved: `envlock.stamp(path)`"
        )
    found = _check_stamp(data, name)
    if is_folder and found.get("saved") != _digest_saved(name):
        raise LockfileError(
            f"the stamp of model {name} is that of another model: it was saved again later",
            hint="stamp it where it was saved: `envlock.stamp(path)`",
        )
    return found


def _digest_saved(folder: str) -> str:
    """Return a digest of the files that change when a SavedModel is saved again.

    Raises:
        LockfileError: one of them cannot be read.
    """
    digest = hashlib.sha256()
    for name in SAVED:
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            continue
        try:
            digest.update(f"{name} {hash_file(path)}\n".encode("ascii"))
        except OSError as error:
            raise LockfileError(
                f"cannot read model {folder}: {error.strerror}", hint="check its permissions"
            ) from None
    return digest.hexdigest()


def _check_stamp(data: bytes, name: str) -> Document:
    """Return the content of a stamp; raise LockfileError if it is damaged, or written by a newer
    envlock.
    """
    try:
        found = strict_json.parse(data)
    except ValueError as error:
        raise LockfileError(
            f"the stamp of model {name} is not JSON: {clean(str(error))}", hint=BROKEN
        ) from None
    version = found.get("stamp_version") if isinstance(found, dict) else None
    # `type`, not `isinstance`: true is an int, but not a version.
    if type(version) is not int:
        raise LockfileError(f"the stamp of model {name} is not valid", hint=BROKEN)
    if version > VERSION:
        raise LockfileError(
            f"the stamp of model {name} has version {version}; this envlock reads up to {VERSION}",
            hint="upgrade envlock",
        )
    if version != VERSION or not isinstance(found.get("line"), str):
        raise LockfileError(f"the stamp of model {name} is not valid", hint=BROKEN)
    stamp: Document = dict(found)
    try:
        stamp["line"] = parse_line(stamp["line"])
    except UsageError as error:
        raise LockfileError(
            f"the stamp of model {name} is not valid: {error.message}", hint=error.hint
        ) from None
    if "lock" in stamp:
        stamp["lock"] = parse(_encode(stamp["lock"]), f"in {name}")
        if make_line(stamp["lock"]) != stamp["line"]:
            raise LockfileError(
                f"the stamp of model {name} has a line that is not its lockfile's", hint=BROKEN
            )
    return stamp


def _encode(value: Document) -> bytes:
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    return (text + "\n").encode("utf-8")


def _is_zip(path: str) -> bool:
    """Return whether a path is that of a regular file that begins like a zip file."""
    try:
        # Opening a FIFO would block for ever.
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


def _read_folder(name: str) -> Optional[bytes]:
    path = os.path.join(name, EXTRA, MEMBER)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise LockfileError(f"the stamp of model {name} is not a regular file", hint=BROKEN)
        with open(path, "rb") as stream:
            data = stream.read(SIZE_LIMIT * 2 + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LockfileError(
            f"cannot read model {name}: {error.strerror}", hint="check its permissions"
        ) from None
    return _check_size(data, name)


def _read_zip(name: str) -> Optional[bytes]:
    try:
        with open_zip(name, CONTENTS) as archive:
            _check_members(archive, name)
            if MEMBER not in archive.NameToInfo:
                return None
            with archive.open(MEMBER) as member:
                # Not more, whatever size its header gives.
                data = member.read(SIZE_LIMIT * 2 + 1)
    except DamagedArchiveError as error:
        raise _make_damage_error(name, error) from None
    except OSError as error:
        raise LockfileError(
            f"cannot read model {name}: {error.strerror}", hint="check its permissions"
        ) from None
    return _check_size(data, name)


def _check_size(data: bytes, name: str) -> bytes:
    """Return the bytes of a stamp; raise LockfileError if there are too many."""
    # A lockfile, indented once more, is less than twice as long.
    if len(data) > SIZE_LIMIT * 2:
        raise LockfileError(
            f"the stamp of model {name} is larger than {SIZE_LIMIT * 2 // 2**20} MB", hint=BROKEN
        )
    return data


def _make_damage_error(name: str, error: DamagedArchiveError) -> LockfileError:
    return LockfileError(
        f"model {name} is damaged: {clean(str(error))}", hint="save the model again"
    )


def _check_members(archive: ZipFile, name: str) -> None:
    """Refuse a zip file that Keras did not write.

    Raises:
        LockfileError: it has too many members, two with one name, one that leads outside, or not
            those of a model.
    """
    names = archive.namelist()
    hint = "save the model again: Keras writes no such file"
    if len(names) > MEMBER_LIMIT:
        raise LockfileError(f"model {name} has more than {MEMBER_LIMIT:,} members", hint=hint)
    seen = set()
    for member in names:
        if member in seen:
            raise LockfileError(
                f"model {name} has two members with the name {clean(member)}", hint=hint
            )
        seen.add(member)
        if member.startswith("/") or ".." in member.split("/"):
            raise LockfileError(
                f"model {name} has a member with a path outside the model: {clean(member)}",
                hint=hint,
            )
    if not set(KERAS) <= set(names):
        raise LockfileError(
            f"{name} is a zip and not a Keras model: {' and '.join(KERAS)} are missing",
            hint="name a file that `model.save('model.keras')` wrote",
        )


def _copy_with(model: str, stream: BinaryIO, data: bytes) -> None:
    """Write a copy of a `.keras` file with another stamp to a stream; no weights are unpacked."""

    try:
        # Checked first: appending to a file that is not a zip would turn it into one.
        with open_zip(model, CONTENTS) as archive:
            _check_members(archive, model)
        with open(model, "rb") as source:
            copyfileobj(source, stream)
        with reading(), ZipFile(stream, "a") as archive:
            old = archive.NameToInfo.pop(MEMBER, None)
            if old is not None:
                archive.filelist.remove(old)
                # If the old stamp is the last member, the new one replaces it.
                if all(member.header_offset < old.header_offset for member in archive.filelist):
                    archive.start_dir = old.header_offset
            # Without a time, so that the same stamp has the same bytes.
            member = ZipInfo(MEMBER)
            member.compress_type = ZIP_DEFLATED
            archive.writestr(member, data)
    except DamagedArchiveError as error:
        raise _make_damage_error(model, error) from None


def _replace(path: str, write: Callable[[BinaryIO], object]) -> None:
    """Replace a file by what is written to a stream.

    Raises:
        WriteError: it cannot be written; the old file is unchanged.
    """
    try:
        folder = os.path.dirname(path)
        if os.path.basename(folder) == EXTRA:
            os.makedirs(folder, exist_ok=True)
        with replace_atomically(path) as stream:
            write(stream)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise WriteError(
            f"cannot write {path}: {reason}", hint="check its folder and the disk"
        ) from None
