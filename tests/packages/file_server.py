"""A server of files that knows ranges, and does to single paths what a test says."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.packages.web.hostile import Hostile, Reply, Request, answer, hostile


@contextmanager
def files(contents: Mapping[str, bytes], odd: Mapping[str, Reply] | None = None) -> Iterator[Hostile]:
    """Serve contents by path on 127.0.0.1; what stands in `odd` is answered by that instead."""

    def reply(request: Request, sock: socket.socket) -> None:
        special = (odd or {}).get(request.path)
        if special is not None:
            special(request, sock)
        elif request.path in contents:
            sock.sendall(part(contents[request.path], request))
        else:
            sock.sendall(answer(b"", "404 Not Found"))

    with hostile(reply) as server:
        yield server


def part(content: bytes, request: Request) -> bytes:
    """Return the answer to a request for a file, or for the rest of it."""
    wanted = re.fullmatch(r"bytes=(\d+)-", request.headers.get("range", ""))
    if wanted is None:
        return answer(content, ETag='"1"')
    start = int(wanted[1])
    span = f"bytes {start}-{len(content) - 1}/{len(content)}"
    return answer(content[start:], "206 Partial Content", ETag='"1"', Content_Range=span)
