"""What a package index offers of a project, and which of its files can be the one that was installed."""

from __future__ import annotations

import json
import re
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from packaging.tags import Tag, parse_tag
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version
from pypi_simple import (
    DistributionPackage,
    UnexpectedRepoVersionWarning,
    UnsupportedRepoVersionError,
)

from envlock.packages.indexes.index_settings import Index
from envlock.packages.indexes.links import links
from envlock.web.client import Client, refusal
from envlock.web.errors import WebError, shown

T = TypeVar("T")
JSON = "application/vnd.pypi.simple.v1+json"
HTML = "application/vnd.pypi.simple.v1+html"
ACCEPT = f"{JSON}, {HTML};q=0.2, text/html;q=0.1"
PAGE_LIMIT = 64 * 1024 * 1024
SECONDS = 60
"""How long reading one page may take: no page that was met takes a tenth, and some can be made to take for ever."""
PIECE = 4096
HEAD = 64 * 1024
FILES = 200_000
"""How many files a page may offer, so that a page made of nothing but links cannot fill the memory."""
ARCHIVES = (
    ".whl",
    ".tar.gz",
    ".zip",
    ".tar.bz2",
    ".tgz",
    ".tar.xz",
    ".egg",
    ".exe",
    ".msi",
    ".rpm",
)
SOURCES_ONLY = "the index has only a source archive of"
"""Begins the reason of a package whose wheel can be built again."""
NAME = re.compile(r"[A-Za-z0-9][^/\\\x00-\x1f\x7f]{0,250}")
SHA256 = re.compile(r"[0-9a-f]{64}")
_PARSING = (
    threading.Lock()
)  # `catch_warnings` is not for threads; parsing would not be faster in two of them anyway


def files(client: Client, index: Index, project: str) -> list[IndexFile]:
    """Return what an index offers of a project, in its order; nothing where it does not know it.

    Raises:
        WebError: the index cannot be reached, refuses (`status` tells), or its answer is no page of an index.
    """
    name = canonicalize_name(project)
    if index.url.startswith("file:"):
        return _local(index, name)
    url = index.url if index.kind == "links" else f"{index.url.rstrip('/')}/{quote(name)}/"
    answer = client.get(url, headers={"Accept": ACCEPT}, limit=PAGE_LIMIT)
    if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
        return []
    if answer.status != HTTPStatus.OK:
        raise refusal(answer)
    found = _page(answer.body, answer.url, index, name)
    return [file for file in found if index.kind == "simple" or _is_of(file.name, name)]


def _page(body: bytes, url: str, index: Index, project: str) -> list[IndexFile]:
    """Return the files on a page; its first character decides between HTML and JSON, since servers mislabel."""
    start = body[:HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start not in (b"{", b"<"):
        raise _no_page(url, "it is neither JSON nor HTML")
    try:
        with _PARSING, warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UnexpectedRepoVersionWarning
            )  # a newer minor version is readable
            read = _json(body, url, project) if start == b"{" else _html(body, url, project)
            offered = list(islice(read, FILES + 1))
    except UnsupportedRepoVersionError:
        raise _no_page(url, "its protocol version is too new", "upgrade envlock") from None
    if len(offered) > FILES:
        raise _no_page(url, f"it offers more than {FILES} files")
    return [file for each in offered if (file := _file(each, index, url)) is not None]


def _json(body: bytes, url: str, project: str) -> Iterator[DistributionPackage]:
    try:
        page = json.loads(body)
        rows, version = page["files"], page["meta"]["api-version"]
        if not isinstance(rows, list) or not isinstance(version, str):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _no_page(url, "it is not JSON of the Simple API") from None
    if version.partition(".")[0] != "1":
        raise UnsupportedRepoVersionError(version, "1")
    try:
        for row in _in_time(rows, url):
            yield DistributionPackage.from_json_data(row, project, url)
    except (ValueError, TypeError):
        raise _no_page(url, "it describes a file in violation of the specification") from None


