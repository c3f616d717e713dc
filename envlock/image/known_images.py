"""Images that this user has built and verified before, by everything that their builds read, and the
parts of them that an import of what computes was asked in.

An image is named by the digest of its content, so one that was verified is not read again: an
unchanged build takes seconds. The notes are in the user's own cache; one that another user can
have written is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from envlock.image.engines.engine import Built, Engine
from envlock.lock.writer import replace_file
from envlock.runtime.errors import UsageError, WriteError
from envlock.runtime.user_cache import make_cache, read_own_file

PART = "images"
_IMPORTED = ".imported"
_ID = re.compile(rb"(sha256:)?[0-9a-f]{64}")


def find_known(engine: Engine, inputs: str, environ: Mapping[str, str]) -> Built | None:
    """Return the verified image that this engine has built from these inputs; None if the engine has
    no such image.
    """
    content = read_own_file(environ, PART, f"{inputs}.{engine.name}")
    if content is None or _ID.fullmatch(content) is None:
        return None
    return engine.find_built(content.decode("ascii"))


def remember(built: Built, inputs: str, environ: Mapping[str, str]) -> None:
    """Note that an image was built from these inputs and verified."""
    _write(f"{inputs}.{built.engine}", built.image_id, environ)


def was_imported(inputs: str, environ: Mapping[str, str]) -> bool:
    """Return whether what computes was imported in an image with these inputs, and nothing differed."""
    return read_own_file(environ, PART, f"{inputs}{_IMPORTED}") is not None


def remember_import(inputs: str, environ: Mapping[str, str]) -> None:
    """Note that what computes was imported in an image with these inputs, and nothing differed."""
    _write(f"{inputs}{_IMPORTED}", "", environ)


def _write(name: str, text: str, environ: Mapping[str, str]) -> None:
    """Write a note; without a cache, only the next build takes longer."""
    try:
        folder = Path(make_cache(environ, PART))
        with replace_file(folder / name, "the note", mode=0o600) as stream:
            stream.write(text.encode("ascii"))
    except (UsageError, WriteError):
        return
