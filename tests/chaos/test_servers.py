"""Registries and lists that are slow, endless, lying or bombs, over real sockets: an error, soon, in few requests."""

from __future__ import annotations

import gzip
import json
import socket
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.image.bases import registry
from envlock.image.bases.reference import parse
from envlock.image.bases.registry import Registry
from envlock.packages.web.client import Client
from envlock.packages.web.limits import Limits
from envlock.runtime.errors import EnvlockError
from tests.packages.web.hostile import Hostile, Reply, Request, answer, hostile

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")]

QUICK = Limits(connect=1, silence=0.5, answer=1.5, body=2.0, attempts=3, backoff=0.01, retry_after=0.1)
REQUESTS = 3 * (5 + 1)
"""At most: attempts times redirects, and the first."""
SECONDS = 20
"""Wall time: the limits allow two, and the machine may be loaded."""
MEMORY = 200 * 2**20
BYTES = {"most": 64 * 2**20}


def _drip(pieces: Iterator[bytes], pause: float) -> Reply:
    def reply(_: Request, sock: socket.socket) -> None:
        for each in pieces:
            sock.sendall(each)
            time.sleep(pause)

    return reply


def _endless(head: bytes, body: bytes, limit: int = 100 * 2**20) -> Reply:
    """Return what sends a body again and again: bounded, so that an attack that succeeds ends as well."""

    def reply(_: Request, sock: socket.socket) -> None:
        sock.sendall(head)
        for _number in range(limit // len(body)):
            sock.sendall(body)

    return reply


def _always(data: bytes) -> Reply:
    return lambda _, sock: sock.sendall(data)


def _hang(_: Request, sock: socket.socket) -> None:
    time.sleep(3)


def _to(where: str) -> Reply:
    return _always(answer(b"", "302 Found", Location=where))


def _loop(request: Request, sock: socket.socket) -> None:
    sock.sendall(answer(b"", "302 Found", Location=f"{request.path}x"))


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
ZEROS = b"\0" * 2**16


def _bomb(kind: str) -> bytes:
    """Return 300 MB of blanks, packed into some hundred kilobytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31 if kind == "gzip" else 15)
    blanks = b" " * 2**20
    body = b"".join(packer.compress(blanks) for _ in range(300)) + packer.flush()
    return answer(body, Content_Encoding=kind)


MODES: dict[str, Callable[[], Reply]] = {
    "hangs": lambda: _hang,
    "closes at once": lambda: lambda _, sock: sock.close(),
    "a byte at a time in the headers": lambda: _drip(
        (b"HTTP/1.1 200 OK\r\nX: y\r\n"[n : n + 1] for n in range(23)), 0.2
    ),
    "a byte at a time in the body": lambda: _drip(iter([HEAD + b"\r\n", *[b"x"] * 40]), 0.1),
    "endless headers": lambda: _endless(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 100),
    "an endless header": lambda: _endless(b"HTTP/1.1 200 OK\r\nX: ", b"a" * 1000),
    "an endless body": lambda: _endless(HEAD + b"\r\n", ZEROS),
    "endless chunks": lambda: _endless(
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b"x" * 4096 + b"\r\n"
    ),
    "a chunk that is none": lambda: _always(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n"),
    "fewer bytes than it says": lambda: _always(answer(b"x", Content_Length="1000")),
    "a negative length": lambda: _always(answer(b"x", Content_Length="-5")),
    "a length of thousands of digits": lambda: _always(answer(b"x", Content_Length="9" * 5000)),
    "two lengths": lambda: _always(HEAD + b"Content-Length: 1\r\nContent-Length: 9\r\n\r\nxxxx"),
    "redirects to itself": lambda: lambda request, sock: _to(request.path)(request, sock),
    "redirects to ever new paths": lambda: _loop,
    "redirects to a file": lambda: _to("file:///etc/passwd"),
    "redirects to gopher": lambda: _to("gopher://127.0.0.1:1/"),
    "redirects to a port that is none": lambda: _to("http://127.0.0.1:99999/"),
    "redirects to a host that is none": lambda: _to("http://[::1/"),
    "asks to wait for years": lambda: _always(answer(b"", "503 Service Unavailable", Retry_After="99999999")),
    "asks to wait for nonsense": lambda: _always(answer(b"", "429 Too Many Requests", Retry_After="soon\x1b[31m")),
    "noise": lambda: _always(bytes(range(256)) * 50),
    "HTTP/0.9": lambda: _always(b"<html>no headers</html>"),
    "escapes in its reason": lambda: _always(b"HTTP/1.1 500 \x1b[31mred\r\nContent-Length: 0\r\n\r\n"),
    "wants a login": lambda: _always(answer(b"", "401 Unauthorized", WWW_Authenticate="Basic realm=x")),
    "tokens in a circle": lambda: (
        lambda request, sock: sock.sendall(
            answer(b"", "401 Unauthorized", WWW_Authenticate=f'Bearer realm="http://{request.headers["host"]}/token"')
        )
    ),
    "a gzip bomb": lambda: _always(_bomb("gzip")),
    "a deflate bomb": lambda: _always(_bomb("deflate")),
    "half a gzip": lambda: _always(answer(gzip.compress(b"x" * 9999)[:50], Content_Encoding="gzip")),
    "gzip in gzip in gzip": lambda: _always(
        answer(gzip.compress(gzip.compress(b"x")), Content_Encoding="gzip, gzip, br")
    ),
    "brackets": lambda: _always(answer(b"[" * 500_000, Content_Type="application/json")),
    "open tags": lambda: _always(answer(b"<html>" + b"<a " * 20_000, Content_Type="text/html")),
    "JSON of another kind": lambda: _always(answer(json.dumps({"files": 1, "manifests": 2}).encode())),
}


def _list(server: Hostile, limits: Limits) -> object:
    return Client(limits=limits).get(server.url("/list"), limit=BYTES["most"])


def _registry(server: Hostile, limits: Limits) -> object:
    name = f"127.0.0.1:{server.port}/nvidia/tensorflow:1"
    return Registry(Client(limits=limits), lambda _: None).find(parse(name), "linux/amd64")


CLIENTS = {"list": _list, "registry": _registry}


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(registry, "PROBE", QUICK)


def _attacked(mode: str, client: str, limits: Limits = QUICK) -> tuple[float, int, int]:
    """Return the seconds, the requests and the bytes of memory that an answer cost; an error of ours ends it."""
    with hostile(MODES[mode]()) as server:
        tracemalloc.start()
        begin = time.monotonic()
        try:
            CLIENTS[client](server, limits)
        except EnvlockError as error:
            said = error.message
        else:
            said = ""
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert said.isprintable()
        return time.monotonic() - begin, len(server.requests), peak


SHORT = ("redirects to ever new paths", "redirects to a file", "tokens in a circle", "half a gzip", "brackets")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mode", [m if m in SHORT else pytest.param(m, marks=pytest.mark.chaos) for m in MODES])
def test_a_hostile_server_costs_little(mode: str, client: str) -> None:
    seconds, requests, memory = _attacked(mode, client)
    assert seconds < SECONDS
    assert requests <= REQUESTS
    assert memory < MEMORY


def test_a_loop_of_redirects_is_one_without_a_limit() -> None:
    assert _attacked("redirects to ever new paths", "list", replace(QUICK, redirects=60, answer=20))[1] > REQUESTS


@pytest.mark.chaos
def test_a_slow_server_holds_us_without_a_limit() -> None:
    patient = Limits(silence=5, answer=60)
    assert _attacked("a byte at a time in the body", "list", patient)[0] > 3


def test_what_a_redirect_leads_to_is_not_read(tmp_path: Path) -> None:
    """A file of this machine is never an answer."""
    (tmp_path / "secret").write_text("root:", encoding="utf-8")
    with hostile(_to((tmp_path / "secret").as_uri())) as server, pytest.raises(EnvlockError, match="redirect"):
        _list(server, QUICK)