def _html(body: bytes, url: str, project: str) -> Iterator[DistributionPackage]:
    pieces = (body[at : at + PIECE] for at in range(0, len(body), PIECE))
    empty = True
    try:
        for link in links(_in_time(pieces, url), url):
            path = urlsplit(link.url).path
            if path.lower().endswith(ARCHIVES):
                empty = False
                link.text = unquote(path.rpartition("/")[2])[:255]
                yield DistributionPackage.from_link(link, project)
    except (
        ValueError,
        AssertionError,
        LookupError,
    ):  # LookupError: an encoding that does not exist
        raise _no_page(url, "its HTML cannot be read") from None
    if empty and not _says_that_it_is_one(body):
        raise _no_page(url, "it is a web page without links to packages, such as a login page")


def _says_that_it_is_one(body: bytes) -> bool:
    """Return whether a page without files is an index's all the same."""
    head = body[:HEAD].lower()
    return b"pypi:repository-version" in head or b"links for " in head or b"simple index" in head


def _in_time(items: Iterable[T], url: str) -> Iterator[T]:
    until = time.monotonic() + SECONDS
    for item in items:
        if time.monotonic() > until:
            raise _no_page(url, f"reading it took longer than {SECONDS} s")
        yield item


def _file(offered: DistributionPackage, index: Index, page: str) -> IndexFile | None:
    """Return a file of a page; None where its name or its URL leads elsewhere."""
    try:
        parts = urlsplit(offered.url)
        known = (
            parts.scheme in ("http", "https")
            and parts.hostname is not None
            and (parts.port or 1) > 0
        )
    except ValueError:
        return None
    if known and not _may_link(urlsplit(page), parts):
        return None
    local = parts.scheme == "file" and index.url.startswith("file:")
    named = NAME.fullmatch(offered.filename) and (offered.filename + offered.url).isprintable()
    if not (known or local) or not named:
        return None
    return IndexFile(
        name=offered.filename,
        url=urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="")),
        sha256=_sha256(offered.digests),
        size=offered.size if offered.size is not None and offered.size >= 0 else None,
        yanked=offered.is_yanked,
        metadata_sha256=_sha256(offered.metadata_digests or {}),
        index_url=index.url,
    )


def _may_link(page: SplitResult, link: SplitResult) -> bool:
    """Return whether a page may name a file at an address: pip asks the same before it trusts a link.

    A page that came by HTTPS offers nothing by HTTP, where anybody on the way can change it. A page of another host
    offers nothing at this machine's own addresses, or at those of its link, where a cloud keeps its credentials.
    """
    if page.scheme == "https" and link.scheme != "https":
        return False
    return (
        page.scheme == "file"
        or page.hostname == link.hostname
        or not _is_own_address(link.hostname or "")
    )


def _is_own_address(host: str) -> bool:
    """Return whether a host is this machine, or is only reachable on its link.

    Source: https://docs.python.org/3/library/ipaddress.html (`is_loopback`, `is_link_local`, `is_unspecified`)
    """
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ip_address(name.partition("%")[0])
    except ValueError:
        return _is_number(name)
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_loopback or mapped.is_link_local or mapped.is_unspecified)


def _is_number(name: str) -> bool:
    """Return whether a host is an address in another notation, such as 2130706433 or 0x7f.1: nobody publishes there."""
    return all(part.isdigit() or part.startswith("0x") for part in name.split("."))


def _sha256(digests: Mapping[str, Any]) -> str | None:
    value = str(digests.get("sha256", "")).lower()
    return value if SHA256.fullmatch(value) else None


