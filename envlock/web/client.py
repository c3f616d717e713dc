"""Ask an index or a registry: `get` for what fits into memory, `stream` for files, `send` to put something there.

Whatever the other side does, an answer or a `WebError` comes within a bounded time, and neither holds a secret:
credentials go to the origin they are for and to no other, and no message shows them or a query.
"""

from __future__ import annotations

import base64
import os
import time
import zlib
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from typing import Any, TypeVar
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.ssl_ import create_urllib3_context

from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean
from envlock.runtime.version import __version__
from envlock.web import errors
from envlock.web.deadline import CURRENT, POOLS, Patience
from envlock.web.errors import WebError, shown
from envlock.web.limits import Limits

Credentials = Callable[[str], "tuple[str, str] | None"]
"""Takes a URL, returns user and password for it."""

T = TypeVar("T")
REDIRECTS = (301, 302, 303, 307, 308)
SAME_METHOD = (307, 308)
"""After the others a POST or PUT would become a GET."""
CHUNK = 64 * 1024
SECRET_HEADERS = ("authorization", "cookie", "proxy-authorization")
CA_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


@dataclass(frozen=True)
class Request:
    """What is asked of a server; `body` goes with POST and PUT."""

    url: str
    headers: Mapping[str, str]
    method: str = "GET"
    body: bytes | None = None


@dataclass(frozen=True)
class Answer:
    """A whole answer: the status, where it came from in the end, its headers (in any case) and its bytes."""

    status: int
    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Stream:
    """An answer whose bytes come one after the other; `chunks` raises `WebError` where they break off."""

    status: int
    url: str
    headers: Mapping[str, str]
    chunks: Iterator[bytes]


