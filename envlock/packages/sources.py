"""What a distribution was installed from, where that is not an index: a wheel, an archive, a folder or a commit.

Read from its `direct_url.json` on this machine, as the lock keeps no path and no password; nothing of it is shown.
Source: https://packaging.python.org/en/latest/specifications/direct-url-data-structure/
"""

from __future__ import annotations

import json
from importlib.metadata import Distribution
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

Kind = Literal["wheel", "archive", "folder", "commit"]


class Source(NamedTuple):
    """What was installed.

    Attributes:
        kind: a wheel, a source archive, a folder of sources, or a commit of a Git repository.
        place: the path of the first three; the URL of the last.
        commit: its full hash.
        subdirectory: the folder of the project in the repository.
    """

    kind: Kind
    place: str
    commit: str | None = None
    subdirectory: str | None = None


def source_of(found: Distribution) -> Source | None:
    """Return what a distribution was installed from; None for an index's, and for what cannot be had again."""
    try:
        document = json.loads(found.read_text("direct_url.json") or "null")
        return None if document is None else _source(document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _source(document: Any) -> Source | None:
    url, vcs = str(document["url"]), document.get("vcs_info")
    if vcs is not None:
        commit = str(vcs["commit_id"])
        is_plain = (
            vcs["vcs"] == "git" and len(commit) in (40, 64) and not commit.strip("0123456789abcdef")
        )
        inside = document.get("subdirectory")
        return (
            Source("commit", url, commit, inside) if is_plain and not url.startswith("-") else None
        )
    if urlsplit(url).scheme != "file":
        return None
    place = unquote(urlsplit(url).path)
    if "dir_info" in document:
        return Source("folder", place)
    return Source("wheel" if place.endswith(".whl") else "archive", place)
