"""Every installed distribution: its version, and where it came from."""

from __future__ import annotations

import errno
import os

from envlock.runtime import strict_json
from envlock.runtime.distributions import NO_VERSION, find_distributions, has_unread_zip
from envlock.runtime.editable_installs import ORIGIN, find_project_folder, is_development_install
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import read_text
from envlock.runtime.shadows import find_shadowed_distributions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Union

    from envlock.runtime.distributions import Distribution
    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host

    Fact = Union[List[str], Unavailable, None]
    Tags = Dict[Optional[str], Fact]
    """Parsed tags by the text of a WHEEL file, because many of these files are equal."""


VCS = ("git", "hg", "bzr", "svn")
"""Every version control system that the specification of direct URLs registers."""


def collect(host: Host) -> Tree:
    """Return the facts of every distribution, by normalised name.

    They are its version, wheel tags, installer and origin, and the digest of its source if it came
    from a folder or file of this machine.

    Raises:
        OSError: a zip file on the import path has more than can be looked at.
    """
    if has_unread_zip(host):
        raise OSError(errno.EFBIG, "a zip file on the import path has too many files to look at")
    tags: Tags = {}
    hidden = find_shadowed_distributions(host)
    facts: Tree = {}
    for name, distribution in sorted(find_distributions(host).items()):
        if name in hidden:
            facts[name] = hidden[name]
        else:
            facts[name] = _collect_package(distribution, tags, host)
    return facts


def _collect_package(distribution: Distribution, tags: Tags, host: Host) -> Tree:
    version: Union[str, Unavailable] = distribution.version or NO_VERSION
    if distribution.rivals:
        rivals = [rival or "(none)" for rival in (distribution.version, *distribution.rivals)]
        version = Unavailable(
            f"versions {' and '.join(sorted(rivals))} are installed over one another; "
            "uninstall it until no metadata folder of that name is left (remove those that stay), "
            "and install it again",
            "ambiguous",
        )
    wheel = distribution.read("WHEEL")
    if wheel not in tags:
        tags[wheel] = _parse_wheel_tags(wheel)
    origin: Union[Tree, Unavailable, None] = None
    project = ""
    if distribution.has(ORIGIN):
        text = distribution.read(ORIGIN)
        origin = _parse_origin(text)
        project = _find_editable_folder(text, origin)
    elif is_development_install(distribution):
        project = find_project_folder(distribution)
        origin = _describe_development_install(project)
    facts: Tree = {  # in the order of a lockfile
        "installer": _parse_installer(distribution.read("INSTALLER")),
        "origin": origin,
    }
    if distribution.is_zipped:
        facts["source"] = _digest_zip(distribution, host)
    elif isinstance(origin, dict) and distribution.name != host.own_package:
        source = _digest_source(distribution, facts, project, host)
        if source is not None:
            facts["source"] = source
    facts["version"] = version
    facts["wheel_tags"] = tags[wheel]
    return facts


def _digest_source(
    distribution: Distribution, facts: Tree, project: str, host: Host
) -> Union[str, Unavailable, None]:
    """Return the digest of what was installed from a folder or file of this machine; None for what
    came from elsewhere, or where a commit or a hash says what it is.
    """
    origin: Tree = facts["origin"]
    is_local = (origin["url"] or "").startswith("file:")
    is_identified = origin["vcs"] is not None or origin["sha256"] is not None
    # Packages of conda name the folder that they were built in, on another machine.
    if not project and (not is_local or is_identified or facts["installer"] == "conda"):
        return None
    # Not at the top: most environments have only packages of an index.
    from envlock.runtime.source_files import digest_installed, digest_source

    if project:
        return digest_source(distribution, project, host.environ)
    return digest_installed(distribution)