class Client:
    """Asks over HTTP; threads may share it.

    Args:
        ca: file or folder with the certificates to trust. Default: what PIP_CERT, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE
            or SSL_CERT_FILE names, else the system's and those that requests brings.
        credentials: user and password for a URL, where there are any; those that stand in a URL come first.
        last_resort: the same, for a URL that was refused (401) without them: one that takes long, such as a keyring.
        limits: how long, how often and how much.

    Raises:
        UsageError: there is no such file with certificates.
    """

    def __init__(
        self,
        *,
        ca: str | None = None,
        credentials: Credentials | None = None,
        last_resort: Credentials | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._credentials = credentials or _nobody
        self._last_resort = last_resort or _nobody
        variable = next(filter(os.environ.get, CA_VARIABLES), None)
        self._ca = ca or (os.environ[variable] if variable is not None else None)
        self._trust = errors.TRUST
        if ca is None and self._ca is not None:
            self._trust = f"add its CA certificate to {clean(self._ca)}, which {variable} names; only that is trusted"
        if self._ca is not None and not os.access(self._ca, os.R_OK):
            raise UsageError(f"no trusted certificates at {self._ca}", hint=errors.TRUST)
        self._session = _Session()
        self._session.auth = (
            _as_it_is  # else requests would look into netrc itself, and send it after a redirect
        )
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
        """Return the answer, also one that says no (404, 403); `limit` is the largest body in bytes.

        A body that the server has compressed is unpacked, unless `headers` ask for another `Accept-Encoding`. Where
        `only` some statuses are of use, the body of an answer with another one is not read.

        Raises:
            WebError: there is no whole answer: not reached, not trusted, too slow, too large, broken off, or the
                server fails (429, 500, 502, 503, 504) every time.
        """
        asked = {"Accept-Encoding": "gzip", **(headers or {})}

        def whole(response: requests.Response, patience: Patience) -> Answer:
            if only is not None and response.status_code not in only:
                response.close()
                return Answer(response.status_code, _url(response), response.headers, b"")
            chunks = _chunks(response, patience, limit)
            packed = response.headers.get("Content-Encoding", "identity").lower()
            if asked["Accept-Encoding"] == "gzip" and packed in ("gzip", "x-gzip"):
                chunks = _unpacked(chunks, limit, _url(response))
            elif asked["Accept-Encoding"] == "gzip" and packed != "identity":
                raise errors.garbled(
                    _url(response), f"its Content-Encoding is {packed!r}, which was not requested"
                )
            return Answer(response.status_code, _url(response), response.headers, b"".join(chunks))

        return self._attempts(Request(url, asked), whole)

    def send(self, request: Request, *, limit: int) -> Answer:
        """Send what can be sent again, such as a blob of a registry, and return the answer, also one that says no.

        Raises:
            WebError: as `get`.
        """

        def whole(response: requests.Response, patience: Patience) -> Answer:
            body = b"".join(_chunks(response, patience, limit))
            return Answer(response.status_code, _url(response), response.headers, body)

        return self._attempts(request, whole)

    def stream(
        self, url: str, *, headers: Mapping[str, str] | None = None
    ) -> AbstractContextManager[Stream]:
        """Return a context manager that gives the answer as soon as its headers are there.

        Its bytes are those that were sent: nothing is unpacked. What breaks off half way is not asked for again.

        Raises:
            WebError: as `get`, on entering; later, where the bytes break off, they come too slowly or too many.
        """
        return self._stream(url, {"Accept-Encoding": "identity", **(headers or {})})

    @contextmanager
    def _stream(self, url: str, headers: Mapping[str, str]) -> Iterator[Stream]:
        request = Request(url, headers)
        response, patience = self._attempts(
            request, lambda response, patience: (response, patience)
        )
        with closing(response):
            patience.allow(self._limits.body)
            chunks = _chunks(response, patience, self._limits.largest)
            yield Stream(response.status_code, _url(response), response.headers, chunks)

    def _attempts(self, request: Request, read: Callable[[requests.Response, Patience], T]) -> T:
        """Return what `read` makes of the first answer that is no passing failure."""
        limits = self._limits
        patience = Patience(
            seconds=limits.answer, silence=limits.silence, window=limits.window, floor=limits.floor
        )
        pause = limits.backoff
        for attempt in range(1, limits.attempts + 1):
            try:
                return self._attempt(request, patience, read)
            except WebError as error:
                wait = pause if error.wait is None else min(error.wait, limits.retry_after)
                over = attempt == limits.attempts or time.monotonic() + wait >= patience.until
                if over or not error.passing or (error.wait or 0) > limits.answer:
                    raise
            time.sleep(wait)
            pause *= 2
        raise AssertionError("unreachable")

    def _attempt(
        self, request: Request, patience: Patience, read: Callable[[requests.Response, Patience], T]
    ) -> T:
        response = self._follow(request, patience)
        try:
            if response.status_code in errors.AGAIN:
                wait = errors.pause(response.headers.get("Retry-After"))
                raise errors.refused(_url(response), response.status_code, wait)
            return read(response, patience)
        except BaseException:
            response.close()
            raise

    def _follow(self, request: Request, patience: Patience) -> requests.Response:
        """Return the answer at the end of the redirects."""
        url, login = _without_credentials(request.url)
        request = replace(request, url=url)
        known = login if any(login) else self._credentials(url)
        response = self._redirects(request, known, patience)
        if response.status_code == HTTPStatus.UNAUTHORIZED and known is None:
            known = self._last_resort(url)
            if known is not None:
                response.close()
                return self._redirects(request, known, patience)
        return response

    def _redirects(
        self, request: Request, login: tuple[str, str] | None, patience: Patience
    ) -> requests.Response:
        first, headers = request.url, request.headers
        url = first
        followed = REDIRECTS if request.method == "GET" else SAME_METHOD
        for _ in range(self._limits.redirects + 1):
            elsewhere = self._session.should_strip_auth(first, url)  # type: ignore[no-untyped-call]
            own = _harmless(headers) if elsewhere else dict(headers)
            if login is not None and not elsewhere and "authorization" not in map(str.lower, own):
                own["Authorization"] = "Basic " + base64.b64encode(":".join(login).encode()).decode(
                    "ascii"
                )
            try:
                response = self._send(replace(request, url=url, headers=own), patience)
            except WebError as error:
                raise error if url == first else errors.after_redirect(first, error) from None
            target = response.headers.get("Location")
            if response.status_code not in followed or target is None:
                return response
            response.close()
            url = _target(url, target)
        raise WebError(
            f"{shown(url)} redirects more than {self._limits.redirects} times", hint=errors.ADDRESS
        )

    def _send(self, request: Request, patience: Patience) -> requests.Response:
        patience.begin()
        token = CURRENT.set(patience)
        try:
            left = patience.left()
            return self._session.request(
                request.method,
                request.url,
                data=request.body,
                headers=request.headers,
                stream=True,
                allow_redirects=False,
                timeout=(min(self._limits.connect, left), left),
                verify=self._ca or True,
            )
        except errors.BROKEN as error:
            raise errors.failure(request.url, error, patience.verdict, trust=self._trust) from None
        finally:
            CURRENT.reset(token)


class _Session(requests.Session):
    def get_redirect_target(self, response: requests.Response) -> None:
        """Say that there is none: requests would read the whole body of a redirect, however long, to prepare it."""


class _Adapter(HTTPAdapter):
    """Connections that keep to our patience and trust what the system trusts."""

    def __init__(self, *, trust_system: bool) -> None:
        self._trust_system = trust_system
        super().__init__(pool_connections=16, pool_maxsize=16)

    def init_poolmanager(
        self, connections: int, maxsize: int, block: bool = False, **kwargs: Any
    ) -> None:
        super().init_poolmanager(connections, maxsize, block, **kwargs, **self._context())
        self.poolmanager.pool_classes_by_scheme = POOLS

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **kwargs, **self._context())
        if not proxy.lower().startswith("socks"):  # those bring connections of their own
            manager.pool_classes_by_scheme = POOLS
        return manager

    def _context(self) -> dict[str, Any]:
        """Return a context that trusts the system's certificates; requests adds its own."""
        if not self._trust_system:
            return {}
        context = create_urllib3_context()
        context.load_default_certs()
        return {"ssl_context": context}


