"""The files that a package index offers for a project, and those that can be the installed one."""

from __future__ import annotations

import json
import re
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from http import HTTPStatus
from ipaddress import ip_address
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit, urlunsplit

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
from pypi_simple.html import Link
from pypi_simple.html_stream import iterhtmldecode
from pypi_simple.util import check_repo_version

from envlock.packages.indexes.index_settings import Index
from envlock.packages.proofs import SOURCES_ONLY
from envlock.web.client import Client, make_refusal
from envlock.web.web_errors import WebError, show_url

T = TypeVar("T")
JSON = "application/vnd.pypi.simple.v1+json"
HTML = "application/vnd.pypi.simple.v1+html"
ACCEPT = f"{JSON}, {HTML};q=0.2, text/html;q=0.1"

PAGE_LIMIT = 64 * 1024 * 1024
"""Bytes of a page."""
SECONDS = 60
"""How long parsing a page may take.

No page seen takes a tenth of that, and a malicious one could take for ever.
"""
PIECE = 4096
"""Bytes of HTML that the parser gets at a time."""
TAG_LIMIT = 32 * 1024
"""Characters of one tag, comment or script; a link with its hashes has some hundreds."""
HEAD = 64 * 1024
"""Bytes at the beginning of a page that are searched for its declaration."""
FILES = 200_000
"""How many files a page may offer: a page of nothing but links must not fill the memory."""

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
NAME = re.compile(r"[A-Za-z0-9][^/\\\x00-\x1f\x7f]{0,250}")
SHA256 = re.compile(r"[0-9a-f]{64}")

# `catch_warnings` is not thread-safe, and parsing in two threads would not be faster anyway.
_PARSING = threading.Lock()


def list_index_files(client: Client, index: Index, project: str) -> list[IndexFile]:
    """Return the files that an index offers for a project, in its order; empty for an unknown
    project.

    Raises:
        WebError: the index cannot be reached, refuses (`status` has its answer), or its answer is
            not a page of an index.
    """
    name = canonicalize_name(project)
    if index.url.startswith("file:"):
        return _list_local(index, name)
    url = f"{index.url.rstrip('/')}/{quote(name)}/" if index.kind == "simple" else index.url
    answer = client.get(url, headers={"Accept": ACCEPT}, limit=PAGE_LIMIT)
    if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
        return []
    if answer.status != HTTPStatus.OK:
        raise make_refusal(answer)
    return _select_project(_page(answer.body, answer.url, index, name), index, name)


def _select_project(offered: list[IndexFile], index: Index, project: str) -> list[IndexFile]:
    """Return the files of one project: a find-links page has those of many."""
    if index.kind == "simple":
        return offered
    return [file for file in offered if _is_of(file.name, project)]


