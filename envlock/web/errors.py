"""What can go wrong between us and a server, as sentences without secrets."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
from collections.abc import Iterator
from http import HTTPStatus

import requests
import urllib3
from requests.utils import get_environ_proxies, select_proxy
from urllib3.exceptions import InvalidHeader
from urllib3.util import Retry

from envlock.runtime.collectors.packages import public_url
from envlock.runtime.errors import OutsideError
from envlock.runtime.report import clean

BROKEN = (
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
    ValueError,
)
"""What asking and reading can raise; ValueError: a malformed header or chunk size, a file that was closed."""

AGAIN = (429, 500, 502, 503, 504)
"""Statuses that may pass."""

ADDRESS = "check the address of the index or registry"
LATER = "try again later, or name another index or registry"
NETWORK = "check the network, the address, and the proxy settings (HTTPS_PROXY, NO_PROXY)"
PASSWORD = "put its user and password into ~/.netrc, the keyring or its URL"  # noqa: S105 (a hint, no password)
PROXY_LOGIN = (
    "put the proxy's user and password into its URL (HTTPS_PROXY), or ask its administrator"
)
TRUST = (
    "name a file with the certificates to trust in SSL_CERT_FILE, REQUESTS_CA_BUNDLE or PIP_CERT"
)


LONGEST = 300
"""Characters of an address in a message: a server chooses where it redirects to."""

_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})")
_OTHER_HOST = "use the name that its certificate is for, or ask its administrator"
_DATE = "check the clock of this machine, or ask its administrator to renew the certificate"
_CERTIFICATES = {9: _DATE, 10: _DATE, 62: _OTHER_HOST, 64: _OTHER_HOST}
"""Hints by OpenSSL's codes, where more trust does not help. Source: openssl/x509_vfy.h, X509_V_ERR_*"""