def refusal(answer: Answer | Stream) -> WebError:
    """Return the error for an answer whose status is not the one that was needed."""
    return errors.refused(answer.url, answer.status)


def _nobody(url: str) -> None:
    """Know no credentials."""


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


DIGITS = 19
"""A length has fewer; Python refuses to read some thousands of them."""


def _chunks(response: requests.Response, patience: Patience, limit: int) -> Iterator[bytes]:
    """Yield the body as it was sent, and notice when it is not whole."""
    url = _url(response)
    length = response.headers.get("Content-Length", "")
    wanted = None
    if length.isdecimal() and "Transfer-Encoding" not in response.headers:
        wanted = int(length) if len(length) < DIGITS else limit + 1
    if wanted is not None and wanted > limit:
        raise errors.too_large(url, limit)
    received = 0
    try:
        for chunk in response.raw.stream(CHUNK, decode_content=False):
            received += len(chunk)
            if received > limit:
                raise errors.too_large(url, limit)
            yield chunk
    except errors.BROKEN as error:
        response.close()
        raise errors.failure(url, error, patience.verdict, received, wanted) from None
    if wanted is not None and received != wanted:
        raise errors.broken_off(url, received, wanted)


def _unpacked(chunks: Iterator[bytes], limit: int, url: str) -> Iterator[bytes]:
    packer = zlib.decompressobj(wbits=31)
    size = 0
    try:
        for chunk in chunks:
            part = packer.decompress(chunk, limit + 1 - size)
            size += len(part)
            if size > limit:
                raise errors.too_large(url, limit)
            yield part
    except zlib.error:
        raise errors.garbled(url, "its gzip data are damaged") from None
    if not packer.eof:
        raise errors.garbled(url, "its gzip data are truncated")


def _url(response: requests.Response) -> str:
    return response.url or ""


def _without_credentials(url: str) -> tuple[str, tuple[str, str]]:
    """Return the URL without user and password, and these."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # one that is no number raises
    except ValueError:
        raise errors.no_address(url) from None
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or not parts.netloc.isprintable()
        or " " in parts.netloc
    ):
        raise errors.no_address(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=host, fragment="")), (
        unquote(parts.username or ""),
        unquote(parts.password or ""),
    )


def _target(url: str, location: str) -> str:
    """Return where a redirect leads, without what it says of users.

    Raises:
        WebError: nowhere, or out of https.
    """
    try:
        target, _ = _without_credentials(urljoin(url, location))
    except (ValueError, WebError):
        raise WebError(
            f"{shown(url)} redirects to an invalid URL",
            hint=errors.ADDRESS,
        ) from None
    if url.startswith("https:") and not target.startswith("https:"):
        raise WebError(
            f"{shown(url)} redirects from https to {shown(target)}, which is not encrypted",
            hint="use another server, or ask its administrator",
        )
    return target


def _harmless(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in SECRET_HEADERS}
