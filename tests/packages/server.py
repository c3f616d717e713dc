"""A package index on this machine: a folder of files as the Simple API, with a switch for every kind of trouble.

with index_server(folder) as server:
    server.troubles.add("swapped")
    server.url  # of the index; the files are at `server.file_url(name)`
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from packaging.utils import canonicalize_name

from tests.packages.web.hostile import Hostile, Request, answer, hostile

TROUBLES = {
    "wrong hash": "pages give the sha256 of something else",
    "no hash": "pages give none",
    "wrong size": "JSON pages give a size that is one byte too large",
    "html only": "JSON is not spoken",
    "mislabelled": "JSON is labelled as HTML, and HTML as JSON",
    "login page": "every page is one to log in at",
    "garbage": "every page is noise",
    "no ranges": "every file comes whole (200), whatever part is asked for",
    "no suffix ranges": "a range that counts from the end gives the file whole",
    "no validators": "neither ETag nor Last-Modified",
    "ignores conditions": "If-Range is not looked at",
    "truncated range": "a part is shorter than its headers say",
    "other range": "another part than the one asked for",
    "swapped": "every file is another one from the second request on",
    "breaks off": "a file stops half way through what was asked for",
    "429": "the first two requests are answered 429",
    "500": "every request is answered 500",
    "redirect loop": "every path leads to itself",
    "slow loris": "every body comes a byte at a time",
    "endless page": "no page ends",
    "endless file": "no file ends",
    "private": "user `user` and password `s3cret` are needed",
}


@dataclass
class IndexServer:
    """A running index; `troubles` may be changed at any time, `requests` tells what was asked."""

    folder: Path
    server: Hostile
    troubles: set[str] = field(default_factory=set)

    @property
    def url(self) -> str:
        """Its address, as for --index-url."""
        return self.server.url("/simple/")

    @property
    def requests(self) -> list[Request]:
        """Every request so far."""
        return self.server.requests

    def file_url(self, name: str) -> str:
        """Where a file is."""
        return self.server.url(f"/files/{name}")

    def asked(self, path: str) -> list[Request]:
        """Return the requests for what begins with a path."""
        return [request for request in self.requests if request.path.startswith(path)]

    def reply(self, request: Request, sock: socket.socket) -> None:
        """Answer one request."""
        unknown = self.troubles - TROUBLES.keys()
        assert not unknown, f"no such trouble: {unknown}"
        data = self._refusal(request)
        if data is None:
            path = unquote(request.path.partition("?")[0])
            data = self._file(path[7:], request) if path.startswith("/files/") else self._page(path, request)
        if "slow loris" in self.troubles:
            head, _, body = data.partition(b"\r\n\r\n")
            sock.sendall(head + b"\r\n\r\n")
            for byte in body[:2000]:
                sock.sendall(bytes([byte]))
                time.sleep(0.02)
        elif f"endless {'file' if request.path.startswith('/files/') else 'page'}" in self.troubles:
            sock.sendall(answer(Content_Length="", Content_Type="text/html"))
            for _ in range(1000):
                sock.sendall(b"<p>" * 100_000)
        else:
            sock.sendall(data)

    def _refusal(self, request: Request) -> bytes | None:
        login = "Basic " + base64.b64encode(b"user:s3cret").decode()
        if "private" in self.troubles and request.headers.get("authorization") != login:
            return answer(b"who are you?", "401 Unauthorized", WWW_Authenticate='Basic realm="index"')
        if "500" in self.troubles:
            return answer(b"", "500 Internal Server Error")
        if "429" in self.troubles and len(self.requests) <= 2:
            return answer(b"", "429 Too Many Requests", Retry_After="0")
        if "redirect loop" in self.troubles:
            return answer(b"", "302 Found", Location=request.path)
        return None

    def _page(self, path: str, request: Request) -> bytes:
        project = path.removeprefix("/simple/").strip("/")
        files = [each for each in sorted(self.folder.iterdir()) if _project(each.name) == project]
        if "login page" in self.troubles:
            return answer(b"<html><a href='/help'>Help</a><form>Password</form></html>", Content_Type="text/html")
        if "garbage" in self.troubles:
            return answer(b"\0\1\2 garbage", Content_Type="application/vnd.pypi.simple.v1+json")
        if not files:
            return answer(b"no such project", "404 Not Found")
        in_json = "html only" not in self.troubles and "json" in request.headers.get("accept", "")
        body = self._json(project, files) if in_json else self._html(project, files)
        label = in_json != ("mislabelled" in self.troubles)
        return answer(body, Content_Type="application/vnd.pypi.simple.v1+json" if label else "text/html")

    def _json(self, project: str, files: list[Path]) -> bytes:
        rows = [
            {
                "filename": file.name,
                "url": f"../../files/{file.name}",
                "hashes": {} if "no hash" in self.troubles else {"sha256": self._sha256(file)},
                "size": file.stat().st_size + ("wrong size" in self.troubles),
                "core-metadata": False,
                "yanked": False,
            }
            for file in files
        ]
        page = {"meta": {"api-version": "1.1"}, "name": project, "versions": [], "files": rows}
        return json.dumps(page).encode()

    def _html(self, project: str, files: list[Path]) -> bytes:
        links = [
            f'<a href="../../files/{html.escape(file.name)}'
            f'{"" if "no hash" in self.troubles else "#sha256=" + self._sha256(file)}">{file.name}</a><br>'
            for file in files
        ]
        head = f'<meta name="pypi:repository-version" content="1.1"><title>Links for {project}</title>'
        return f"<!DOCTYPE html><html><head>{head}</head><body>{''.join(links)}</body></html>".encode()

    def _sha256(self, file: Path) -> str:
        data = b"something else" if "wrong hash" in self.troubles else file.read_bytes()
        return hashlib.sha256(data).hexdigest()

    def _file(self, name: str, request: Request) -> bytes:
        path = self.folder / name
        if "/" in name or not path.is_file():
            return answer(b"no such file", "404 Not Found")
        data = path.read_bytes()
        if "swapped" in self.troubles and len(self.asked("/files/")) > 1:
            data = data[: len(data) // 2] + b"swapped" + data[len(data) // 2 + 7 :]
        tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        fields = {"ETag": tag, "Accept_Ranges": "bytes"}
        part = self._part(request, len(data), tag)
        if "no validators" in self.troubles:
            del fields["ETag"]
        if part is None:
            return self._cut(answer(data, **fields), len(data))
        start, end = part
        if start >= len(data):
            return answer(b"", "416 Range Not Satisfiable", Content_Range=f"bytes */{len(data)}")
        if "other range" in self.troubles:
            start, end = 0, end - start
        body = data[start:end]
        fields["Content_Range"] = f"bytes {start}-{end - 1}/{len(data)}"
        if "truncated range" in self.troubles:
            body = body[:-1]
        return self._cut(answer(body, "206 Partial Content", **fields), len(body))

    def _part(self, request: Request, size: int, tag: str) -> tuple[int, int] | None:
        """Return which bytes to send; None is all."""
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
        condition = tag if "ignores conditions" in self.troubles else request.headers.get("if-range", tag)
        if match is None or "no ranges" in self.troubles or condition != tag:
            return None
        first, last = match.groups()
        if not first:
            return None if "no suffix ranges" in self.troubles else (max(0, size - int(last)), size)
        return int(first), min(size, int(last) + 1 if last else size)

    def _cut(self, data: bytes, body: int) -> bytes:
        return data[: len(data) - body // 2] if "breaks off" in self.troubles else data


@contextmanager
def index_server(folder: Path) -> Iterator[IndexServer]:
    """Serve the files of a folder on 127.0.0.1."""
    with hostile(lambda request, sock: running.reply(request, sock)) as server:
        running = IndexServer(folder, server)
        yield running


def _project(file: str) -> str:
    stem = file.partition("-")[0] if file.endswith(".whl") else file.removesuffix(".tar.gz").rpartition("-")[0]
    return canonicalize_name(stem)
