"""Requests to a registry or a list: `get` for answers that fit into memory, `stream` for files,
`send` to upload.

Whatever the server does, an answer or a `WebError` comes within a limited time. Credentials are
sent only to the origin that they belong to, and no message contains them or a query.
"""

from __future__ import annotations

import base64
import os
import time
import zlib
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from http.cookiejar import DefaultCookiePolicy
from ssl import SSLContext
from typing import Any, TypeVar
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.ssl_ import create_urllib3_context

from envlock.packages.web import web_errors
from envlock.packages.web.deadline import CURRENT, POOLS, Patience
from envlock.packages.web.limits import Limits
from envlock.packages.web.web_errors import WebError, show_url
from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean
from envlock.runtime.version import __version__

T = TypeVar("T")
REDIRECTS = (301, 302, 303, 307, 308)
SAME_METHOD = (307, 308)
"""Redirects after which a POST or PUT is repeated: after the others it would become a GET."""
CHUNK = 64 * 1024
LENGTH_DIGITS = 18
"""The most digits of a length: Python refuses to convert some thousands of them."""
SECRET_HEADERS = ("authorization", "cookie", "proxy-authorization")
CA_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


@dataclass(frozen=True)
class Request:
    """A request to a server; `body` is for POST and PUT."""

    url: str
    headers: Mapping[str, str]
    method: str = "GET"
    body: bytes | None = None


@dataclass(frozen=True)
class Answer:
    """A complete answer.

    Attributes:
        status: the HTTP status.
        url: the URL after all redirects.
        headers: by name, in any case of letters.
        body: the bytes.
    """

    status: int
    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Stream:
    """An answer whose body is read in pieces; `chunks` raises `WebError` if they break off."""

    status: int
    url: str
    headers: Mapping[str, str]
    chunks: Iterator[bytes]


