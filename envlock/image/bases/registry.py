"""A registry over HTTP: the image that a tag stands for now, and documents stored beside an image."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from urllib.parse import quote, urlencode, urljoin, urlsplit

from envlock.image.bases import manifest
from envlock.image.bases.logins import TOKEN_SERVERS, Login, can_have_login, find_login
from envlock.image.bases.manifest import Found, RegistryError
from envlock.image.bases.reference import DOCKER_HUB, Reference
from envlock.packages.web.client import Answer, Client, Request
from envlock.packages.web.limits import Limits
from envlock.packages.web.web_errors import WebError, make_status_error
from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean

# `maxManifestBodySize` of the registry that most others are made of, which takes no larger one:
# https://github.com/distribution/distribution/blob/main/registry/handlers/manifests.go
MANIFEST_LIMIT = 4 * 1024 * 1024
CONFIG_LIMIT = 8 * 1024 * 1024  # bytes of an image's history and labels, which come from outside
TOKEN_LIMIT = 1024 * 1024  # bytes; the answer of a token server comes from outside
PROBE = Limits(connect=2, silence=2, answer=4, attempts=1)

LATER_HINT = "try again later, after `docker login {0}`, or with a mirror: `--mirror {0}=...`"

READ, WRITE = "pull", "pull,push"
"""The actions that a token is requested for."""

_LOOPBACK = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")


@dataclass(frozen=True)
class _Query:
    """A read from a repository: a path in it, the accepted media types, a limit in bytes."""

    path: str
    accept: str
    limit: int


def _query_manifest(name: str) -> _Query:
    accept = ", ".join((*manifest.INDEXES, *manifest.MANIFESTS))
    return _Query(f"manifests/{name}", accept, MANIFEST_LIMIT)


class Registry:
    """Looks images up, and remembers the authorization for each repository.

    Args:
        client: the HTTP client.
        logins: returns user and password for a registry.
    """

    def __init__(self, client: Client, logins: Callable[[str], Login | None] = find_login) -> None:
        self._client = client
        self._logins = cache(logins)
        self._origins: dict[str, str] = {}
        self._authorizations: dict[tuple[str, str, str], str] = {}
        self._withheld: dict[str, str] = {}
        """The host to which a registry's login was not sent, by registry."""

    def find(self, reference: Reference, platform: str) -> Found:
        """Return the image that a tag or a digest stands for.

        Raises:
            UsageError: it has neither tag nor digest.
            RegistryError: the registry cannot be reached, refuses, has no such image or none for
                this platform, or sends something else.
        """
        name = reference.digest or reference.tag
        if name is None:
            raise UsageError(
                f"{reference} has no tag", hint="add a tag or a digest; `latest` cannot be locked"
            )
        digest, document = self._fetch_document(reference, name)
        manifest_digest = digest
        if "manifests" in document:
            manifest_digest = manifest.find_manifest(platform, document, reference)
            _, document = self._fetch_document(reference, manifest_digest)
        config_digest = manifest.get_config_digest(document, reference)
        answer = self._ask(reference, _Query(f"blobs/{config_digest}", "*/*", CONFIG_LIMIT))
        manifest.check(answer.body, config_digest, reference)
        config = manifest.config(manifest.parse(answer.body, "a config", reference))
        if config.platform != platform:
            raise RegistryError(
                f"{reference} is an image for {config.platform[:40]}, not for {platform}",
                hint="name its platform with `--platform`, or another image",
            )
        return Found(digest, manifest_digest, config)

    def fetch_manifest(self, reference: Reference, name: str) -> bytes:
        """Return a manifest or an index by its tag or digest.

        Raises:
            RegistryError: as `find`.
        """
        return self._ask(reference, _query_manifest(name)).body

    def write(
        self, reference: Reference, method: str, path: str, content: bytes | None, kind: str
    ) -> Answer:
        """Write to a repository, to a path in it or to the address that the registry gave.

        Raises:
            RegistryError: the registry cannot be reached, or refuses.
        """
        try:
            origin = self._find_origin(reference.registry)
            url = _join_address(f"{origin}/v2/{reference.repository}/", path)
            if urlsplit(url).scheme != urlsplit(origin).scheme:
                raise manifest.make_unreadable_error(
                    "the address of an upload", reference, "it is not encrypted"
                )
            request = Request(url, {"Content-Type": kind}, method, content)
            answer = self._send(reference, request)
            if answer.status == 401 and self._authorize(reference, answer, WRITE):
                answer = self._send(reference, request)
        except WebError as error:
            raise RegistryError(
                f"cannot write to {reference.name}: {error.message}", hint=error.hint
            ) from None
        if answer.status in (401, 403):
            raise self._explain_refusal(reference, answer, path)
        if answer.status not in (200, 201, 202, 204):
            refusal = make_status_error(answer.url, answer.status)
            raise RegistryError(
                f"cannot write to {reference.name}: {refusal.message}", hint=refusal.hint
            )
        return answer

    def _send(self, reference: Reference, request: Request) -> Answer:
        headers = dict(request.headers)
        authorization = self._authorizations.get((reference.registry, reference.repository, WRITE))
        # A registry may name an address elsewhere for an upload: the authorization is not sent
        # there.
        is_own = request.url.startswith(f"{self._find_origin(reference.registry)}/")
        if authorization and is_own:
            headers["Authorization"] = authorization
        headers["Accept-Encoding"] = "identity"
        return self._client.send(replace(request, headers=headers), limit=MANIFEST_LIMIT)

    def _fetch_document(self, reference: Reference, name: str) -> tuple[str, dict[str, object]]:
        """Return digest and content of a manifest or an index."""
        answer = self._ask(reference, _query_manifest(name))
        promised = answer.headers.get("Docker-Content-Digest", "")
        for digest in (name, promised):
            if digest.startswith("sha256:"):
                manifest.check(answer.body, digest, reference)
        media_type = answer.headers.get("Content-Type")
        document = manifest.parse(answer.body, "a manifest", reference, media_type)
        return manifest.compute_digest(answer.body), document

    def _ask(self, reference: Reference, query: _Query) -> Answer:
        """Return the answer of the registry, with the authorization that it requests."""
        try:
            answer = self._get(reference, query)
            if answer.status == 401 and self._authorize(reference, answer, READ):
                answer = self._get(reference, query)
        except WebError as error:
            hint = error.hint
            if error.status is not None and error.passing:
                hint = LATER_HINT.format(reference.registry)
            raise RegistryError(f"cannot look up {reference}: {error.message}", hint=hint) from None
        if answer.status != 200:
            raise self._explain_refusal(reference, answer, query.path)
        return answer

    def _get(self, reference: Reference, query: _Query) -> Answer:
        origin = self._find_origin(reference.registry)
        headers = {"Accept": query.accept}
        authorization = self._authorizations.get((reference.registry, reference.repository, READ))
        if authorization:
            headers["Authorization"] = authorization
        url = f"{origin}/v2/{reference.repository}/{query.path}"
        return self._client.get(url, headers=headers, limit=query.limit)

    def _find_origin(self, registry: str) -> str:
        """Return the address of a registry: https, unless a registry on this machine uses plain
        http.
        """
        if registry not in self._origins:
            # Its API is not at the name that references have.
            host = "registry-1.docker.io" if registry == DOCKER_HUB else registry
            scheme = "http" if _LOOPBACK.fullmatch(registry) and _has_plain_http(host) else "https"
            self._origins[registry] = f"{scheme}://{host}"
        return self._origins[registry]

    def _authorize(self, reference: Reference, answer: Answer, actions: str) -> bool:
        """Get the authorization that a refusal requests; return whether it is a new one."""
        key = (reference.registry, reference.repository, actions)
        known = self._logins(reference.registry)
        authorization = None
        for challenge in parse_challenges(answer.headers.get("WWW-Authenticate", "")):
            if challenge.scheme == "bearer":
                authorization = self._fetch_token(reference, challenge, known, actions)
            elif challenge.scheme == "basic" and known is not None:
                authorization = _encode_basic(known)
            if authorization is not None:
                break
        if authorization is None or authorization == self._authorizations.get(key):
            return False
        self._authorizations[key] = authorization
        return True

    def _fetch_token(
        self, reference: Reference, challenge: Challenge, known: Login | None, actions: str
    ) -> str | None:
        """Return a bearer token for this repository from the token server that the registry names;
        None if the server refuses.
        """
        realm = _join_address("", challenge.values.get("realm", ""))
        scheme = urlsplit(realm).scheme
        is_plain = scheme == "http" and self._find_origin(reference.registry).startswith("http:")
        # A registry on this machine that uses plain http may have a token server that does, too.
        if scheme != "https" and not is_plain:
            raise RegistryError(
                f"{reference.registry} names a token server without https",
                hint="ask its administrator, or use a mirror",
            )
        parameters = {"scope": f"repository:{reference.repository}:{actions}"}
        if "service" in challenge.values:
            parameters["service"] = challenge.values["service"]
        sign = "&" if urlsplit(realm).query else "?"
        url = f"{realm}{sign}{urlencode(parameters, quote_via=quote, safe=':/')}"
        host = urlsplit(realm).hostname or ""
        headers = {}
        if known is not None:
            if can_have_login(reference.registry, host):
                headers["Authorization"] = _encode_basic(known)
            else:
                # Public images need no login, so the token is requested without one; a later
                # refusal names the host.
                self._withheld[reference.registry] = clean(host)
        answer = self._client.get(url, headers=headers, limit=TOKEN_LIMIT)
        if answer.status in (401, 403):
            return None
        if answer.status != 200:
            raise make_status_error(answer.url, answer.status)
        document = manifest.parse(answer.body, "a token", reference)
        # Servers name it in either way, the second for OAuth 2.0:
        # https://distribution.github.io/distribution/spec/auth/token/
        token = document.get("token") or document.get("access_token")
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise manifest.make_unreadable_error("a token", reference, "it has no token")
        return f"Bearer {token}"

    def _explain_refusal(self, reference: Reference, answer: Answer, path: str) -> RegistryError:
        if answer.status == 404:
            name = path.removeprefix("manifests/").removeprefix("blobs/")
            sign = "@" if name.startswith("sha256:") else ":"
            return RegistryError(
                f"{reference.registry} has no {reference.repository}{sign}{name}",
                hint="name another image (see `envlock images`), or a mirror that has it",
                gone=True,
            )
        if answer.status in (401, 403):
            return self._explain_denial(reference, answer)
        error = make_status_error(answer.url, answer.status)
        return RegistryError(f"cannot look up {reference}: {error.message}", hint=error.hint)

    def _explain_denial(self, reference: Reference, answer: Answer) -> RegistryError:
        registry = reference.registry
        denied = f"{registry} denies access to {reference.repository}"
        if registry in self._withheld:
            host = self._withheld[registry]
            return RegistryError(
                f"{denied}: it sends logins to {host}, which is not known as its token server",
                hint=f"if it is its token server, set {TOKEN_SERVERS}={registry}={host}",
            )
        origin = self._find_origin(registry)
        if not answer.url.startswith(f"{origin}/"):
            message = make_status_error(answer.url, answer.status).message
            storage = urlsplit(answer.url).hostname
            return RegistryError(
                f"cannot look up {reference}: {origin} redirects, and {message}",
                hint=f"check that proxy and firewall allow {storage}, or use a mirror (`--mirror`)",
            )
        if self._logins(registry):
            with_login = "with the login from Docker's configuration"
        else:
            with_login = "without a login"
        return RegistryError(
            f"{denied}: {answer.status} {with_login}",
            hint=f"check the name; if it is private, run `docker login {registry}`",
        )