def _digest_zip(distribution: Distribution, host: Host) -> Union[str, Unavailable]:
    """Return the digest of the zip file that a distribution is imported from: no installer has
    unpacked it, and Python checks nothing in it.
    """
    digests: Dict[str, Union[str, Unavailable]] = host.cache.setdefault("zips", {})
    if distribution.folder not in digests:
        # Not at the top: hardly any import path has a zip file.
        from envlock.runtime.source_files import digest_source

        digests[distribution.folder] = digest_source(
            distribution, distribution.folder, host.environ
        )
    return digests[distribution.folder]


def _find_editable_folder(text: Optional[str], origin: Union[Tree, Unavailable, None]) -> str:
    """Return the folder of the project of an editable install; empty for any other package."""
    if not isinstance(origin, dict) or not origin["editable"] or not text:
        return ""
    url: str = strict_json.parse(text.encode("utf-8", "surrogateescape"))["url"]
    return _parse_local_path(url) if url[:5].lower() == "file:" else ""


def _describe_development_install(project: str) -> Tree:
    """Return the origin of a package that is imported from its project, without a `direct_url.json`."""
    return {
        "url": "file:",
        "editable": True,
        "vcs": None,
        "commit": find_checkout_commit(project),
        "sha256": None,
    }


def _parse_wheel_tags(wheel: Optional[str]) -> Fact:
    if wheel is None:
        return None
    tags = sorted(line[5:].strip() for line in wheel.splitlines() if line[:5] == "Tag: ")
    if not all(map(_is_tag, tags)):
        return Unavailable("its WHEEL file has an invalid tag", "malformed")
    return tags


def _is_tag(text: str) -> bool:
    parts = text.replace("_", "a").replace(".", "a").split("-")
    return text.isascii() and len(text) <= 200 and len(parts) == 3 and all(map(str.isalnum, parts))


def _parse_installer(text: Optional[str]) -> Optional[str]:
    word = (text or "").strip()
    if word.isascii() and word.isprintable() and 0 < len(word) <= 40:
        return word
    return None


def _parse_origin(text: Optional[str]) -> Union[Tree, Unavailable, None]:
    """Return the content of `direct_url.json` without the parts that may be secret.

    None means that the distribution came from an index.

    Source of the format:
    https://packaging.python.org/en/latest/specifications/direct-url-data-structure/
    """
    if text is None:
        return None
    try:
        document = strict_json.parse(text.encode("utf-8", "surrogateescape"))
        return _convert_origin(document)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Unavailable(
            "its direct_url.json does not follow the packaging specification", "malformed"
        )


def _convert_origin(document: Tree) -> Tree:
    vcs, archive = document.get("vcs_info", {}), document.get("archive_info", {})
    is_editable = document.get("dir_info", {}).get("editable", False) is True
    is_local = document["url"][:5].lower() == "file:"
    commit = vcs.get("commit_id")
    if is_local and is_editable:
        # The specification has no commit for a local folder, so the commit is read from the
        # checkout itself.
        commit = find_checkout_commit(_parse_local_path(document["url"]))
    # Older installers write `hash`: "sha256=...".
    sha256 = (
        archive.get("hashes", {}).get("sha256") or archive.get("hash", "").partition("sha256=")[2]
    )
    facts: Tree = {
        "url": strip_url_secrets(document["url"]),
        "editable": is_editable,
        "vcs": None,
        "commit": _check_hex(commit),
        "sha256": _check_hex(sha256),
    }
    if vcs.get("vcs") in VCS:
        facts["vcs"] = vcs["vcs"]
    if vcs and document.get("subdirectory") is not None:
        facts["subdirectory"] = _check_subdirectory(document["subdirectory"])
    return facts


def _check_subdirectory(folder: object) -> Union[str, Unavailable]:
    """Return the path of a folder in a checkout."""
    if (
        isinstance(folder, str)
        and folder.isascii()
        and folder.isprintable()
        and 0 < len(folder) <= 200
        and folder[0] != "/"
        and ".." not in folder
    ):
        return folder
    return Unavailable(
        "the subdirectory in its direct_url.json is not a plain path in the checkout", "malformed"
    )