class Client:
    """An HTTP client; threads may share it.

    It trusts the certificates of PIP_CERT, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE or SSL_CERT_FILE, else
    those of the system and of requests.

    Args:
        limits: the limits of time, attempts and bytes.

    Raises:
        UsageError: the certificates do not exist or cannot be read.
    """

    def __init__(self, *, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._ca: str | None = None
        self._trust = web_errors.TRUST
        for variable in CA_VARIABLES:
            if os.environ.get(variable):
                self._ca = os.environ[variable]
                self._trust = (
                    f"add its CA certificate to {clean(self._ca)}, which {variable} names; "
                    "only that is trusted"
                )
                break
        if self._ca is not None and not os.access(self._ca, os.R_OK):
            raise UsageError(f"no trusted certificates at {self._ca}", hint=web_errors.TRUST)
        self._session = _Session()
        # Otherwise requests would read netrc itself, and send its login after a redirect.
        self._session.auth = _leave_request
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self._session.headers = {"User-Agent": f"envlock/{__version__}"}
        adapter = _Adapter(trust_system=self._ca is None)
        self._session.mount("https://", adapter)
        self._session.mount("http://", adapter)

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        limit: int,
        only: Container[int] | None = None,
    ) -> Answer:
        """Return an answer with any status, such as 403 or 404.

        Args:
            url: the URL to request.
            headers: those of the request. A compressed body is unpacked, unless they have another
                `Accept-Encoding`.
            limit: the largest body in bytes.
            only: the useful statuses: the body of an answer with another status is not read.

        Raises:
            WebError: there is no complete answer: the server cannot be reached or trusted, is too
                slow, sends too much or too little, or fails (429, 500, 502, 503, 504) every time.
        """
        request = Request(url, {"Accept-Encoding": "gzip", **(headers or {})})

        def read(response: requests.Response, patience: Patience) -> Answer:
            if only is not None and response.status_code not in only:
                response.close()
                return _make_answer(response, b"")
            chunks = _read_chunks(response, patience, limit)
            if request.headers["Accept-Encoding"] == "gzip":
                chunks = _unpack(response, chunks, limit)
            return _make_answer(response, b"".join(chunks))

        return self._try_repeatedly(request, read)

    def send(self, request: Request, *, limit: int) -> Answer:
        """Send a request that may be repeated, such as a blob for a registry, and return an answer
        with any status.

        Raises:
            WebError: as `get`.
        """

        def read(response: requests.Response, patience: Patience) -> Answer:
            return _make_answer(response, b"".join(_read_chunks(response, patience, limit)))

        return self._try_repeatedly(request, read)

    @contextmanager
    def stream(self, url: str) -> Iterator[Stream]:
        """Yield the answer, which is available as soon as its headers have arrived.

        The bytes are those that were sent: nothing is unpacked. A body that breaks off is not
        requested again.

        Raises:
            WebError: as `get`, on entering; later, if the bytes break off, come too slowly, or are
                too many.
        """
        request = Request(url, {"Accept-Encoding": "identity"})
        response, patience = self._try_repeatedly(
            request, lambda response, patience: (response, patience)
        )
        with closing(response):
            patience.allow(self._limits.body)
            chunks = _read_chunks(response, patience, self._limits.largest)
            yield Stream(response.status_code, response.url or "", response.headers, chunks)

    def _try_repeatedly(
        self, request: Request, read: Callable[[requests.Response, Patience], T]
    ) -> T:
        """Return the result of `read` for the first answer that is not a temporary failure."""
        limits = self._limits
        patience = Patience(
            seconds=limits.answer, silence=limits.silence, window=limits.window, floor=limits.floor
        )
        pause = limits.backoff
        for attempt in range(1, limits.attempts + 1):
            try:
                return self._try_once(request, patience, read)
            except WebError as error:
                wait = min(error.wait, limits.retry_after) if error.wait is not None else pause
                is_last = attempt == limits.attempts
                is_too_late = time.monotonic() + wait >= patience.until
                # A server that asks for a longer wait than a whole answer may take gets no second
                # request.
                if (error.wait or 0) > limits.answer or not error.passing:
                    raise
                if is_last or is_too_late:
                    raise
            time.sleep(wait)
            pause *= 2
        raise AssertionError("unreachable")

    def _try_once(
        self, request: Request, patience: Patience, read: Callable[[requests.Response, Patience], T]
    ) -> T:
        response = self._follow(request, patience)
        try:
            if response.status_code in web_errors.AGAIN:
                wait = web_errors.parse_retry_after(response.headers.get("Retry-After"))
                raise web_errors.make_status_error(response.url or "", response.status_code, wait)
            return read(response, patience)
        except BaseException:
            response.close()
            raise

    def _follow(self, request: Request, patience: Patience) -> requests.Response:
        """Return the answer at the end of the redirects."""
        url, login = _split_credentials(request.url)
        request = replace(request, url=url)
        return self._follow_redirects(request, login if any(login) else None, patience)

    def _follow_redirects(
        self, request: Request, login: tuple[str, str] | None, patience: Patience
    ) -> requests.Response:
        url = request.url
        followed: tuple[int, ...] = REDIRECTS if request.method == "GET" else SAME_METHOD
        for _ in range(self._limits.redirects + 1):
            headers = self._choose_headers(request, login, url)
            try:
                response = self._send(replace(request, url=url, headers=headers), patience)
            except WebError as error:
                if url == request.url:
                    raise
                raise web_errors.make_redirect_error(request.url, error) from None
            location = response.headers.get("Location")
            if response.status_code not in followed or location is None:
                return response
            response.close()
            url = _resolve_redirect(url, location)
        raise WebError(
            f"{show_url(url)} redirects more than {self._limits.redirects} times",
            hint=web_errors.ADDRESS,
        )

    def _choose_headers(
        self, request: Request, login: tuple[str, str] | None, url: str
    ) -> dict[str, str]:
        """Return the headers for a URL after a redirect, or for the original one."""
        # Another origin must not receive any secret.
        if self._session.should_strip_auth(request.url, url):  # type: ignore[no-untyped-call]
            return _drop_secrets(request.headers)
        headers = dict(request.headers)
        names = [name.lower() for name in headers]
        if login is not None and "authorization" not in names:
            token = base64.b64encode(":".join(login).encode()).decode("ascii")
            headers["Authorization"] = f"Basic {token}"
        return headers

    def _send(self, request: Request, patience: Patience) -> requests.Response:
        patience.begin()
        token = CURRENT.set(patience)
        try:
            remaining = patience.get_remaining()
            return self._session.request(
                request.method,
                request.url,
                data=request.body,
                headers=request.headers,
                stream=True,
                allow_redirects=False,
                timeout=(min(self._limits.connect, remaining), remaining),
                verify=self._ca or True,
            )
        except web_errors.BROKEN as error:
            raise web_errors.explain_failure(
                request.url, error, patience.verdict, trust=self._trust
            ) from None
        finally:
            CURRENT.reset(token)


class _Session(requests.Session):
    def get_redirect_target(self, response: requests.Response) -> None:
        """Return no target: requests would read the whole body of a redirect, whatever its length."""


