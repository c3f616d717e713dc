"""Text to `Lockfile` and back: one reader, one canonical serialisation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from envlock.lock.models import Lockfile
from envlock.lock.writer import write_atomically
from envlock.runtime import lockfile as plain
from envlock.runtime.errors import LockfileError
from envlock.runtime.report import clean
from envlock.runtime.verify import policy_of


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


def validate(document: dict[str, Any], name: str) -> Lockfile:
    """Return JSON values as a `Lockfile`, every field checked.

    Raises:
        LockfileError: a field is not what the format says; the message names the first.
    """
    try:
        lock = Lockfile.model_validate(document)
    except ValidationError as error:
        raise _invalid(name, error) from None
    policy_of(document)
    return lock


def _invalid(name: str, error: ValidationError) -> LockfileError:
    first = error.errors(include_url=False, include_input=False)[0]
    where = clean(".".join(str(part) for part in first["loc"])[:120])
    return LockfileError(
        f"lockfile {name} is not valid: `{where}`: {first['msg']}",
        hint="restore it from version control, or create it again with `envlock capture`",
    )


def dump(lock: Lockfile) -> bytes:
    """Return the canonical bytes: sorted keys, two spaces, one final newline, UTF-8."""
    text = json.dumps(lock.to_document(), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8")


def save(lock: Lockfile, path: str | Path) -> None:
    """Write a lockfile, whole or not at all.

    Raises:
        WriteError: it cannot be written.
    """
    write_atomically(Path(path), dump(lock))