def strip_url_secrets(url: str) -> Optional[str]:
    """Return a URL without user, password, query and fragment, or None if these cannot be
    separated.

    The user `git` of an ssh address is kept: it names no person, and without it ssh logs in as the
    local user. Git's short form, `git@host:path`, becomes a URL. Source:
    https://packaging.python.org/en/latest/specifications/direct-url-data-structure/ (security)

    Of a local URL only `file:` and the name of a wheel remain: a path on this machine contains the
    name of its user, and differs in every checkout.
    """
    if url.startswith("git@"):
        host, colon, path = url[len("git@") :].partition(":")
        if not colon or not _is_plain(host, ".-") or not _is_plain(path, "._~/+-"):
            return None
        url = f"ssh://git@{host}/{path.lstrip('/')}"
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    is_scheme = scheme.replace("+", "").replace("-", "").isalnum()
    if not separator or not is_scheme or not url.isascii() or not url.isprintable():
        return None
    rest = rest.replace("?", "#")
    location = rest.partition("#")[0]
    if scheme.rpartition("+")[2] == "file":
        name = location.rpartition("/")[2]
        if name.endswith((".whl", ".tar.gz", ".zip")):
            return "file:" + name
        return "file:"
    authority, slash, path = location.partition("/")
    credentials, _, host = authority.rpartition("@")
    port = host.rpartition("]")[2].partition(":")[2]
    # An `@` after the host may end a password that contains a slash or the like; a `%` before the
    # path, or a port that is not a number, may be the rest of a password.
    after_authority = rest[len(authority) :].replace("%40", "@")
    if "%" in host or "@" in after_authority or port.strip("0123456789"):
        return None
    user = ""
    if scheme.rpartition("+")[2] == "ssh" and credentials.partition(":")[0] == "git":
        user = "git@"
    return f"{scheme}://{user}{host}{slash}{path}"


def _is_plain(text: str, signs: str) -> bool:
    """Return whether a text has only letters, digits and these signs, and is not empty."""
    return bool(text) and text.isascii() and text.translate({ord(s): "x" for s in signs}).isalnum()


def find_checkout_commit(folder: str) -> Optional[str]:
    """Return the commit that is checked out in a Git work tree, read from its files; None if it is
    not a work tree.
    """
    try:
        git = os.path.join(folder, ".git")
        if os.path.isfile(git):
            link = read_text(git)
            if link is not None:  # a worktree or submodule: `gitdir: PATH`
                git = os.path.join(folder, link.partition("gitdir:")[2].strip())
        head = (read_text(os.path.join(git, "HEAD")) or "").strip()
        if not head.startswith("ref: "):
            return _check_hex(head)
        shared = (read_text(os.path.join(git, "commondir")) or ".").strip()
        return _resolve_ref(os.path.join(git, shared), head[5:])
    except (OSError, ValueError):
        return None


def _resolve_ref(git: str, ref: str) -> Optional[str]:
    if ".." in ref or ref.startswith("/"):
        return None
    loose = _check_hex((read_text(os.path.join(git, ref)) or "").strip())
    if loose:
        return loose
    for line in (read_text(os.path.join(git, "packed-refs")) or "").splitlines():
        if line.endswith(" " + ref):
            return _check_hex(line.partition(" ")[0])
    return None


def _parse_local_path(url: str) -> str:
    """Return the path of a `file:` URL."""
    path = "/" + url.partition("#")[0].partition("?")[0].partition("://")[2].partition("/")[2]
    if "%" not in path:
        return path
    # Not at the top: it costs as much as the whole assertion.
    from urllib.parse import unquote

    return unquote(path)


def _check_hex(text: object) -> Optional[str]:
    """Return a SHA-1 or SHA-256; None for anything else."""
    if not isinstance(text, str) or len(text) not in (40, 64):
        return None
    return None if text.strip("0123456789abcdef") else text