class WebError(OutsideError):
    """A server did not answer, refused, or sent what is not an answer.

    Attributes:
        status: the status it sent, if it sent one.
        passing: whether asking again may help.
        wait: for how many seconds it wants to be left alone, where it says so.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        status: int | None = None,
        passing: bool = False,
        wait: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.passing = passing
        self.wait = wait


def shown(url: str) -> str:
    """Return a URL as it may be printed: without user, password, query and fragment, and not at any length."""
    text = clean(public_url(url) or "an unprintable address")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def refused(url: str, status: int, wait: float | None = None) -> WebError:
    """Return the error for a status that is not what was asked for."""
    known = status in HTTPStatus.__members__.values()
    asks = f", and asks to be left alone for {wait:.0f} seconds" if wait else ""
    text = (
        f"{shown(url)} answered {status}{f' ({HTTPStatus(status).phrase})' if known else ''}{asks}"
    )
    passing = status in AGAIN
    hint = PASSWORD if status in (401, 403) else LATER if passing else ADDRESS
    return WebError(text, hint=hint, status=status, passing=passing, wait=wait)


def no_address(url: str) -> WebError:
    """Return the error for what is not the URL of a web page."""
    return WebError(
        f"invalid URL: {shown(url)}", hint="use one that begins with https:// and names a host"
    )


def after_redirect(first: str, error: WebError) -> WebError:
    """Return the error for what went wrong where a server had sent us."""
    text = f"{shown(first)} redirects, and {error.message}"
    return WebError(
        text, hint=error.hint, status=error.status, passing=error.passing, wait=error.wait
    )


def too_large(url: str, limit: int) -> WebError:
    """Return the error for an answer that does not end where the largest one would."""
    return WebError(f"{shown(url)} sent more than {limit} bytes, which is too much", hint=ADDRESS)


def garbled(url: str, why: str) -> WebError:
    """Return the error for a malformed answer."""
    return WebError(f"{shown(url)} sent an unreadable answer: {why}", hint=ADDRESS)


def broken_off(url: str, received: int, wanted: int | None) -> WebError:
    """Return the error for a body that ended too early."""
    total = "" if wanted is None else f" of {wanted}"
    return WebError(
        f"{shown(url)} broke off after {received}{total} bytes", hint=LATER, passing=True
    )


def failure(
    url: str,
    error: Exception,
    verdict: str | None,
    received: int | None = None,
    wanted: int | None = None,
    trust: str = TRUST,
) -> WebError:
    """Return the error for what went wrong with a connection.

    Args:
        url: what was asked.
        error: what the libraries raised; nothing of its text is shown, which may hold the whole URL.
        verdict: why patience ran out, if it did.
        received, wanted: bytes of the body, once it had begun.
        trust: what to do where its certificate is not trusted.
    """
    causes = list(_causes(error))
    if verdict is not None:
        return WebError(f"{shown(url)} is too slow: {verdict}", hint=LATER, passing=True)
    if (untrusted := _no_trust(url, causes, trust)) is not None and received is None:
        return untrusted
    if received is not None:
        return broken_off(url, received, wanted)
    if any(
        isinstance(cause, requests.exceptions.InvalidURL | requests.exceptions.InvalidSchema)
        for cause in causes
    ):
        return no_address(url)
    if any(isinstance(cause, requests.exceptions.ProxyError) for cause in causes):
        return _by_proxy(url, causes)
    for kinds, why in _WHY:
        if any(isinstance(cause, kinds) for cause in causes):
            error = WebError(f"{shown(url)} cannot be reached: {why}", hint=NETWORK, passing=True)
            error.unreachable = kinds in _NOBODY
            return error
    if any(
        isinstance(cause, http.client.HTTPException | urllib3.exceptions.ProtocolError)
        for cause in causes
    ):
        return garbled(url, "it is not an HTTP answer")
    return WebError(
        f"{shown(url)} cannot be reached: {type(error).__name__}", hint=NETWORK, passing=True
    )


_WHY: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((requests.exceptions.InvalidProxyURL,), "the address of its proxy is invalid"),
    ((socket.gaierror,), "its host is unknown"),
    ((ConnectionRefusedError,), "connection refused"),
    ((requests.ConnectTimeout,), "the connection timed out"),
    ((TimeoutError, requests.Timeout), "it does not answer"),
    ((http.client.RemoteDisconnected,), "it closed the connection without an answer"),
    ((ConnectionError, ssl.SSLEOFError), "the connection was cut"),
)
"""Exceptions from the most telling to the least, and what they mean."""

_NOBODY = tuple(kinds for kinds, _ in _WHY[:4])
"""What happens before there is a connection."""


def _by_proxy(url: str, causes: list[BaseException]) -> WebError:
    """Return the error for a proxy that says no, or that is not there; of its address no password is shown."""
    proxy = shown(select_proxy(url, get_environ_proxies(url)) or "")
    said = next((found for each in causes if (found := _TUNNEL.search(str(each)))), None)
    if said is None:
        told = [why for kinds, why in _WHY if any(isinstance(each, kinds) for each in causes)] or [
            "it does not answer"
        ]
        text = f"{shown(url)} cannot be reached through the proxy {proxy}: {told[0]}"
        error = WebError(text, hint=NETWORK, passing=True)
        error.unreachable = True
        return error
    status = int(said[1])
    hint = PROXY_LOGIN if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED else NETWORK
    answered = refused(proxy, status).message
    return WebError(f"{shown(url)} cannot be reached: the proxy {answered}", hint=hint)


def _no_trust(url: str, causes: list[BaseException], hint: str) -> WebError | None:
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = clean(
                str(getattr(cause, "verify_message", "") or "its certificate is not valid")
            ).rstrip(".")
            return WebError(
                f"{shown(url)} is not trusted: {why}",
                hint=_CERTIFICATES.get(cause.verify_code, hint),
            )
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
            why = (cause.reason or "unknown").lower().replace("_", " ")
            return WebError(f"{shown(url)} cannot be reached over TLS: {why}", hint=hint)
    if isinstance(causes[0], requests.exceptions.SSLError) and not any(
        isinstance(each, OSError) for each in causes[1:]
    ):
        return WebError(
            f"{shown(url)} is not trusted: its certificate is for another host", hint=_OTHER_HOST
        )
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those it was made from: the libraries wrap them in many ways."""
    todo, seen = [error], set[int]()
    while todo and len(seen) < 50:
        one = todo.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inner = [*one.args, getattr(one, "reason", None), one.__cause__, one.__context__]
        todo += [each for each in inner if isinstance(each, BaseException)]


def pause(text: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks for; None where it asks for nothing that can be read."""
    try:
        return None if text is None else float(Retry().parse_retry_after(text[:40]))
    except (InvalidHeader, OverflowError, TypeError, ValueError):
        return None
