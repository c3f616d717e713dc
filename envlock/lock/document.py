"""Parse text into a `Lockfile` and write it back: one reader, one canonical serialisation."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import ValidationError

from envlock.lock.folder_lock import hold_folder
from envlock.lock.models import Lockfile
from envlock.lock.rebase import apply_changes
from envlock.lock.writer import write_atomically
from envlock.runtime import lockfile as plain
from envlock.runtime.errors import LockfileError, WriteError
from envlock.runtime.judgement import build_policy
from envlock.runtime.report import clean

PATH_LIMIT = 120
"""Characters of a field's path in a message."""


def load(path: str | Path) -> Lockfile:
    """Return the lockfile at `path`.

    Raises:
        LockfileError: it is missing, unreadable, invalid, or newer than this envlock.
    """
    return validate(plain.read_file(str(path)), str(path))


def parse(data: bytes, name: str) -> Lockfile:
    """Return the lockfile in `data`; `name` is for messages.

    Raises:
        LockfileError: it is invalid, or newer than this envlock.
    """
    return validate(plain.parse(data, name), name)


def validate(document: dict[str, object], name: str) -> Lockfile:
    """Return JSON values as a `Lockfile` after checking every field; `name` is for messages.

    Raises:
        LockfileError: a field does not follow the format; the message names the first.
    """
    try:
        lock = Lockfile.model_validate(document)
    except ValidationError as error:
        raise _describe_error(name, error) from None
    build_policy(document)
    return lock


def _describe_error(name: str, error: ValidationError) -> LockfileError:
    # Without the input: it can be long, and a secret that somebody has put there.
    first = error.errors(include_url=False, include_input=False)[0]
    where = clean(".".join(map(str, first["loc"]))[:PATH_LIMIT])
    return LockfileError(
        f"lockfile {name} is not valid: `{where}`: {first['msg']}",
        hint="restore it from version control, or create it again with `envlock capture`",
    )


def dump(lock: Lockfile) -> bytes:
    """Return the canonical bytes of a lockfile."""
    return lock.to_bytes()


def save(lock: Lockfile, path: str | Path, read: Lockfile | None = None) -> None:
    """Write a lockfile atomically.

    Args:
        lock: the lockfile to write.
        path: the path of the file.
        read: the content of the file when the command began. Changes that another command has made
            since then are kept, unless this one has changed the same values. When not given, the
            file is replaced.

    Raises:
        WriteError: it cannot be written, or is a link to something other than a lockfile of the
            project.
        LockfileError: the changes of another command do not fit.
    """
    file = Path(path)
    _refuse_foreign_link(file)
    with hold_folder(file.absolute().parent):
        if read is not None:
            lock = _keep_others(lock, file, read)
        write_atomically(file, dump(lock))


def _keep_others(lock: Lockfile, file: Path, read: Lockfile) -> Lockfile:
    """Return a lockfile with the changes that others have written into its file since it was read."""
    try:
        now = load(file)
    except LockfileError:  # missing or damaged, so there are no changes to keep
        return lock
    if now == read:
        return lock
    merged = apply_changes(read.to_document(), lock.to_document(), now.to_document())
    return validate(merged, "to be written")


def _refuse_foreign_link(file: Path) -> None:
    """Raise if a symbolic link leads out of the project, or to a file that is not a lockfile.

    A repository can contain such a link, and `capture` would replace a file in the user's home
    folder.
    """
    if not file.is_symlink():
        return
    target = Path(os.path.realpath(file))
    project = plain.find_project(str(file.absolute().parent))
    try:
        is_lockfile = "lock_version" in plain.parse(target.read_bytes(), str(target))
    except (OSError, LockfileError):
        is_lockfile = False
    if not is_lockfile or not target.is_relative_to(os.path.realpath(project)):
        raise WriteError(
            f"cannot write lockfile {file}: it is a symbolic link to {clean(str(target))}, "
            f"which is not a lockfile of the project {clean(project)}",
            hint="remove the link, or name the file itself",
        )
