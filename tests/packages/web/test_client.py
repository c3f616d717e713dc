"""The client against servers that lie, dawdle, break off and never end: a whole message, in bounded time."""

from __future__ import annotations

import gzip
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from requests.utils import DEFAULT_CA_BUNDLE_PATH

from envlock.packages.web import client as module
from envlock.packages.web.client import Client, make_refusal
from envlock.packages.web.limits import Limits
from envlock.packages.web.web_errors import ADDRESS, LATER, NETWORK, PASSWORD, TRUST, WebError
from envlock.runtime.errors import EnvlockError, UsageError
from tests.packages.web.hostile import Hostile, Request, always, answer, hostile, in_turn

pytestmark = pytest.mark.network

QUICK = Limits(connect=1, silence=0.3, answer=1.0, body=1.0, attempts=3, backoff=0.01, retry_after=0.2)
PATIENT = replace(QUICK, connect=60, silence=60, answer=60, body=60)
"""For answers that come: a busy machine may be late with them."""
FOR_EVER = 60
"""Seconds that no test takes; what is given up within the limits above would last for hours, or until memory is full."""
KB = 1024


@pytest.fixture(autouse=True)
def _bounded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No proxy and no certificate of the machine, and no test takes much longer than the limits above say."""
    for name in (*module.CA_VARIABLES, "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda context: None)  # 20 ms a client
    start = time.monotonic()
    yield
    assert time.monotonic() - start < FOR_EVER


def _get(url: str, **kwargs: object) -> module.Answer:
    return Client(limits=PATIENT).get(url, limit=100 * KB, **kwargs)  # type: ignore[arg-type]


def _fails(url: str, client: Client | None = None) -> WebError:
    with pytest.raises(WebError) as caught:
        (client or Client(limits=QUICK)).get(url, limit=100 * KB)
    assert caught.value.exit_code == 5
    return caught.value


def _breaks(url: str) -> WebError:
    with pytest.raises(WebError) as caught:
        Client(limits=QUICK).fetch(url, bytearray().extend)
    return caught.value


def _drip(sock: socket.socket, data: bytes = b"x", pause: float = 0.05) -> None:
    for _ in range(200):
        sock.sendall(data)
        time.sleep(pause)


def test_an_answer_is_whole() -> None:
    with hostile(always(answer(b"hello", Content_Type="text/plain"))) as server:
        got = _get(server.url("/a?b=c#d"))
    assert (got.status, got.body, got.url, got.headers["content-type"]) == (
        200,
        b"hello",
        server.url("/a?b=c"),
        "text/plain",
    )
    assert server.requests[0].path == "/a?b=c"
    assert server.requests[0].headers["user-agent"].startswith("envlock/")


def test_an_answer_that_says_no_is_an_answer() -> None:
    with hostile(always(answer(b"none", "404 Not Found"))) as server:
        got = _get(server.url("/x"))
    error = make_refusal(got)
    assert (got.status, error.message, error.hint, error.status) == (
        404,
        f"{server.url('/x')} answered 404 (Not Found)",
        ADDRESS,
        404,
    )


def test_a_refusal_says_how_to_be_let_in() -> None:
    with hostile(always(answer(b"", "401 Unauthorized"))) as server:
        assert make_refusal(_get(server.url())).hint == PASSWORD


def test_what_is_truncated_is_asked_for_again_and_then_named() -> None:
    with hostile(always(answer(b"x" * 10, Content_Length="20"))) as server:
        error = _fails(server.url("/file"))
    assert (error.message, error.hint) == (f"{server.url('/file')} ended after 10 of 20 bytes", LATER)
    assert len(server.requests) == 3


def test_a_truncated_answer_is_healed_by_the_second_attempt() -> None:
    with hostile(in_turn(answer(b"x" * 10, Content_Length="20"), answer(b"whole"))) as server:
        assert _get(server.url()).body == b"whole"


def test_more_than_the_content_length_is_not_read() -> None:
    with hostile(always(answer(b"hello, and more", Content_Length="5"))) as server:
        assert _get(server.url()).body == b"hello"


def test_a_length_of_thousands_of_digits_is_too_much() -> None:
    """From Python 3.11 on `int` refuses to read it."""
    with hostile(always(answer(b"x", Content_Length="9" * 5000))) as server:
        assert _fails(server.url()).message == f"{server.url()} sent more than 102400 bytes, which is too much"


def test_truncated_chunks_are_noticed() -> None:
    body = b"5\r\nhello\r\n400\r\nwor"
    with hostile(always(answer(body, Content_Length="", Transfer_Encoding="chunked"))) as server:
        error = _fails(server.url())
    assert error.message.startswith(f"{server.url()} ended after ")


def test_whole_chunks_are_read() -> None:
    body = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    with hostile(always(answer(body, Content_Length="", Transfer_Encoding="chunked"))) as server:
        assert _get(server.url()).body == b"hello world"


def test_a_wait_that_the_server_asks_for_is_kept() -> None:
    busy = answer(b"", "429 Too Many Requests", Retry_After="0")
    with hostile(in_turn(busy, busy, answer(b"now"))) as server:
        assert _get(server.url()).body == b"now"
    assert len(server.requests) == 3


@pytest.mark.parametrize("after", ["1", "soon", "-1", ""])
def test_no_server_makes_us_wait_for_long(after: str) -> None:
    busy = answer(b"", "429 Too Many Requests", Retry_After=after)
    with hostile(in_turn(busy, answer(b"now"))) as server:
        assert _get(server.url()).body == b"now"


def test_a_server_that_fails_for_ever() -> None:
    with hostile(always(answer(b"", "500 Internal Server Error"))) as server:
        error = _fails(server.url())
    assert (error.message, error.hint, error.status) == (
        f"{server.url()} answered 500 (Internal Server Error)",
        LATER,
        500,
    )
    assert len(server.requests) == 3


def test_a_redirect_loop_ends() -> None:
    with hostile(lambda request, sock: sock.sendall(answer(b"", "302 Found", Location=request.path))) as server:
        error = _fails(server.url("/round"))
    assert error.message == f"{server.url('/round')} redirects more than 5 times"
    assert len(server.requests) == 6


def test_the_body_of_a_redirect_is_not_read() -> None:
    def reply(request: Request, sock: socket.socket) -> None:
        if request.path == "/b":
            return sock.sendall(answer(b"here"))
        sock.sendall(answer(b"", "302 Found", Location="/b", Content_Length=""))
        return _drip(sock, b"x" * 10 * KB)

    with hostile(reply) as server:
        assert _get(server.url("/a")).body == b"here"


def test_a_redirect_is_followed() -> None:
    moved = answer(b"", "301 Moved Permanently", Location="there?q=1")
    with hostile(in_turn(moved, answer(b"here"))) as server:
        got = _get(server.url("/simple/a"))
    assert (got.body, got.url) == (b"here", server.url("/simple/there?q=1"))


@pytest.mark.parametrize("location", ["ftp://example.org/", "file:///etc/passwd", "http://[", "http://a:b/"])
def test_a_redirect_to_nowhere(location: str) -> None:
    with hostile(always(answer(b"", "302 Found", Location=location))) as server:
        error = _fails(server.url())
    assert error.message == f"{server.url()} redirects to an invalid URL"


def _redirector(target: str) -> bytes:
    return answer(b"", "307 Temporary Redirect", Location=target)


@pytest.mark.parametrize("way", ["in the URL", "a header"])
def test_credentials_never_go_to_another_origin(way: str) -> None:
    with hostile(always(answer(b"got it"))) as other, hostile(always(_redirector(other.url("/x")))) as server:
        url = server.url("/private")
        headers = {"AUTHORIZATION": "Bearer s3cret", "Cookie": "s3cret"} if way == "a header" else {}
        if way == "in the URL":
            url = url.replace("://", "://user:s3cret@")
        got = Client(limits=QUICK).get(url, headers=headers, limit=KB)
    assert got.body == b"got it"
    assert server.requests[0].headers["authorization"] in ("Basic dXNlcjpzM2NyZXQ=", "Bearer s3cret")
    assert "authorization" not in other.requests[0].headers
    assert "s3cret" not in str(other.requests)


def test_credentials_stay_within_their_origin() -> None:
    with hostile(in_turn(_redirector("/b"), answer(b"in"))) as server:
        assert _get(server.url("/a").replace("://", "://us%40er:p%C3%A4ss@")).body == b"in"
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Basic dXNAZXI6cMOkc3M="] * 2


def test_a_redirect_gives_no_credentials() -> None:
    with hostile(always(answer(b"in"))) as other:
        target = other.url().replace("://", "://user:s3cret@")
        with hostile(always(_redirector(target))) as server:
            got = _get(server.url())
    assert (got.url, "authorization" in other.requests[0].headers) == (other.url(), False)


def test_netrc_and_cookies_are_not_used_behind_our_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login user password s3cret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with hostile(always(answer(b"in", Set_Cookie="id=1; Path=/"))) as server:
        client = Client(limits=QUICK)
        client.get(server.url(), limit=KB)
        client.get(server.url(), limit=KB)
    assert {"authorization", "cookie"} & set(server.requests[1].headers) == set()


def test_no_message_holds_a_secret() -> None:
    with hostile(always(answer(b"", "403 Forbidden"))) as server:
        url = server.url("/x?token=s3cret").replace("://", "://user:s3cret@")
        error = make_refusal(_get(url))
    gone = _fails(url)  # the server has ended
    assert error.message == f"{server.url('/x')} answered 403 (Forbidden)"
    assert gone.message == f"{server.url('/x')} cannot be reached: connection refused"
    assert "s3cret" not in f"{error}{gone}{error!r}{gone!r}{gone.__cause__!r}"


def test_connection_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    error = _fails(url)
    assert (error.message, error.hint) == (f"{url} cannot be reached: connection refused", NETWORK)


def test_no_such_host() -> None:
    error = _fails("http://nothing.invalid/")
    assert error.message == "http://nothing.invalid/ cannot be reached: its host is unknown"


@pytest.mark.parametrize(
    "url", ["ftp://example.org/", "example.org", "http://", "", "http://a b/", "http://[::1/", "x:y"]
)
def test_what_is_no_web_address(url: str) -> None:
    assert _fails(url).message.startswith("invalid URL: ")


def test_silence() -> None:
    with hostile(lambda request, sock: time.sleep(1.2)) as server:
        error = _fails(server.url())
    assert error.message in (  # the last attempt ends with the whole time, or before it
        f"{server.url()} cannot be reached: it does not answer",
        f"{server.url()} is too slow: it took longer than 1 s",
    )


def test_a_slow_loris_in_the_headers() -> None:
    def loris(request: Request, sock: socket.socket) -> None:
        sock.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        _drip(sock)

    with hostile(loris) as server:
        error = _fails(server.url())
    assert error.message == f"{server.url()} is too slow: it took longer than 1 s"


def test_a_slow_loris_in_the_body() -> None:
    def loris(request: Request, sock: socket.socket) -> None:
        sock.sendall(answer(b"", Content_Length="1000000"))
        _drip(sock)

    with hostile(loris) as server:
        caught = _breaks(server.url())
    assert caught.message == f"{server.url()} is too slow: it took longer than 1 s"
    assert caught.passing


def test_a_body_that_never_ends_for_a_page() -> None:
    def endless(request: Request, sock: socket.socket) -> None:
        sock.sendall(answer(b"", Content_Length=""))
        _drip(sock, b"x" * 10 * KB, pause=0)

    with hostile(endless) as server:
        error = _fails(server.url())
    assert error.message == f"{server.url()} sent more than {100 * KB} bytes, which is too much"
    assert len(server.requests) == 1


def test_a_body_that_never_ends_for_a_stream() -> None:
    def endless(request: Request, sock: socket.socket) -> None:
        sock.sendall(answer(b"", Content_Length=""))
        _drip(sock, b"x" * 10 * KB, pause=0.01)

    with hostile(endless) as server:
        caught = _breaks(server.url())
    assert caught.message == f"{server.url()} is too slow: it took longer than 1 s"


def test_a_page_that_says_that_it_is_too_large_is_not_read() -> None:
    with hostile(always(answer(b"", Content_Length=str(10**12)))) as server:
        assert _fails(server.url()).message.startswith(f"{server.url()} sent more than 102400 bytes")


@pytest.mark.parametrize("data", [b"\0\xff" * 500, b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 9999 OK\r\n\r\n"])
def test_garbage_is_no_answer(data: bytes) -> None:
    with hostile(always(data)) as server:
        error = _fails(server.url())
    assert error.message == f"{server.url()} sent an unreadable answer: it is not an HTTP answer"
    assert len(server.requests) == 1


def test_a_connection_that_is_closed_at_once() -> None:
    with hostile(lambda request, sock: None) as server:
        error = _fails(server.url())
    assert error.message == f"{server.url()} cannot be reached: it closed the connection without an answer"
    assert len(server.requests) == 3


def test_a_body_comes_as_it_is() -> None:
    """A digest is that of the bytes that were sent, so nothing is asked to be compressed, and nothing is unpacked."""
    packed = gzip.compress(b"an sdist", mtime=0)
    received = bytearray()
    with hostile(always(answer(packed, Content_Encoding="x-gzip"))) as server:
        assert Client(limits=QUICK).fetch(server.url(), received.extend).status == 200
        assert (bytes(received), _get(server.url()).body) == (packed, packed)
    assert server.requests[0].headers["accept-encoding"] == "identity"


def test_the_body_of_a_refusal_is_not_received() -> None:
    with hostile(always(answer(b"none", "404 Not Found"))) as server:
        received = bytearray()
        assert (Client(limits=QUICK).fetch(server.url(), received.extend).status, bytes(received)) == (404, b"")


def test_a_stream_that_breaks_off() -> None:
    with hostile(always(answer(b"x" * 10, Content_Length="20"))) as server:
        caught = _breaks(server.url())
    assert caught.message == f"{server.url()} ended after 10 of 20 bytes"
    assert len(server.requests) == 1


def test_threads_share_a_client() -> None:
    from concurrent.futures import ThreadPoolExecutor

    with hostile(lambda request, sock: sock.sendall(answer(request.path.encode()))) as server:
        client = Client(limits=QUICK)
        with ThreadPoolExecutor(8) as pool:
            bodies = list(pool.map(lambda i: client.get(server.url(f"/{i}"), limit=KB).body, range(40)))
    assert bodies == [f"/{i}".encode() for i in range(40)]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a key and a certificate for 127.0.0.1 that nobody has signed."""
    openssl = shutil.which("openssl")
    if openssl is None:
        import os

        (pytest.fail if os.environ.get("CI") else pytest.skip)("no openssl to make a certificate with")
    file = tmp_path_factory.mktemp("tls") / "cert.pem"
    argv = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    argv += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(file), "-out", str(file) + ".crt"]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    file.write_text(file.read_text() + Path(str(file) + ".crt").read_text())
    return file


