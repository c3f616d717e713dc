"""Every installed distribution: what it is, and where it came from."""

from __future__ import annotations

import os

from envlock.runtime import strict_json
from envlock.runtime.distributions import NO_VERSION, installed
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import read_text
from envlock.runtime.shadows import shadowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Union

    from envlock.runtime.distributions import Distribution
    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host

    Fact = Union[List[str], Unavailable, None]
    Tags = Dict[Optional[str], Fact]
    """By the text of a WHEEL file: many are equal."""


ORIGIN = "direct_url.json"
VCS = ("git", "hg", "bzr", "svn")
"""Every version control system that the specification of direct URLs registers."""


def collect(host: Host) -> Tree:
    """Return version, wheel tags, installer and origin of every distribution, by normalised name."""
    tags: Tags = {}
    hidden = shadowed(host)
    return {
        name: hidden[name] if name in hidden else _package(found, tags)
        for name, found in sorted(installed(host).items())
    }


def _package(found: Distribution, tags: Tags) -> Tree:
    version: Union[str, Unavailable] = found.version or NO_VERSION
    if found.rivals:
        versions = " and ".join(sorted(each or "(none)" for each in [found.version, *found.rivals]))
        version = Unavailable(
            f"versions {versions} are installed over one another; reinstall it", "ambiguous"
        )
    wheel = found.read("WHEEL")
    if wheel not in tags:
        tags[wheel] = _wheel_tags(wheel)
    return {  # in the order of a lockfile
        "installer": _word(found.read("INSTALLER")),
        "origin": _origin(found.read(ORIGIN)) if found.has(ORIGIN) else None,
        "version": version,
        "wheel_tags": tags[wheel],
    }


def _wheel_tags(wheel: Optional[str]) -> Fact:
    if wheel is None:
        return None
    tags = sorted(line[5:].strip() for line in wheel.splitlines() if line[:5] == "Tag: ")
    return (
        tags
        if all(map(_is_tag, tags))
        else Unavailable("its WHEEL file has an invalid tag", "malformed")
    )


def _is_tag(text: str) -> bool:
    parts = text.replace("_", "a").replace(".", "a").split("-")
    return text.isascii() and len(text) <= 200 and len(parts) == 3 and all(map(str.isalnum, parts))


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
        return Unavailable(
            "its direct_url.json does not follow the packaging specification", "malformed"
        )


def _origin_facts(document: Dict[str, Any]) -> Tree:
    vcs, archive = document.get("vcs_info", {}), document.get("archive_info", {})
    editable = document.get("dir_info", {}).get("editable", False) is True
    local = document["url"][:5].lower() == "file:"
    commit = vcs.get("commit_id")
    if local and editable:
        commit = checkout_commit(_local_path(document["url"]))
    digest = (
        archive.get("hashes", {}).get("sha256") or archive.get("hash", "").partition("sha256=")[2]
    )
    folder = document.get("subdirectory") if vcs else None
    more = {} if folder is None else {"subdirectory": _inside(folder)}
    return {
        "url": public_url(document["url"]),
        "editable": editable,
        "vcs": vcs["vcs"] if vcs.get("vcs") in VCS else None,
        "commit": _hex(commit),
        "sha256": _hex(digest),
        **more,
    }


def _inside(folder: Any) -> Union[str, Unavailable]:
    """Return the path of a folder in a checkout."""
    plain = (
        isinstance(folder, str)
        and folder.isascii()
        and folder.isprintable()
        and 0 < len(folder) <= 200
    )
    if plain and folder[0] != "/" and ".." not in folder:
        return str(folder)
    return Unavailable(
        "the subdirectory in its direct_url.json is not a plain path in the checkout", "malformed"
    )


def public_url(url: str) -> Optional[str]:
    """Return a URL without user, password, query and fragment; a local one keeps only `file:` and a wheel's name.

    A path on this machine names its user, and would differ for every checkout. An `@` after the host may be the end
    of a password that holds a slash or the like, and a `%` before the path or a port that is no number the rest of
    one, so such a URL is not kept at all.
    """
    scheme, colon, rest = url.partition("://")
    scheme = scheme.lower()
    plain = (
        scheme.replace("+", "").replace("-", "").isalnum() and url.isascii() and url.isprintable()
    )
    if not colon or not plain:
        return None
    rest = rest.replace("?", "#")
    before = rest.partition("#")[0]
    if scheme.rpartition("+")[2] == "file":
        last = before.rpartition("/")[2]
        return "file:" + (last if last.endswith((".whl", ".tar.gz", ".zip")) else "")
    authority, slash, path = before.partition("/")
    host = authority.rpartition("@")[2]
    port = host.rpartition("]")[2].partition(":")[2]
    behind = rest[len(authority) :].replace("%40", "@")
    if "%" in authority or "@" in behind or port.strip("0123456789"):
        return None
    return f"{scheme}://{host}{slash}{path}"


def checkout_commit(folder: str) -> Optional[str]:
    """Return the commit checked out in a Git work tree, from its files; None when the folder is not one."""
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
    """Return the path of a `file:` URL; `urllib` costs as much as the whole assertion, so only an escape needs it."""
    path = "/" + url.partition("#")[0].partition("?")[0].partition("://")[2].partition("/")[2]
    if "%" not in path:
        return path
    from urllib.parse import unquote

    return unquote(path)


def _hex(text: Any) -> Optional[str]:
    known = isinstance(text, str) and len(text) in (40, 64) and not text.strip("0123456789abcdef")
    return text if known else None
