"""Images that this user has built and verified before, by everything that their builds read.

An image is named by the digest of its content, so one that was verified is not read again: an
unchanged build takes seconds. The notes are in the user's own cache; one that another user can
have written is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from envlock.containers.engines.engine import Built, Engine
from envlock.lock.writer import replace_file
from envlock.runtime.errors import UsageError, WriteError
from envlock.runtime.user_cache import make_cache, read_own_file

PART = "images"
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
    """Note that an image was built from these inputs and verified.

    Without a cache, only the next build takes longer.
    """
    try:
        folder = Path(make_cache(environ, PART))
        with replace_file(folder / f"{inputs}.{built.engine}", "the note", mode=0o600) as stream:
            stream.write(built.image_id.encode("ascii"))
    except (UsageError, WriteError):
        return