def _page(body: bytes, url: str, index: Index, project: str) -> list[IndexFile]:
    """Return the files on a page."""
    # The first character distinguishes JSON from HTML: servers send wrong content types.
    start = body[:HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start == b"{":
        parse = _parse_json
    elif start == b"<":
        parse = _parse_html
    else:
        raise _no_page(url, "it is neither JSON nor HTML")
    try:
        with _PARSING, warnings.catch_warnings():
            # A newer minor version of the protocol can be read.
            warnings.simplefilter("ignore", UnexpectedRepoVersionWarning)
            offered = list(islice(parse(body, url, project), FILES + 1))
    except UnsupportedRepoVersionError:
        raise _no_page(url, "its protocol version is too new", "upgrade envlock") from None
    if len(offered) > FILES:
        raise _no_page(url, f"it offers more than {FILES} files")
    described = (_file(package, index, url) for package in offered)
    return [file for file in described if file is not None]


def _parse_json(body: bytes, url: str, project: str) -> Iterator[DistributionPackage]:
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
        for row in _limit_time(rows, url):
            yield DistributionPackage.from_json_data(row, project, url)
    except (ValueError, TypeError):
        raise _no_page(url, "it describes a file in violation of the specification") from None


def _parse_html(body: bytes, url: str, project: str) -> Iterator[DistributionPackage]:
    pieces = (body[start : start + PIECE] for start in range(0, len(body), PIECE))
    is_empty = True
    try:
        for link in _find_links(_limit_time(pieces, url), url):
            path = urlsplit(link.url).path
            if path.lower().endswith(ARCHIVES):
                is_empty = False
                link.text = unquote(path.rpartition("/")[2])[:255]
                yield DistributionPackage.from_link(link, project)
    except (ValueError, AssertionError, LookupError):  # LookupError: an unknown encoding
        raise _no_page(url, "its HTML cannot be read") from None
    if is_empty and not _is_marked_as_index(body):
        raise _no_page(url, "it is a web page without links to packages, such as a login page")


def _is_marked_as_index(body: bytes) -> bool:
    """Return whether a page without files declares that it is a page of an index."""
    head = body[:HEAD].lower()
    return b"pypi:repository-version" in head or b"links for " in head or b"simple index" in head


class _LinkParser(HTMLParser):
    """Collects the links where their tags begin: texts and nesting do not matter."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.links: list[Link] = []
        self._base = url
        self._has_base = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values: dict[str, str | list[str]] = {name: value or "" for name, value in attrs}
        href = str(values.get("href", ""))
        if tag == "a" and "href" in values:
            self.links.append(Link(text="", url=urljoin(self._base, href), attrs=values))
        elif tag == "base" and "href" in values and not self._has_base:
            self._base = urljoin(self._base, href)
            self._has_base = True
        elif tag == "meta" and values.get("name") == "pypi:repository-version":
            check_repo_version(str(values.get("content", "")))


def _find_links(pieces: Iterable[bytes], url: str) -> Iterator[Link]:
    """Yield the links of a page; a tag that the end of the page truncates is skipped.

    Raises:
        ValueError: a tag is longer than `TAG_LIMIT`, or an address is malformed.
        UnsupportedRepoVersionError: its protocol is too new.
    """
    # The parser never learns that the page has ended, and gets small pieces: it reads an open tag
    # again with every piece, and at the end once for each `<` in it, which takes a minute for 60 KB
    # (CVE-2025-6069).
    parser = _LinkParser(url)
    for text in iterhtmldecode(pieces):
        parser.feed(text)
        if len(parser.rawdata) > TAG_LIMIT:
            raise ValueError("a tag without an end")
        yield from parser.links
        parser.links.clear()


def _limit_time(items: Iterable[T], url: str) -> Iterator[T]:
    until = time.monotonic() + SECONDS
    for item in items:
        if time.monotonic() > until:
            raise _no_page(url, f"reading it took longer than {SECONDS} s")
        yield item


def _file(offered: DistributionPackage, index: Index, page: str) -> IndexFile | None:
    """Return a file of a page; None if its name or its URL cannot be trusted."""
    try:
        parts = urlsplit(offered.url)
        is_web = parts.scheme in ("http", "https") and parts.hostname is not None
        if is_web:
            _ = parts.port  # raises for a port that is not a number
    except ValueError:
        return None
    if is_web and not _can_link(urlsplit(page), parts):
        return None
    is_local = parts.scheme == "file" and index.url.startswith("file:")
    if not (is_web or is_local):
        return None
    if not NAME.fullmatch(offered.filename):
        return None
    if not (offered.filename + offered.url).isprintable():
        return None
    size = offered.size
    if size is not None and size < 0:
        size = None
    return IndexFile(
        name=offered.filename,
        url=urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="")),
        sha256=_get_sha256(offered.digests),
        size=size,
        yanked=offered.is_yanked,
        metadata_sha256=_get_sha256(offered.metadata_digests or {}),
        index_url=index.url,
    )


def _can_link(page: SplitResult, link: SplitResult) -> bool:
    """Return whether a page may link to an address; pip applies the same test to every link."""
    # HTTP can be changed on the way, so a page that came over HTTPS must not link to it.
    if page.scheme == "https" and link.scheme != "https":
        return False
    if page.scheme == "file" or page.hostname == link.hostname:
        return True
    # A page on another host must not make us request this machine's own addresses, or those of its
    # network link, where a cloud keeps its credentials.
    return not _is_own_address(link.hostname or "")


def _is_own_address(host: str) -> bool:
    """Return whether a host is this machine, or can be reached only on its network link.

    Source: https://docs.python.org/3/library/ipaddress.html (`is_loopback`, `is_link_local`,
    `is_unspecified`)
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
    """Return whether a host is an address in another notation, such as 2130706433 or 0x7f.1, under
    which no real index publishes files.
    """
    return all(part.isdigit() or part.startswith("0x") for part in name.split("."))


def _get_sha256(digests: Mapping[str, object]) -> str | None:
    value = str(digests.get("sha256", "")).lower()
    if not SHA256.fullmatch(value):
        return None
    return value


def _list_local(index: Index, project: str) -> list[IndexFile]:
    """Return the files in a folder: with a page (or files) for each project, or with all files in
    one place.
    """
    place = get_local_path(index.url)
    if index.kind == "simple":
        place = place / project
    try:
        if place.is_file():
            offered = _read_page(place, index, project)
        elif (place / "index.html").is_file():
            offered = _read_page(place / "index.html", index, project)
        else:
            offered = []
            for path in sorted(place.iterdir()):
                if path.name.endswith(ARCHIVES) and path.is_file():
                    offered.append(_describe_file(path, index))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise WebError(
            f"cannot read the index {place}: {error.strerror}", hint="check its permissions"
        ) from None
    return _select_project(offered, index, project)