def _local(index: Index, project: str) -> list[IndexFile]:
    """Return what a folder offers: a page (or files) per project, or all files in one place."""
    place = local_path(index.url)
    if index.kind == "simple":
        place = place / project
    try:
        if place.is_file() or (place / "index.html").is_file():
            page = place if place.is_file() else place / "index.html"
            found = _page(_read(page), page.absolute().as_uri(), index, project)
        else:
            archives = (each for each in sorted(place.iterdir()) if each.name.endswith(ARCHIVES))
            found = [_on_disk(each, index) for each in archives if each.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise WebError(
            f"cannot read the index {place}: {error.strerror}", hint="check its permissions"
        ) from None
    return [file for file in found if index.kind == "simple" or _is_of(file.name, project)]


def local_path(url: str) -> Path:
    """Return the path of a `file:` URL."""
    return Path(unquote(urlsplit(url).path))


def _read(page: Path) -> bytes:
    with page.open("rb") as stream:
        body = stream.read(PAGE_LIMIT + 1)
    if len(body) > PAGE_LIMIT:
        raise WebError(
            f"{page} is larger than {PAGE_LIMIT} bytes", hint="check the address of the index"
        )
    return body


def _on_disk(path: Path, index: Index) -> IndexFile:
    return IndexFile(
        path.name, path.absolute().as_uri(), None, path.stat().st_size, False, None, index.url
    )


def _is_of(name: str, project: str) -> bool:
    """Return whether a file's name begins with the project's (a folder of links holds files of many)."""
    if name.endswith(".whl"):
        return canonicalize_name(name.partition("-")[0]) == project
    stem = name[: -len(next((each for each in ARCHIVES if name.endswith(each)), ""))]
    return canonicalize_name(stem.rpartition("-")[0]) == project


def _no_page(url: str, why: str, hint: str = "check the address of the index") -> WebError:
    return WebError(f"{shown(url)} is not a page of a package index: {why}", hint=hint)


@dataclass(frozen=True)
class IndexFile:
    """A file that an index offers, as the index describes it: nothing of this is verified.

    Attributes:
        name: of the file.
        url: where it is; without user and password, but perhaps with a query that holds a signature.
        sha256, size: None where the index does not tell.
        yanked: its maintainers ask not to use it.
        metadata_sha256: of the METADATA file that lies beside it (`.metadata`), if the index tells.
        index_url: of the index.
    """

    name: str
    url: str
    sha256: str | None = None
    size: int | None = None
    yanked: bool = False
    metadata_sha256: str | None = None
    index_url: str = ""


class Choice(NamedTuple):
    """The wheels that may be it, likeliest first; or the reason why there is none."""

    wheels: list[IndexFile]
    reason: str | None


def choose(files: Iterable[IndexFile], name: str, version: str, tags: Sequence[str]) -> Choice:
    """Return the wheels of this version: those of exactly these tags, then those that share one or a Python and ABI.

    The last, since a wheel may be renamed for a wider platform after its WHEEL file was written (auditwheel does).
    """
    offered = list(files)
    if not offered:
        return Choice([], f"{name} is not on an index")
    same = [file for file in offered if _is_version(file.name, version)]
    if not same:
        return Choice([], f"version {version} of {name} is not on an index")
    wanted = frozenset(tag for text in tags for tag in parse_tag(text))
    ranked = sorted((_rank(file, wanted), file) for file in same if file.name.endswith(".whl"))
    wheels = [file for rank, file in ranked if rank[0] < 3]
    if wheels:
        return Choice(wheels, None)
    if ranked:
        return Choice(
            [],
            f"the index has no wheel of {name} {version} for {' or '.join(sorted(tags)) or 'its tags'}",
        )
    return Choice([], f"{SOURCES_ONLY} {name} {version}, so the wheel was built locally")


def source_archives(files: Iterable[IndexFile], version: str) -> list[IndexFile]:
    """Return the source archives of this version, those of the web first."""
    found = [
        file
        for file in files
        if file.name.endswith((".tar.gz", ".zip")) and _is_version(file.name, version)
    ]
    return sorted(found, key=lambda file: (not file.url.startswith("http"), file.name))


def _rank(file: IndexFile, wanted: frozenset[Tag]) -> tuple[int, bool, str]:
    tags = parse_wheel_filename(file.name)[3]
    if tags == wanted:
        distance = 0
    elif tags & wanted:
        distance = 1
    else:
        same_abi = {(tag.interpreter, tag.abi) for tag in tags} & {
            (tag.interpreter, tag.abi) for tag in wanted
        }
        distance = 2 if same_abi else 3
    return distance, not file.url.startswith("http"), file.name


def _is_version(file: str, version: str) -> bool:
    try:
        found = (
            parse_wheel_filename(file)[1]
            if file.endswith(".whl")
            else parse_sdist_filename(file)[1]
        )
        return found == Version(version)
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return False
