"""What can go wrong with a server, as sentences without secrets."""

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

from envlock.runtime.collectors.packages import strip_url_secrets
from envlock.runtime.errors import OutsideError
from envlock.runtime.report import clean

BROKEN = (
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
    ValueError,
)
"""The exceptions that requests and reads can raise.

ValueError comes from a malformed header or chunk size, or from a closed file.
"""

AGAIN = (429, 500, 502, 503, 504)
"""Statuses of temporary failures."""

ADDRESS = "check the address of the index or registry"
LATER = "try again later, or name another index or registry"
NETWORK = "check the network, the address, and the proxy settings (HTTPS_PROXY, NO_PROXY)"
PASSWORD = "put its user and password into ~/.netrc, the keyring or its URL"  # noqa: S105 (a hint)
PROXY_LOGIN = (
    "put the proxy's user and password into its URL (HTTPS_PROXY), or ask its administrator"
)
TRUST = (
    "name a file with the certificates to trust in SSL_CERT_FILE, REQUESTS_CA_BUNDLE or PIP_CERT"
)


LONGEST = 300
"""Characters of an address in a message: a server can redirect to one of any length."""

MOST_CAUSES = 50
"""The most causes of an exception that are examined."""

_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})")
_OTHER_HOST = "use the name that its certificate is for, or ask its administrator"
_DATE = "check the clock of this machine, or ask its administrator to renew the certificate"
_CERTIFICATES = {9: _DATE, 10: _DATE, 62: _OTHER_HOST, 64: _OTHER_HOST}
"""Hints by OpenSSL's error codes, for errors where trusting another certificate does not help.

Source: openssl/x509_vfy.h, X509_V_ERR_*
"""


