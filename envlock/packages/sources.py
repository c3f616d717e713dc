"""What a distribution was installed from, if not from an index: a file, a folder or a commit.

It is read from `direct_url.json` on this machine, because a lockfile has no paths and passwords; it
is never shown. Source:
https://packaging.python.org/en/latest/specifications/direct-url-data-structure/
"""

from __future__ import annotations

import json
from importlib.metadata import Distribution
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

Kind = Literal["wheel", "archive", "folder", "commit"]


class Source(NamedTuple):
    """The source that a distribution was installed from.

    Attributes:
        kind: a wheel, a source archive, a folder of sources, or a commit of a Git repository.
        place: the path; for a commit, the URL of its repository.
        commit: the full hash.
        subdirectory: the folder of the project in the repository.
    """

    kind: Kind
    place: str
    commit: str | None = None
    subdirectory: str | None = None


def find_source(distribution: Distribution) -> Source | None:
    """Return the source that a distribution was installed from; None if it came from an index, or
    its source is of an unknown kind.
    """
    try:
        document = json.loads(distribution.read_text("direct_url.json") or "null")
        if document is None:
            return None
        return _parse_source(document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _parse_source(document: dict[str, object]) -> Source | None:
    url = str(document["url"])
    vcs = document.get("vcs_info")
    if vcs is not None:
        return _parse_commit(url, vcs, document.get("subdirectory"))
    if urlsplit(url).scheme != "file":
        return None
    path = unquote(urlsplit(url).path)
    if "dir_info" in document:
        return Source("folder", path)
    if path.endswith(".whl"):
        return Source("wheel", path)
    return Source("archive", path)


def _parse_commit(url: str, vcs: object, subdirectory: object) -> Source | None:
    """Return a commit; None for values that must not become arguments of `git`.

    Raises:
        TypeError, KeyError: the entry is malformed.
    """
    if not isinstance(vcs, dict) or not isinstance(subdirectory, str | None):
        raise TypeError("no entry of `vcs_info`")
    commit = str(vcs["commit_id"])
    is_hash = len(commit) in (40, 64) and not commit.strip("0123456789abcdef")
    # Git would treat an address that begins with a hyphen as an option.
    if vcs["vcs"] != "git" or not is_hash or url.startswith("-"):
        return None
    return Source("commit", url, commit, subdirectory)
