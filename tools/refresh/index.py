"""The pages of a package index, and files on it that are read in parts."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urljoin

from envlock.packages.web.client import Answer, Client, make_refusal
from envlock.runtime.errors import OutsideError

JSON = "application/vnd.pypi.simple.v1+json"
LARGEST = 64 * 1024 * 1024
BLOCK = 256 * 1024
"""Bytes that are read at a time."""
RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")


@dataclass(frozen=True)
class IndexFile:
    """A file as an index describes it."""

    name: str
    url: str
    sha256: str | None = None
    size: int | None = None
    yanked: bool = False


def list_files(client: Client, index: str, project: str) -> list[IndexFile]:
    """Return the files that an index offers for a project.

    Raises:
        OutsideError: the index cannot be reached or refuses, or does not send a page in JSON.
    """
    url = f"{index.rstrip('/')}/{project}/"
    answer = client.get(url, headers={"Accept": JSON}, limit=LARGEST)
    if answer.status == HTTPStatus.NOT_FOUND:
        return []
    if answer.status != HTTPStatus.OK:
        raise make_refusal(answer)
    try:
        return [
            IndexFile(
                str(row["filename"]),
                urljoin(answer.url, str(row["url"])),
                row["hashes"].get("sha256"),
                row.get("size"),
                bool(row.get("yanked")),
            )
            for row in json.loads(answer.body)["files"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise OutsideError(
            f"the page of {project} is not one of an index", hint="ask again later"
        ) from None


class RemoteFile(io.RawIOBase):
    """A seekable file on a server, read in parts.

    Raises:
        OutsideError: the server refuses, or sends another part than the one that was requested.
    """

    def __init__(self, client: Client, url: str) -> None:
        self._client = client
        self._url = url
        self._position = 0
        self._size = self._ask("bytes=0-0")[1]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(start + offset, 0)
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        end = min(self._position + min(len(buffer), BLOCK), self._size)
        if end <= self._position:
            return 0
        answer, _ = self._ask(f"bytes={self._position}-{end - 1}")
        buffer[: len(answer.body)] = answer.body
        self._position += len(answer.body)
        return len(answer.body)

    def _ask(self, part: str) -> tuple[Answer, int]:
        headers = {"Range": part, "Accept-Encoding": "identity"}
        answer = self._client.get(
            self._url, headers=headers, limit=LARGEST, only=[HTTPStatus.PARTIAL_CONTENT]
        )
        if answer.status != HTTPStatus.PARTIAL_CONTENT:
            raise make_refusal(answer)
        found = RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if found is None or not part.startswith(f"bytes={found[1]}-"):
            raise OutsideError("the server sent another part of a file", hint="ask again later")
        return answer, int(found[3])