class WebError(OutsideError):
    """A server did not answer, refused, or sent a malformed answer.

    Attributes:
        status: that of the answer, if there is one.
        passing: whether another attempt may help.
        wait: the seconds before another attempt, if the server gives them.
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


def show_url(url: str) -> str:
    """Return a URL for a message: shortened, and without user, password, query and fragment."""
    text = clean(strip_url_secrets(url) or "an unprintable address")
    if len(text) > LONGEST:
        return f"{text[:LONGEST]}..."
    return text


def make_status_error(url: str, status: int, wait: float | None = None) -> WebError:
    """Return the error for an unexpected status."""
    text = f"{show_url(url)} answered {status}"
    if status in HTTPStatus.__members__.values():
        text += f" ({HTTPStatus(status).phrase})"
    if wait:
        text += f", and asks to be left alone for {wait:.0f} seconds"
    passing = status in AGAIN
    hint = ADDRESS
    if status in (401, 403):
        hint = PASSWORD
    elif passing:
        hint = LATER
    return WebError(text, hint=hint, status=status, passing=passing, wait=wait)


def make_address_error(url: str) -> WebError:
    """Return the error for a text that is not an HTTP URL."""
    return WebError(
        f"invalid URL: {show_url(url)}", hint="use one that begins with https:// and names a host"
    )


def make_redirect_error(first: str, error: WebError) -> WebError:
    """Return the error for a failure at the target of a redirect."""
    text = f"{show_url(first)} redirects, and {error.message}"
    return WebError(
        text, hint=error.hint, status=error.status, passing=error.passing, wait=error.wait
    )


def make_slow_error(url: str, seconds: float) -> WebError:
    """Return the error for an answer that is not complete after some seconds."""
    text = f"{show_url(url)} is too slow: it took longer than {seconds:g} s"
    return WebError(text, hint=LATER, passing=True)


def make_size_error(url: str, limit: int) -> WebError:
    """Return the error for an answer that is larger than the limit."""
    return WebError(
        f"{show_url(url)} sent more than {limit} bytes, which is too much", hint=ADDRESS
    )


def make_format_error(url: str, why: str) -> WebError:
    """Return the error for a malformed answer."""
    return WebError(f"{show_url(url)} sent an unreadable answer: {why}", hint=ADDRESS)


def make_broken_off_error(url: str, received: int, wanted: int | None) -> WebError:
    """Return the error for a body that ended too early."""
    size = f"{received} of {wanted} bytes" if wanted is not None else f"{received} bytes"
    return WebError(f"{show_url(url)} ended after {size}", hint=LATER, passing=True)


def explain_failure(
    url: str,
    error: Exception,
    received: int | None = None,
    wanted: int | None = None,
    trust: str = TRUST,
) -> WebError:
    """Return the error for the failure of a connection.

    Args:
        url: the requested URL.
        error: the exception of the libraries; its text is not shown, because it may contain the
            whole URL.
        received, wanted: bytes of the body, if it had begun.
        trust: a hint for a certificate that is not trusted.
    """
    causes = list(_list_causes(error))
    if received is not None:
        return make_broken_off_error(url, received, wanted)
    # The most specific cause first: the libraries wrap one in another.
    untrusted = _explain_distrust(url, causes, trust)
    if untrusted is not None:
        return untrusted
    if _has_cause(causes, (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema)):
        return make_address_error(url)
    if _has_cause(causes, (requests.exceptions.ProxyError,)):
        return _explain_proxy(url, causes)
    for kinds, why in _WHY:
        if _has_cause(causes, kinds):
            return WebError(f"{show_url(url)} cannot be reached: {why}", hint=NETWORK, passing=True)
    if _has_cause(causes, (http.client.HTTPException, urllib3.exceptions.ProtocolError)):
        return make_format_error(url, "it is not an HTTP answer")
    return WebError(
        f"{show_url(url)} cannot be reached: {type(error).__name__}", hint=NETWORK, passing=True
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
"""Exceptions from the most specific to the least, and their meaning."""


def _has_cause(causes: list[BaseException], kinds: tuple[type[BaseException], ...]) -> bool:
    return any(isinstance(cause, kinds) for cause in causes)


def _explain_proxy(url: str, causes: list[BaseException]) -> WebError:
    """Return the error for a proxy that refuses, or cannot be reached."""
    proxy = show_url(select_proxy(url, get_environ_proxies(url)) or "")
    for cause in causes:
        answer = _TUNNEL.search(str(cause))
        if answer is not None:
            return _explain_proxy_status(url, proxy, int(answer[1]))
    why = "it does not answer"
    for kinds, sentence in _WHY:
        if _has_cause(causes, kinds):
            why = sentence
            break
    text = f"{show_url(url)} cannot be reached through the proxy {proxy}: {why}"
    return WebError(text, hint=NETWORK, passing=True)


def _explain_proxy_status(url: str, proxy: str, status: int) -> WebError:
    hint = PROXY_LOGIN if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED else NETWORK
    message = make_status_error(proxy, status).message
    return WebError(f"{show_url(url)} cannot be reached: the proxy {message}", hint=hint)


def _explain_distrust(url: str, causes: list[BaseException], hint: str) -> WebError | None:
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = str(getattr(cause, "verify_message", "") or "its certificate is not valid")
            return WebError(
                f"{show_url(url)} is not trusted: {clean(why).rstrip('.')}",
                hint=_CERTIFICATES.get(cause.verify_code, hint),
            )
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
            why = (cause.reason or "unknown").lower().replace("_", " ")
            return WebError(f"{show_url(url)} cannot be reached over TLS: {why}", hint=hint)
    # urllib3 checks the name of the host itself, so this exception has no error of a socket as its
    # cause.
    is_ours = isinstance(causes[0], requests.exceptions.SSLError)
    if is_ours and not _has_cause(causes[1:], (OSError,)):
        return WebError(
            f"{show_url(url)} is not trusted: its certificate is for another host", hint=_OTHER_HOST
        )
    return None


def _list_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes, the outermost first."""
    pending = [error]
    known: set[int] = set()
    # The libraries wrap exceptions in many ways, also in cycles.
    while pending and len(known) < MOST_CAUSES:
        cause = pending.pop(0)
        if id(cause) in known:
            continue
        known.add(id(cause))
        yield cause
        inner = [*cause.args, getattr(cause, "reason", None), cause.__cause__, cause.__context__]
        pending += [each for each in inner if isinstance(each, BaseException)]


def parse_retry_after(text: str | None) -> float | None:
    """Return the seconds in a Retry-After header; None if it is malformed."""
    if text is None:
        return None
    try:
        return float(Retry().parse_retry_after(text[:40]))
    except (InvalidHeader, OverflowError, TypeError, ValueError):
        return None
