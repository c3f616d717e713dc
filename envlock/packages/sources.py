"""What a distribution was installed from, if not from an index: a file, a folder or a commit.

It is read from `direct_url.json` on this machine, because a lockfile has no paths and passwords; it
is never shown. Source:
https://packaging.python.org/en/latest/specifications/direct-url-data-structure/
"""

from __future__ import annotations

import json
import os
from importlib.metadata import Distribution
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from envlock.packages.installation import Installation, collect_distributions
from envlock.runtime.distributions import Distribution as InstalledDistribution
from envlock.runtime.distributions import normalise
from envlock.runtime.editable_installs import find_project_folder, is_development_install

Kind = Literal["wheel", "archive", "folder", "commit", "requirement"]


class Source(NamedTuple):
    """The source that a distribution was installed from.

    Attributes:
        kind: a wheel, a source archive, a folder of sources, a commit of a Git repository, or a
            requirement that pip builds from an index.
        place: the path; for a commit, the URL of its repository; a requirement as it stands.
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
            return _find_development_folder(distribution)
        return _parse_source(document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def find_package(installation: Installation, folder: Path) -> str | None:
    """Return the normalised name of the package that is installed from a folder; None where not
    exactly one is.
    """
    names = []
    for name, distribution in collect_distributions(installation).items():
        source = find_source(distribution)
        if source is None or source.kind != "folder":
            continue
        if os.path.realpath(source.place) == os.path.realpath(folder):
            names.append(name)
    return names[0] if len(names) == 1 else None


def as_installed(distribution: Distribution) -> InstalledDistribution | None:
    """Return a distribution as the runtime half describes it; None if its metadata is in no folder."""
    info = getattr(distribution, "_path", None)
    if not isinstance(info, Path):
        return None
    name = normalise(info.stem.partition("-")[0])
    return InstalledDistribution(name, "", str(info.parent), str(info))


def _find_development_folder(distribution: Distribution) -> Source | None:
    """Return the project of a package that `setup.py develop` has installed; None for any other."""
    installed = as_installed(distribution)
    if installed is None or not is_development_install(installed):
        return None
    return Source("folder", find_project_folder(installed))


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
