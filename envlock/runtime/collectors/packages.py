"""Every installed distribution: what it is, and where it came from."""

from __future__ import annotations

import os

from envlock.runtime import strict_json
from envlock.runtime.distributions import installed
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Union

    from envlock.runtime.distributions import Distribution
    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host


def collect(host: Host) -> Tree:
    """Return version, wheel tags, installer and origin of every distribution, by normalised name."""
    return {name: _package(found) for name, found in installed(host).items()}


def _package(found: Distribution) -> Tree:
    version: Union[str, Unavailable] = found.version
    if not _is_version(found.version):
        version = Unavailable("its metadata gives no version", "no-metadata")
    if found.rivals:
        versions = " and ".join(sorted([found.version, *found.rivals]))
        version = Unavailable(f"versions {versions} are installed over each other; reinstall it", "ambiguous")
    wheel = found.read("WHEEL")
    tags = None if wheel is None else sorted(line[5:].strip() for line in wheel.splitlines() if line[:5] == "Tag: ")
    return {
        "version": version,
        "wheel_tags": tags,
        "installer": _word(found.read("INSTALLER")),
        "origin": _origin(found.read("direct_url.json")),
    }


def _is_version(text: str) -> bool:
    return text[:1].isalnum() and text.isascii() and text.translate(_VERSION_SIGNS).isalnum() and len(text) <= 128


_VERSION_SIGNS = {ord(char): None for char in ".!+_-"}


def _word(text: Optional[str]) -> Optional[str]:
    word = (text or "").strip()
    return word if word.isascii() and word.isprintable() and 0 < len(word) <= 40 else None


def _origin(text: Optional[str]) -> Union[Tree, Unavailable, None]:
    """Return what `direct_url.json` says, without what may be secret; None when it came from an index.

    Source of the format: https://packaging.python.org/en/latest/specifications/direct-url-data-structure/
    """
    if text is None:
        return None
    try:
        document = strict_json.parse(text.encode("utf-8", "surrogateescape"))
        return _origin_facts(document)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Unavailable("its direct_url.json is not what the packaging specification says", "malformed")


def _origin_facts(document: Dict[str, Any]) -> Tree:
    vcs, archive = document.get("vcs_info", {}), document.get("archive_info", {})
    editable = document.get("dir_info", {}).get("editable", False) is True
    local = document["url"].startswith("file:")
    commit = vcs.get("commit_id")
    if local and editable:
        commit = checkout_commit(_local_path(document["url"]))
    digest = archive.get("hashes", {}).get("sha256") or archive.get("hash", "").partition("sha256=")[2]
    return {
        "url": public_url(document["url"]),
        "editable": editable,
        "vcs": _word(vcs.get("vcs")),
        "commit": _hex(commit),
        "sha256": _hex(digest),
    }


def public_url(url: str) -> Optional[str]:
    """Return a URL without user, password, query and fragment; a local one keeps only `file:` and a wheel's name.

    A path on this machine names its user, and would differ for every checkout.
    """
    url = url.partition("#")[0].partition("?")[0]
    scheme, colon, rest = url.partition("://")
    if (
        not colon
        or not scheme.replace("+", "").replace("-", "").isalnum()
        or not url.isascii()
        or not url.isprintable()
    ):
        return None
    if scheme == "file":
        last = rest.rpartition("/")[2]
        return "file:" + (last if last.endswith((".whl", ".tar.gz", ".zip")) else "")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def checkout_commit(folder: str) -> Optional[str]:
    """Return the commit checked out in a Git work tree, from its files; None when it is none."""
    try:
        git = os.path.join(folder, ".git")
        link = read_text(git) if os.path.isfile(git) else None
        if link is not None:  # a worktree or submodule: `gitdir: PATH`
            git = os.path.join(folder, link.partition("gitdir:")[2].strip())
        head = (read_text(os.path.join(git, "HEAD")) or "").strip()
        if not head.startswith("ref: "):
            return _hex(head)
        shared = (read_text(os.path.join(git, "commondir")) or ".").strip()
        return _ref(os.path.join(git, shared), head[5:])
    except (OSError, ValueError):
        return None


def _ref(git: str, ref: str) -> Optional[str]:
    if ".." in ref or ref.startswith("/"):
        return None
    loose = _hex((read_text(os.path.join(git, ref)) or "").strip())
    if loose:
        return loose
    for line in (read_text(os.path.join(git, "packed-refs")) or "").splitlines():
        if line.endswith(" " + ref):
            return _hex(line.partition(" ")[0])
    return None


def _local_path(url: str) -> str:
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(url).path)


def _hex(text: Any) -> Optional[str]:
    known = isinstance(text, str) and len(text) in (40, 64) and not text.strip("0123456789abcdef")
    return text if known else None