@pytest.fixture
def tls(certificate: Path) -> Iterator[Hostile]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def reply(request: Request, sock: socket.socket) -> None:
        location = request.path.partition("?to=")[2]
        sock.sendall(answer(b"", "302 Found", Location=location) if location else answer(b"secret page"))

    with hostile(reply, context) as server:
        yield server


def test_a_certificate_that_nobody_has_signed(tls: Hostile) -> None:
    error = _fails(tls.url("/simple/"))
    assert error.message.startswith(f"{tls.url('/simple/')} is not trusted: self")
    assert error.hint == TRUST
    assert tls.requests == []


@pytest.mark.parametrize("variable", ["PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
def test_a_certificate_that_is_named(
    tls: Hostile, certificate: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, f"{certificate}.crt")
    assert Client(limits=QUICK).get(tls.url(), limit=KB).body == b"secret page"


def test_a_certificate_that_the_named_file_lacks(tls: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    named = str(DEFAULT_CA_BUNDLE_PATH)
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent")
    monkeypatch.setenv("PIP_CERT", named)
    error = _fails(tls.url(), Client(limits=QUICK))
    assert error.hint == f"add its CA certificate to {named}, which PIP_CERT names; only that is trusted"


def test_a_certificate_for_somebody_else(tls: Hostile, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CERT", f"{certificate}.crt")
    error = _fails(tls.url(host="localhost"), Client(limits=QUICK))
    text = f"{tls.url(host='localhost')} is not trusted: "  # the rest is OpenSSL's, or for an old urllib3 our own
    assert error.message.startswith((f"{text}Hostname mismatch", f"{text}its certificate is for another host"))
    assert error.hint == "use the name that its certificate is for, or ask its administrator"


def test_https_is_never_left(tls: Hostile, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CERT", f"{certificate}.crt")
    with hostile(always(answer(b"plain"))) as plain:
        error = _fails(tls.url(f"/?to={plain.url('/x')}"), Client(limits=QUICK))
    assert error.message == f"{tls.url('/')} redirects from https to {plain.url('/x')}, which is not encrypted"
    assert plain.requests == []


def test_no_tls_where_https_was_asked_for() -> None:
    with hostile(always(answer(b"plain"))) as server:
        url = server.url().replace("http:", "https:")
        error = _fails(url, Client(limits=replace(QUICK, answer=FOR_EVER, attempts=1)))
    assert error.message.startswith(f"{url} cannot be reached")


@pytest.mark.parametrize("path", ["/nowhere/ca.pem", f"/{'x' * 300}", "/etc/hosts/ca.pem"])
def test_certificates_that_are_not_there(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CERT", path)
    with pytest.raises(UsageError) as caught:
        Client()
    assert caught.value.message == f"no trusted certificates at {path}"


def test_a_proxy_is_used_and_held_to_the_same_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    with hostile(always(answer(b"by proxy"))) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url().replace("://", "://user:s3cret@"))
        monkeypatch.setenv("no_proxy", "")
        assert _get("http://index.example.org/simple/").body == b"by proxy"
        monkeypatch.setenv("https_proxy", proxy.url())
    assert proxy.requests[0].path == "http://index.example.org/simple/"
    error = _fails("https://index.example.org/")
    assert error.message == (
        f"https://index.example.org/ cannot be reached through the proxy {proxy.url()}: connection refused"
    )
    assert isinstance(error, EnvlockError)