def _join_address(base: str, path: str) -> str:
    """Return the address that a registry names; empty if it is malformed."""
    try:
        return urlsplit(urljoin(base, path)).geturl()
    except ValueError:
        return ""


def _has_plain_http(host: str) -> bool:
    """Return whether a host answers over plain http as a registry does."""
    # Asked once and with a short limit: a server with TLS may not answer at all.
    try:
        answer = Client(limits=PROBE).get(f"http://{host}/v2/", limit=TOKEN_LIMIT)
    except WebError:
        return False
    return answer.status in (200, 401)


def _encode_basic(known: Login) -> str:
    return "Basic " + base64.b64encode(":".join(known).encode()).decode("ascii")


_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_NEXT = re.compile(
    rf"[\s,]*(?:(?P<name>{_WORD})\s*=\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<plain>{_WORD}))"
    rf"|(?P<scheme>{_WORD}))"
)
LONGEST = 8192
"""Characters; a longer header is not read."""


@dataclass(frozen=True)
class Challenge:
    """One way to get access; `scheme` and the names of `values` are in lower case."""

    scheme: str
    values: dict[str, str]


def parse_challenges(header: str) -> list[Challenge]:
    """Return the challenges of a `WWW-Authenticate` header, up to the first one that is malformed."""
    found: list[Challenge] = []
    if len(header) > LONGEST:
        return found
    position = 0
    while (match := _NEXT.match(header, position)) is not None:
        position = match.end()
        if match["scheme"] is not None:
            found.append(Challenge(match["scheme"].lower(), {}))
            continue
        if not found:
            break
        quoted = match["quoted"]
        value = match["plain"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        found[-1].values.setdefault(match["name"].lower(), value)
    return found


def open_registry() -> Registry:
    """Return a registry that is asked over HTTP, with the user's logins."""
    return Registry(Client())