def get_local_path(url: str) -> Path:
    """Return the path of a `file:` URL."""
    return Path(unquote(urlsplit(url).path))


def _read_page(path: Path, index: Index, project: str) -> list[IndexFile]:
    with path.open("rb") as stream:
        body = stream.read(PAGE_LIMIT + 1)
    if len(body) > PAGE_LIMIT:
        raise WebError(
            f"{path} is larger than {PAGE_LIMIT} bytes", hint="check the address of the index"
        )
    return _page(body, path.absolute().as_uri(), index, project)


def _describe_file(path: Path, index: Index) -> IndexFile:
    return IndexFile(
        path.name, path.absolute().as_uri(), size=path.stat().st_size, index_url=index.url
    )


def _is_of(name: str, project: str) -> bool:
    """Return whether a file's name begins with that of the project."""
    if name.endswith(".whl"):
        return canonicalize_name(name.partition("-")[0]) == project
    for suffix in ARCHIVES:
        if name.endswith(suffix):
            stem = name.removesuffix(suffix)
            return canonicalize_name(stem.rpartition("-")[0]) == project
    return False


def _no_page(url: str, why: str, hint: str = "check the address of the index") -> WebError:
    return WebError(f"{show_url(url)} is not a page of a package index: {why}", hint=hint)


@dataclass(frozen=True)
class IndexFile:
    """A file as an index describes it; none of this is verified.

    Attributes:
        name: that of the file.
        url: without user and password, but perhaps with a query that contains a signature.
        sha256, size: None if the index does not give them.
        yanked: its maintainers ask not to use it.
        metadata_sha256: the hash of the METADATA file beside it (`.metadata`), if the index gives
            it.
        index_url: the URL of the index.
    """

    name: str
    url: str
    sha256: str | None = None
    size: int | None = None
    yanked: bool = False
    metadata_sha256: str | None = None
    index_url: str = ""


class Choice(NamedTuple):
    """The wheels that may be the installed one, the likeliest first; or the reason why there are
    none.
    """

    wheels: list[IndexFile]
    reason: str | None


def choose(files: Iterable[IndexFile], name: str, version: str, tags: Sequence[str]) -> Choice:
    """Return the wheels of a version that may have been installed with these tags, likeliest first.

    First those with exactly these tags, then those that share one, then those for the same Python
    and ABI: a wheel may be renamed for a wider platform after its WHEEL file was written
    (auditwheel does).
    """
    offered = list(files)
    if not offered:
        return Choice([], f"{name} is not on an index")
    of_version = [file for file in offered if _is_version(file.name, version)]
    if not of_version:
        return Choice([], f"version {version} of {name} is not on an index")
    wanted: set[Tag] = set()
    for tag in tags:
        wanted |= parse_tag(tag)
    built = [file for file in of_version if file.name.endswith(".whl")]
    # By the rank only: two indexes can offer one name, each with another hash, and files have no order.
    ranked = sorted(((_rank_wheel(file, wanted), file) for file in built), key=itemgetter(0))
    wheels = [file for rank, file in ranked if rank[0] < OTHER_ABI]
    if wheels:
        return Choice(wheels, None)
    if ranked:
        platforms = " or ".join(sorted(tags)) or "its tags"
        return Choice([], f"the index has no wheel of {name} {version} for {platforms}")
    return Choice([], f"{SOURCES_ONLY} {name} {version}, so the wheel was built locally")


def find_source_archives(files: Iterable[IndexFile], version: str) -> list[IndexFile]:
    """Return the source archives of this version, those on the web first."""
    archives = [file for file in files if file.name.endswith((".tar.gz", ".zip"))]
    found = [file for file in archives if _is_version(file.name, version)]
    return sorted(found, key=lambda file: (not file.url.startswith("http"), file.name))


SAME_TAGS, SHARED_TAG, SAME_ABI, OTHER_ABI = range(4)
"""How far the tags of a wheel are from the wanted ones."""


def _rank_wheel(file: IndexFile, wanted: set[Tag]) -> tuple[int, bool, str]:
    """Return the sort key of wheels: the likeliest first, and those on the web before those on a
    disk.
    """
    tags = parse_wheel_filename(file.name)[3]
    if tags == wanted:
        distance = SAME_TAGS
    elif tags & wanted:
        distance = SHARED_TAG
    elif _get_abis(tags) & _get_abis(wanted):
        distance = SAME_ABI
    else:
        distance = OTHER_ABI
    return distance, not file.url.startswith("http"), file.name


def _get_abis(tags: Iterable[Tag]) -> set[tuple[str, str]]:
    return {(tag.interpreter, tag.abi) for tag in tags}


def _is_version(file: str, version: str) -> bool:
    try:
        if file.endswith(".whl"):
            found = parse_wheel_filename(file)[1]
        else:
            found = parse_sdist_filename(file)[1]
        return found == Version(version)
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return False
