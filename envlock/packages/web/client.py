"""Requests to a registry or a list: `get` for answers that fit into memory, `fetch` for files,
`send` to upload.

Whatever the server does, an answer or a `WebError` comes within a limited time. Credentials are
sent only to the origin that they belong to, and no message contains them or a query.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from http.cookiejar import DefaultCookiePolicy
from ssl import SSLContext
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.ssl_ import create_urllib3_context

from envlock.packages.parallel import run_all
from envlock.packages.web import web_errors
from envlock.packages.web.limits import Limits
from envlock.packages.web.web_errors import WebError, show_url
from envlock.runtime.errors import EnvlockError, UsageError
from envlock.runtime.report import clean
from envlock.runtime.version import __version__

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
        body: the bytes as they were sent; empty if they were received by `fetch`.
    """

    status: int
    url: str
    headers: Mapping[str, str]
    body: bytes


Read = Callable[[requests.Response], Answer]
"""Reads the body of a response."""


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
        self._session.headers = {
            "User-Agent": f"envlock/{__version__}",
            "Accept-Encoding": "identity",
        }
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
            headers: those of the request.
            limit: the largest body in bytes.
            only: the useful statuses: the body of an answer with another status is not read.

        Raises:
            WebError: there is no complete answer: the server cannot be reached or trusted, is too
                slow, sends too much or too little, or fails (429, 500, 502, 503, 504) every time.
        """

        def read(response: requests.Response) -> Answer:
            if only is not None and response.status_code not in only:
                return _make_answer(response, b"")
            return _make_answer(response, b"".join(_read_chunks(response, limit)))

        return self._ask(Request(url, headers or {}), read, self._limits.answer)

    def send(self, request: Request, *, limit: int) -> Answer:
        """Send a request that may be repeated, such as a blob for a registry, and return an answer
        with any status.

        Raises:
            WebError: as `get`.
        """

        def read(response: requests.Response) -> Answer:
            return _make_answer(response, b"".join(_read_chunks(response, limit)))

        return self._ask(request, read, self._limits.answer)

    def fetch(self, url: str, receive: Callable[[bytes], object]) -> Answer:
        """Return an answer whose body was handed over in pieces, if its status is 200.

        A body that breaks off is not requested again.

        Raises:
            WebError: as `get`.
        """

        def read(response: requests.Response) -> Answer:
            if response.status_code == requests.codes.ok:
                try:
                    for chunk in _read_chunks(response, self._limits.largest):
                        receive(chunk)
                except WebError as error:
                    # Its first part is there already.
                    error.passing = False
                    raise
            return _make_answer(response, b"")

        return self._ask(Request(url, {}), read, self._limits.body)

    def _ask(self, request: Request, read: Read, seconds: float) -> Answer:
        """Return an answer within a time, whatever the server does."""

        # In a thread, which ends with the process: a server that sends a byte now and then meets
        # each limit of a single wait.
        failures: list[WebError] = []

        def work(request: Request) -> Answer:
            return self._try_repeatedly(request, read, time.monotonic() + seconds, failures)

        try:
            ((_, answer),) = run_all([request], work, jobs=1, seconds=seconds)
        except TimeoutError:
            if failures:  # why the last attempt failed says more than that the time is up
                raise failures[-1] from None
            raise web_errors.make_slow_error(request.url, seconds) from None
        if isinstance(answer, EnvlockError):
            raise answer
        return answer

    def _try_repeatedly(
        self, request: Request, read: Read, until: float, failures: list[WebError]
    ) -> Answer:
        """Return the first answer that is not a temporary failure; note the others."""
        limits = self._limits
        pause = limits.backoff
        for attempt in range(1, limits.attempts + 1):
            try:
                return self._try_once(request, read)
            except WebError as error:
                failures.append(error)
                wait = min(error.wait, limits.retry_after) if error.wait is not None else pause
                is_last = attempt == limits.attempts
                is_too_late = time.monotonic() + wait >= until
                # A server that asks for a longer wait than a whole answer may take gets no second
                # request.
                if (error.wait or 0) > limits.answer or not error.passing:
                    raise
                if is_last or is_too_late:
                    raise
            time.sleep(wait)
            pause *= 2
        raise AssertionError("unreachable")

    def _try_once(self, request: Request, read: Read) -> Answer:
        response = self._follow(request)
        try:
            if response.status_code in web_errors.AGAIN:
                wait = web_errors.parse_retry_after(response.headers.get("Retry-After"))
                raise web_errors.make_status_error(response.url or "", response.status_code, wait)
            return read(response)
        finally:
            response.close()

    def _follow(self, request: Request) -> requests.Response:
        """Return the answer at the end of the redirects."""
        url, login = _split_credentials(request.url)
        request = replace(request, url=url)
        return self._follow_redirects(request, login if any(login) else None)

    def _follow_redirects(
        self, request: Request, login: tuple[str, str] | None
    ) -> requests.Response:
        url = request.url
        followed: tuple[int, ...] = REDIRECTS if request.method == "GET" else SAME_METHOD
        for _ in range(self._limits.redirects + 1):
            headers = self._choose_headers(request, login, url)
            try:
                response = self._send(replace(request, url=url, headers=headers))
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

    def _send(self, request: Request) -> requests.Response:
        try:
            return self._session.request(
                request.method,
                request.url,
                data=request.body,
                headers=request.headers,
                stream=True,
                allow_redirects=False,
                timeout=(self._limits.connect, self._limits.silence),
                verify=self._ca or True,
            )
        except web_errors.BROKEN as error:
            raise web_errors.explain_failure(request.url, error, trust=self._trust) from None


class _Session(requests.Session):
    def get_redirect_target(self, response: requests.Response) -> None:
        """Return no target: requests would read the whole body of a redirect, whatever its length."""


class _Adapter(HTTPAdapter):
    """Connections that trust the certificates of the system."""

    def __init__(self, *, trust_system: bool) -> None:
        self._trust_system = trust_system
        super().__init__(pool_connections=16, pool_maxsize=16)

    def init_poolmanager(
        self, connections: int, maxsize: int, block: bool = False, **kwargs: Any
    ) -> None:
        super().init_poolmanager(connections, maxsize, block, **kwargs, **self._make_context())

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        return super().proxy_manager_for(proxy, **kwargs, **self._make_context())

    def _make_context(self) -> dict[str, SSLContext]:
        """Return a context that trusts the system's certificates; requests adds its own."""
        if not self._trust_system:
            return {}
        context = create_urllib3_context()
        context.load_default_certs()
        return {"ssl_context": context}


def make_refusal(answer: Answer) -> WebError:
    """Return the error for an answer with an unexpected status."""
    return web_errors.make_status_error(answer.url, answer.status)


def _leave_request(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _make_answer(response: requests.Response, body: bytes) -> Answer:
    return Answer(response.status_code, response.url or "", response.headers, body)


def _read_chunks(response: requests.Response, limit: int) -> Iterator[bytes]:
    """Yield the body as it was sent.

    Raises:
        WebError: it is larger than `limit`, or breaks off.
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
        raise web_errors.explain_failure(url, error, received, wanted) from None
    if wanted is not None and received != wanted:
        raise web_errors.make_broken_off_error(url, received, wanted)


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
