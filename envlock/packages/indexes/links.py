"""The links of an index's HTML page, in time that grows with its length, whatever it holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from urllib.parse import urljoin

from pypi_simple.html import Link
from pypi_simple.html_stream import iterhtmldecode
from pypi_simple.util import check_repo_version

LONGEST = 32 * 1024
"""Characters of one tag, comment or script; a link with its hashes has some hundreds."""


class _Page(HTMLParser):
    """Takes the links as they begin: their text means nothing, so nesting does not either."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.found: list[Link] = []
        self._base = url
        self._has_base = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values: dict[str, str | list[str]] = {name: value or "" for name, value in attrs}
        href = str(values.get("href", ""))
        if tag == "a" and "href" in values:
            self.found.append(Link(text="", url=urljoin(self._base, href), attrs=values))
        elif tag == "base" and "href" in values and not self._has_base:
            self._base, self._has_base = urljoin(self._base, href), True
        elif tag == "meta" and values.get("name") == "pypi:repository-version":
            check_repo_version(str(values.get("content", "")))


def links(pieces: Iterable[bytes], url: str) -> Iterator[Link]:
    """Yield the links of a page that comes in pieces, and nothing of a tag that its end cuts off.

    The parser is never told of the end, and the pieces ought to be small: what is still open is read again with every
    piece, and at the end once for each `<` in it, which takes a minute for 60 KB (CVE-2025-6069).

    Raises:
        ValueError: something in it is longer than `LONGEST`, or no address.
        UnsupportedRepoVersionError: its protocol is too new.
    """
    page = _Page(url)
    for text in iterhtmldecode(pieces):
        page.feed(text)
        if len(page.rawdata) > LONGEST:
            raise ValueError("a tag without an end")
        yield from page.found
        page.found.clear()