class _Adapter(HTTPAdapter):
    """Connections with a time limit that trust the certificates of the system."""

    def __init__(self, *, trust_system: bool) -> None:
        self._trust_system = trust_system
        super().__init__(pool_connections=16, pool_maxsize=16)

    def init_poolmanager(
        self, connections: int, maxsize: int, block: bool = False, **kwargs: Any
    ) -> None:
        super().init_poolmanager(connections, maxsize, block, **kwargs, **self._make_context())
        self.poolmanager.pool_classes_by_scheme = POOLS

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **kwargs, **self._make_context())
        if not proxy.lower().startswith("socks"):  # proxies have their own connections
            manager.pool_classes_by_scheme = POOLS
        return manager

    def _make_context(self) -> dict[str, SSLContext]:
        """Return a context that trusts the system's certificates; requests adds its own."""
        if not self._trust_system:
            return {}
        context = create_urllib3_context()
        context.load_default_certs()
        return {"ssl_context": context}


def make_refusal(answer: Answer | Stream) -> WebError:
    """Return the error for an answer with an unexpected status."""
    return web_errors.make_status_error(answer.url, answer.status)


def _leave_request(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _make_answer(response: requests.Response, body: bytes) -> Answer:
    return Answer(response.status_code, response.url or "", response.headers, body)


def _read_chunks(response: requests.Response, patience: Patience, limit: int) -> Iterator[bytes]:
    """Yield the body as it was sent.

    Raises:
        WebError: it is larger than `limit`, too slow, or breaks off.
    """
    url = response.url or ""
    length = response.headers.get("Content-Length", "")
    wanted = None
    if length.isdecimal() and "Transfer-Encoding" not in response.headers:
        if len(length) > LENGTH_DIGITS:
            raise web_errors.make_size_error(url, limit)
        wanted = int(length)
    if wanted is not None and wanted > limit:
        raise web_errors.make_size_error(url, limit)
    received = 0
    try:
        for chunk in response.raw.stream(CHUNK, decode_content=False):
            received += len(chunk)
            if received > limit:
                raise web_errors.make_size_error(url, limit)
            yield chunk
    except web_errors.BROKEN as error:
        response.close()
        raise web_errors.explain_failure(url, error, patience.verdict, received, wanted) from None
    if wanted is not None and received != wanted:
        raise web_errors.make_broken_off_error(url, received, wanted)


def _unpack(response: requests.Response, chunks: Iterator[bytes], limit: int) -> Iterator[bytes]:
    """Yield the unpacked body of an answer that may be compressed with gzip."""
    url = response.url or ""
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    if encoding == "identity":
        yield from chunks
        return
    if encoding not in ("gzip", "x-gzip"):
        raise web_errors.make_format_error(
            url, f"its Content-Encoding is {encoding!r}, which was not requested"
        )
    packer = zlib.decompressobj(wbits=31)
    size = 0
    try:
        for chunk in chunks:
            part = packer.decompress(chunk, limit + 1 - size)
            size += len(part)
            if size > limit:
                raise web_errors.make_size_error(url, limit)
            yield part
    except zlib.error:
        raise web_errors.make_format_error(url, "its gzip data are damaged") from None
    if not packer.eof:
        raise web_errors.make_format_error(url, "its gzip data are truncated")


def _split_credentials(url: str) -> tuple[str, tuple[str, str]]:
    """Return the URL without user and password, and user and password.

    Raises:
        WebError: it is not an HTTP URL.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for a port that is not a number
    except ValueError:
        raise web_errors.make_address_error(url) from None
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or not parts.netloc.isprintable()
        or " " in parts.netloc
    ):
        raise web_errors.make_address_error(url)
    host = parts.netloc.rpartition("@")[2]
    login = unquote(parts.username or ""), unquote(parts.password or "")
    return urlunsplit(parts._replace(netloc=host, fragment="")), login


def _resolve_redirect(url: str, location: str) -> str:
    """Return the target of a redirect, without user and password.

    Raises:
        WebError: it is invalid, or not encrypted, unlike the first one.
    """
    try:
        target, _ = _split_credentials(urljoin(url, location))
    except (ValueError, WebError):
        raise WebError(
            f"{show_url(url)} redirects to an invalid URL",
            hint=web_errors.ADDRESS,
        ) from None
    if url.startswith("https:") and not target.startswith("https:"):
        raise WebError(
            f"{show_url(url)} redirects from https to {show_url(target)}, which is not encrypted",
            hint="use another server, or ask its administrator",
        )
    return target


def _drop_secrets(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in SECRET_HEADERS}
