"""A registry over HTTP: which digest a tag has now, what the image says of itself, and small things put beside it."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from urllib.parse import quote, urlencode, urljoin, urlsplit

from envlock.images import manifest
from envlock.images.logins import TOKEN_SERVERS, Login, login, may_have_login
from envlock.images.manifest import Found, RegistryError
from envlock.images.reference import DOCKER_HUB, Reference
from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean
from envlock.web.client import Answer, Client, Request
from envlock.web.errors import WebError, refused
from envlock.web.limits import Limits

MANIFEST_LIMIT = 4 * 1024 * 1024
CONFIG_LIMIT = 8 * 1024 * 1024
TOKEN_LIMIT = 1024 * 1024
PROBE = Limits(connect=2, silence=2, answer=4, attempts=1)

LATER = "try again later, after `docker login {0}`, or with a mirror: `--mirror {0}=...`"

READ, WRITE = "pull", "pull,push"
"""What a token is asked for."""

_LOOPBACK = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")


class Registry:
    """Looks images up, and remembers which registry wants to be shown what.

    Args:
        client: asks over HTTP.
        logins: user and password for a registry.
    """

    def __init__(self, client: Client, logins: Callable[[str], Login | None] = login) -> None:
        self._client = client
        self._logins = cache(logins)
        self._origins: dict[str, str] = {}
        self._shown: dict[tuple[str, str, str], str] = {}
        self._withheld: dict[str, str] = {}

    def find(self, reference: Reference, platform: str) -> Found:
        """Return what a tag, or a digest, stands for.

        Raises:
            UsageError: it names neither tag nor digest.
            RegistryError: the registry cannot be asked, does not let us, has no such image or none for this platform,
                or sends something else.
        """
        asked = reference.digest or reference.tag
        if asked is None:
            raise UsageError(
                f"{reference} has no tag", hint="add a tag or a digest; `latest` cannot be locked"
            )
        top, data = self._manifest(reference, asked)
        own = top
        if "manifests" in data:
            own = manifest.manifest_for(platform, data, reference)
            _, data = self._manifest(reference, own)
        wanted = manifest.config_digest(data, reference)
        answer = self._ask(reference, f"blobs/{wanted}", {"Accept": "*/*"}, CONFIG_LIMIT)
        manifest.check(answer.body, wanted, reference)
        config = manifest.config(manifest.parse(answer.body, "a config", reference))
        if config.platform != platform:
            raise RegistryError(
                f"{reference} is an image for {config.platform[:40]}, not for {platform}",
                hint="name its platform with `--platform`, or another image",
            )
        return Found(top, own, config)

    def manifest(self, reference: Reference, name: str) -> bytes:
        """Return a manifest or an index, by its tag or digest.

        Raises:
            RegistryError: as `find`.
        """
        accept = {"Accept": ", ".join((*manifest.INDEXES, *manifest.MANIFESTS))}
        return self._ask(reference, f"manifests/{name}", accept, MANIFEST_LIMIT).body

    def write(
        self, reference: Reference, method: str, path: str, content: bytes | None, kind: str
    ) -> Answer:
        """Put something into a repository, by its path there or by the address that the registry gave for it.

        Raises:
            RegistryError: the registry cannot be asked, or does not take it.
        """
        try:
            origin = self._origin(reference.registry)
            url = _address(f"{origin}/v2/{reference.repository}/", path)
            if urlsplit(url).scheme != urlsplit(origin).scheme:
                raise manifest.unreadable(
                    "the address of an upload", reference, "it is not encrypted"
                )
            answer = self._send(reference, Request(url, {"Content-Type": kind}, method, content))
            if answer.status == 401 and self._authorize(reference, answer, WRITE):
                answer = self._send(
                    reference, Request(url, {"Content-Type": kind}, method, content)
                )
        except WebError as error:
            raise RegistryError(
                f"cannot write to {reference.name}: {error.message}", hint=error.hint
            ) from None
        if answer.status in (401, 403):
            raise self._refusal(reference, answer, path)
        if answer.status not in (200, 201, 202, 204):
            refusal = refused(answer.url, answer.status)
            raise RegistryError(
                f"cannot write to {reference.name}: {refusal.message}", hint=refusal.hint
            )
        return answer

    def _send(self, reference: Reference, request: Request) -> Answer:
        shown = self._shown.get((reference.registry, reference.repository, WRITE))
        inside = request.url.startswith(f"{self._origin(reference.registry)}/")
        own = {"Authorization": shown} if shown and inside else {}
        headers = {**request.headers, **own, "Accept-Encoding": "identity"}
        return self._client.send(replace(request, headers=headers), limit=MANIFEST_LIMIT)

    def _manifest(self, reference: Reference, name: str) -> tuple[str, dict[str, object]]:
        """Return digest and content of a manifest or an index."""
        accept = {"Accept": ", ".join((*manifest.INDEXES, *manifest.MANIFESTS))}
        answer = self._ask(reference, f"manifests/{name}", accept, MANIFEST_LIMIT)
        digest = manifest.digest_of(answer.body)
        said = answer.headers.get("Docker-Content-Digest", "")
        for promised in (name, said):
            if promised.startswith("sha256:"):
                manifest.check(answer.body, promised, reference)
        return digest, manifest.parse(
            answer.body, "a manifest", reference, answer.headers.get("Content-Type")
        )

    def _ask(
        self, reference: Reference, path: str, headers: Mapping[str, str], limit: int
    ) -> Answer:
        """Return the answer of the registry, after showing it what it wants to see."""
        try:
            url = f"{self._origin(reference.registry)}/v2/{reference.repository}/{path}"
            answer = self._get(reference, url, headers, limit)
            if answer.status == 401 and self._authorize(reference, answer):
                answer = self._get(reference, url, headers, limit)
        except WebError as error:
            hint = (
                LATER.format(reference.registry)
                if error.status is not None and error.passing
                else error.hint
            )
            raise RegistryError(
                f"cannot look up {reference}: {error.message}", hint=hint, ours=error.status is None
            ) from None
        if answer.status != 200:
            raise self._refusal(reference, answer, path)
        return answer

    def _get(
        self, reference: Reference, url: str, headers: Mapping[str, str], limit: int
    ) -> Answer:
        shown = self._shown.get((reference.registry, reference.repository, READ))
        own = {"Authorization": shown} if shown else {}
        return self._client.get(
            url, headers={**headers, **own, "Accept-Encoding": "identity"}, limit=limit
        )

    def _origin(self, registry: str) -> str:
        """Return the address of a registry: https, but for one on this machine that speaks plain http."""
        if registry not in self._origins:
            host = "registry-1.docker.io" if registry == DOCKER_HUB else registry
            plain = _LOOPBACK.fullmatch(registry) is not None and _speaks_plainly(host)
            self._origins[registry] = f"{'http' if plain else 'https'}://{host}"
        return self._origins[registry]

    def _authorize(self, reference: Reference, answer: Answer, actions: str = READ) -> bool:
        """Take what the registry wants to be shown; return whether there is something new to show."""
        key = (reference.registry, reference.repository, actions)
        offered = challenges(answer.headers.get("WWW-Authenticate", ""))
        known = self._logins(reference.registry)
        shown = None
        for challenge in offered:
            if challenge.scheme == "bearer":
                shown = self._token(reference, challenge, known, actions)
            elif challenge.scheme == "basic" and known is not None:
                shown = _basic(known)
            if shown is not None:
                break
        if shown is None or shown == self._shown.get(key):
            return False
        self._shown[key] = shown
        return True

    def _token(
        self, reference: Reference, challenge: Challenge, known: Login | None, actions: str
    ) -> str | None:
        """Return a bearer token for this repository, from where the registry says they are made."""
        realm = _address("", challenge.values.get("realm", ""))
        secure = urlsplit(realm).scheme == "https"
        if not secure and (
            urlsplit(realm).scheme != "http"
            or self._origin(reference.registry).startswith("https:")
        ):
            raise RegistryError(
                f"{reference.registry} names a token server without https",
                hint="ask its administrator, or use a mirror",
                ours=True,
            )
        wanted = {"scope": f"repository:{reference.repository}:{actions}"}
        if "service" in challenge.values:
            wanted["service"] = challenge.values["service"]
        query = urlencode(wanted, quote_via=quote, safe=":/")
        url = f"{realm}{'&' if urlsplit(realm).query else '?'}{query}"
        host = urlsplit(realm).hostname or ""
        if known is not None and not may_have_login(reference.registry, host):
            self._withheld[reference.registry], known = (
                clean(host),
                None,
            )  # what is public needs none
        headers = {"Authorization": _basic(known)} if known else {}
        answer = self._client.get(url, headers=headers, limit=TOKEN_LIMIT)
        if answer.status in (401, 403):
            return None
        if answer.status != 200:
            raise refused(answer.url, answer.status)
        document = manifest.parse(answer.body, "a token", reference)
        token = document.get("token") or document.get("access_token")
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise manifest.unreadable("a token", reference, "it has no token")
        return f"Bearer {token}"

    def _refusal(self, reference: Reference, answer: Answer, path: str) -> RegistryError:
        if answer.status == 404:
            what = path.removeprefix("manifests/").removeprefix("blobs/")
            sign = "@" if what.startswith("sha256:") else ":"
            return RegistryError(
                f"{reference.registry} has no {reference.repository}{sign}{what}",
                hint="name another image (see `envlock images`), or a mirror that has it",
                gone=True,
            )
        if answer.status in (401, 403) and reference.registry in self._withheld:
            host = self._withheld[reference.registry]
            return RegistryError(
                f"{reference.registry} denies access to {reference.repository}: it sends logins to {host}, "
                "which is not known as its token server",
                hint=f"if it is its token server, set {TOKEN_SERVERS}={reference.registry}={host}",
                ours=True,
            )
        origin = self._origin(reference.registry)
        if answer.status in (401, 403) and not answer.url.startswith(f"{origin}/"):
            message, storage = (
                refused(answer.url, answer.status).message,
                urlsplit(answer.url).hostname,
            )
            return RegistryError(
                f"cannot look up {reference}: {origin} redirects, and {message}",
                hint=f"check that proxy and firewall allow {storage}, or use a mirror (`--mirror`)",
                ours=True,
            )
        if answer.status in (401, 403):
            known = self._logins(reference.registry)
            with_login = (
                "with the login from Docker's configuration" if known else "without a login"
            )
            return RegistryError(
                f"{reference.registry} denies access to {reference.repository}: {answer.status} {with_login}",
                hint=f"check the name; if it is private, run `docker login {reference.registry}`",
                ours=True,
            )
        error = refused(answer.url, answer.status)
        return RegistryError(f"cannot look up {reference}: {error.message}", hint=error.hint)


def _address(base: str, path: str) -> str:
    """Return an address that a registry names; one that is none is empty."""
    try:
        return urlsplit(urljoin(base, path)).geturl()
    except ValueError:
        return ""


def _speaks_plainly(host: str) -> bool:
    """Whether it answers http as a registry does; asked once and briefly, as one with TLS may not answer at all."""
    try:
        return Client(limits=PROBE).get(f"http://{host}/v2/", limit=TOKEN_LIMIT).status in (
            200,
            401,
        )
    except WebError:
        return False


def _basic(known: Login) -> str:
    return "Basic " + base64.b64encode(":".join(known).encode()).decode("ascii")


_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_NEXT = re.compile(
    rf"[\s,]*(?:(?P<name>{_WORD})\s*=\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<plain>{_WORD}))|(?P<scheme>{_WORD}))"
)
LONGEST = 8192


@dataclass(frozen=True)
class Challenge:
    """One way in; `scheme` and the names of `values` are in lower case."""

    scheme: str
    values: dict[str, str]


def challenges(header: str) -> list[Challenge]:
    """Return the ways in that a header offers, up to where it cannot be read."""
    found: list[Challenge] = []
    place = 0
    while len(header) <= LONGEST and (match := _NEXT.match(header, place)) is not None:
        place = match.end()
        if match["scheme"] is not None:
            found.append(Challenge(match["scheme"].lower(), {}))
        elif not found:
            break
        else:
            quoted = match["quoted"]
            value = match["plain"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            found[-1].values.setdefault(match["name"].lower(), value)
    return found
