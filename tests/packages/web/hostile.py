"""A server that does to each connection exactly what a test says, and remembers what it was asked."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

Reply = Callable[["Request", socket.socket], None]
CONNECTIONS = 2000  # a test that makes more is wrong
SECONDS = 20


@dataclass(frozen=True)
class Request:
    """What a client asked; names of headers are in lower case."""

    path: str
    headers: dict[str, str]


@dataclass
class Hostile:
    """Where it listens, and every request it got."""

    port: int
    scheme: str = "http"
    requests: list[Request] = field(default_factory=list)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """Return the address of a path; `localhost` is another origin than 127.0.0.1."""
        return f"{self.scheme}://{host}:{self.port}{path}"


@contextmanager
def hostile(reply: Reply, context: ssl.SSLContext | None = None) -> Iterator[Hostile]:
    """Serve on 127.0.0.1: every connection carries one request, which `reply` answers."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = Hostile(listener.getsockname()[1], "https" if context else "http")
    threads: list[threading.Thread] = []

    def accept() -> None:
        with suppress(OSError):
            for _ in range(CONNECTIONS):
                threads.append(threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True))
                threads[-1].start()

    def serve(sock: socket.socket) -> None:
        sock.settimeout(SECONDS)
        with suppress(OSError), sock:
            speaking = context.wrap_socket(sock, server_side=True) if context else sock
            with speaking:
                request = _read(speaking)
                server.requests.append(request)
                reply(request, speaking)

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield server
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # wakes the one that waits in accept
        listener.close()
        for thread in [acceptor, *threads]:
            thread.join(SECONDS)


def _read(sock: socket.socket) -> Request:
    head = b""
    while b"\r\n\r\n" not in head:
        got = sock.recv(65536)
        if not got:
            raise ConnectionError
        head += got
    first, *lines = head.decode("latin-1").split("\r\n\r\n")[0].split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Request(first.split()[1], {name.lower(): value.strip() for name, _, value in pairs})


def answer(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    """Return a whole answer; a Content-Length of its own may lie, and `Content_Length=""` leaves it out."""
    fields = {"Content-Length": str(len(body)), **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    return f"HTTP/1.1 {status}\r\n{lines}Connection: close\r\n\r\n".encode() + body


def always(data: bytes) -> Reply:
    """Return what sends these bytes to everybody."""
    return lambda request, sock: sock.sendall(data)


def in_turn(*replies: bytes) -> Reply:
    """Return what sends the first to the first, and the last to all that come after."""
    left = list(replies)
    return lambda request, sock: sock.sendall(left.pop(0) if len(left) > 1 else left[0])
