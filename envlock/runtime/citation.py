"""The line that names an environment in a paper, a table of results or an issue."""

from __future__ import annotations

from envlock.runtime.assertion import locate
from envlock.runtime.lockfile import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any, Mapping, Optional, Union

START = "envlock:1:sha256:"
"""Its 1 is the version of the definition in docs/reference/formats.md: other bytes get another number."""


def cite(path: Optional[Union[str, os.PathLike[str]]] = None) -> str:
    """Return the line that names the locked environment: `envlock:1:sha256:` and the digest of its facts.

    Two lockfiles with the same facts have the same line, whatever their policies, further machines and commits are.

    Args:
        path: the lockfile; else the one that `assert_locked()` would use.

    Raises:
        LockfileError: there is no lockfile, or it is invalid.
    """
    return line_of(read_file(locate(path)))


def line_of(document: Mapping[str, Any]) -> str:
    """Return the line of a checked document."""
    import json
    from hashlib import sha256

    codes = {path: entry["code"] for path, entry in document["unavailable"].items()}  # a reason is free text
    digested = {"facts": document["facts"], "unavailable": codes}
    # Not escaped: a program in another language writes the same bytes with its plain JSON writer.
    text = json.dumps(digested, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return START + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
