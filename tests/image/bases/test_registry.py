"""The client of registries against real servers: tokens, passwords, indexes, lies, and every refusal word for word."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envlock.image.bases.choose import MovedTagError, Trust, resolve_image
from envlock.image.bases.manifest import Found, RegistryError
from envlock.image.bases.reference import Mirror, Reference, parse
from envlock.image.bases.registry import Registry
from envlock.lock.models import PinnedImage
from envlock.packages.web import client as web
from envlock.packages.web.client import Client
from envlock.packages.web.limits import Limits
from envlock.runtime.errors import UsageError
from tests.image.bases.registries import MANIFEST, Shelf, basic, bearer, config, digest_of, encode, query
from tests.packages.web.hostile import Hostile, Request, answer, hostile
from tests.packages.web.test_client import certificate  # noqa: F401 (a fixture)

pytestmark = pytest.mark.network

QUICK = Limits(connect=2, silence=2, answer=4, body=4, attempts=2, backoff=0.01, retry_after=0.05)
AMD64 = "linux/amd64"
TAG = "25.02-tf2-py3"
PUBLIC = "sha256:c83b37d26f19ab00d8a13cf974edd079c3d099918ec3110c304a989d6e2f75d5"


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No proxy, no certificates and no logins of the machine; to read the certificates takes 20 ms a client."""
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda context: None)
    for name in (*web.CA_VARIABLES, "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "no-docker"))


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def server(shelf: Shelf) -> Iterator[Hostile]:
    with hostile(lambda request, sock: shelf.reply(request, sock)) as served:
        yield served


def registry() -> Registry:
    return Registry(Client(limits=QUICK))


def named(server: Hostile, tag: str | None = TAG, digest: str | None = None) -> Reference:
    return Reference(f"127.0.0.1:{server.port}", "nvidia/tensorflow", tag, digest)


def fails(server: Hostile, tag: str | None = TAG, digest: str | None = None, platform: str = AMD64) -> RegistryError:
    with pytest.raises(RegistryError) as caught:
        registry().find(named(server, tag, digest), platform)
    assert caught.value.exit_code == 5
    return caught.value


def shown(error: RegistryError, server: Hostile) -> str:
    return str(error).replace(f"127.0.0.1:{server.port}", "HOST")


# --- what is there


def test_an_index_leads_to_the_platforms_manifest_and_its_config(server: Hostile, shelf: Shelf) -> None:
    amd64, arm64 = shelf.image(), shelf.image(architecture="arm64", User="1000:1000")
    index = shelf.index(TAG, amd64=amd64, arm64=arm64)
    found = registry().find(named(server), AMD64)
    assert (found.digest, found.manifest, found.config.platform) == (index, amd64, AMD64)
    assert found.config.environ["CUDA_VERSION"] == "12.8.0.038"
    assert found.config.environ["A"] == "b=c"
    assert (found.config.entrypoint, found.config.command) == (("/opt/entry.sh",), ())
    other = registry().find(named(server, None, index), "linux/arm64")
    assert (other.digest, other.manifest, other.config.user) == (index, arm64, "1000:1000")


def test_no_layer_is_ever_asked_for(server: Hostile, shelf: Shelf) -> None:
    shelf.image(TAG)
    registry().find(named(server), AMD64)
    paths = [request.path for request in server.requests if request.path != "/v2/"]
    assert [path.split("/")[4] for path in paths] == ["manifests", "blobs"]


def test_one_manifest_without_an_index(server: Hostile, shelf: Shelf) -> None:
    digest = shelf.image(TAG)
    found = registry().find(named(server), AMD64)
    assert (found.digest, found.manifest) == (digest, digest)


def test_both_kinds_of_documents_are_asked_for(server: Hostile, shelf: Shelf) -> None:
    shelf.image(TAG)
    registry().find(named(server), AMD64)
    accept = next(request.headers["accept"] for request in server.requests if "/manifests/" in request.path)
    assert accept == (
        "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, "
        "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
    )


# --- being let in


@pytest.mark.parametrize("name", ["token", "access_token"])
def test_an_anonymous_token_as_nvcr_io_wants_it(name: str, server: Hostile, shelf: Shelf) -> None:
    shelf.image(TAG)
    shelf.wants = bearer(server.url("/token"), service="registry")
    shelf.token = lambda request: answer(encode({name: "let.me-in"}))
    assert registry().find(named(server), AMD64).digest
    asked = [request for request in server.requests if request.path.startswith("/token")]
    assert [query(request) for request in asked] == [
        {"scope": ["repository:nvidia/tensorflow:pull"], "service": ["registry"]}
    ]
    assert "authorization" not in asked[0].headers


def test_a_token_is_asked_for_once(server: Hostile, shelf: Shelf) -> None:
    shelf.index(TAG, amd64=shelf.image())
    shelf.wants = bearer(server.url("/token"))
    shelf.token = lambda request: answer(encode({"token": "let.me-in"}))
    one = registry()
    one.find(named(server), AMD64)
    one.find(named(server), AMD64)
    assert [request.path[:6] for request in server.requests].count("/token") == 1


def test_a_login_is_shown_where_the_token_is_made(
    server: Hostile, shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    auths = {f"https://127.0.0.1:{server.port}/v1/": {"auth": "JG9hdXRodG9rZW46a2V5"}}  # $oauthtoken:key
    (tmp_path / "config.json").write_text(json.dumps({"auths": auths}), encoding="utf-8")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    shelf.image(TAG)
    shelf.wants = bearer(server.url("/token"))
    shelf.token = lambda request: (
        answer(encode({"token": "let.me-in"}))
        if request.headers.get("authorization") == "Basic JG9hdXRodG9rZW46a2V5"
        else answer(b"", "401 Unauthorized")
    )
    assert registry().find(named(server), AMD64).digest


def test_another_host_gets_no_login_for_a_token(server: Hostile, shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """`localhost` is this server under another name."""
    shelf.image(TAG)
    shelf.wants = bearer(server.url("/token", "localhost"))
    shelf.token = lambda request: (
        answer(encode({"token": "let.me-in"})) if "authorization" in request.headers else answer(b"", "403 Forbidden")
    )

    def ask() -> Found:
        return Registry(Client(limits=QUICK), lambda host: ("me", "s3cret")).find(named(server), AMD64)

    with pytest.raises(RegistryError) as caught:
        ask()
    assert shown(caught.value, server) == (
        "HOST denies access to nvidia/tensorflow: it sends logins to localhost, which is not known as its token "
        "server\nhint: if it is its token server, set ENVLOCK_TOKEN_SERVERS=HOST=localhost"
    )
    assert all("authorization" not in request.headers for request in server.requests)
    monkeypatch.setenv("ENVLOCK_TOKEN_SERVERS", f"other=localhost 127.0.0.1:{server.port}=localhost")
    assert ask().digest


def test_what_is_public_needs_no_login_of_another_host(server: Hostile, shelf: Shelf) -> None:
    shelf.image(TAG)
    shelf.wants = bearer(server.url("/token", "localhost"))
    shelf.token = lambda request: answer(encode({"token": "let.me-in"}))
    assert Registry(Client(limits=QUICK), lambda host: ("me", "s3cret")).find(named(server), AMD64).digest
    assert all("authorization" not in each.headers for each in server.requests if each.path.startswith("/token"))


def test_user_and_password(server: Hostile, shelf: Shelf) -> None:
    shelf.image(TAG)
    shelf.wants = basic("me", "pass:word")
    asked: list[str] = []

    def login(host: str) -> tuple[str, str]:
        asked.append(host)
        return "me", "pass:word"

    assert Registry(Client(limits=QUICK), login).find(named(server), AMD64).digest
    assert asked == [f"127.0.0.1:{server.port}"]


@pytest.mark.parametrize(
    ("known", "status", "how"),
    [
        (None, "401 Unauthorized", "401 without a login"),
        (("me", "old"), "401 Unauthorized", "401 with the login from Docker's configuration"),
        (None, "403 Forbidden", "401 without a login"),
    ],
)
def test_who_gets_no_token_is_not_let_in(
    known: tuple[str, str] | None, status: str, how: str, server: Hostile, shelf: Shelf
) -> None:
    shelf.wants = bearer(server.url("/token"))
    shelf.token = lambda request: answer(b"secret-old", status)
    with pytest.raises(RegistryError) as caught:
        Registry(Client(limits=QUICK), lambda host: known).find(named(server), AMD64)
    assert shown(caught.value, server) == (
        f"HOST denies access to nvidia/tensorflow: {how}\n"
        "hint: check the name; if it is private, run `docker login HOST`"
    )


def test_a_token_that_does_not_help_is_not_asked_for_again(server: Hostile, shelf: Shelf) -> None:
    shelf.wants = bearer(server.url("/token"), "another")
    shelf.token = lambda request: answer(encode({"token": "let.me-in"}))
    assert "401 without a login" in fails(server).message
    assert len([request for request in server.requests if request.path.startswith("/token")]) == 1


def test_a_token_that_is_none(server: Hostile, shelf: Shelf) -> None:
    whys = {
        b"": "it is empty",
        b"[]": "it is not an object",
        b"{}": "it has no token",
        b'{"token": "a b"}': "it has no token",
        b'{"token": "a\\r\\nX: y"}': "it has no token",
        b'{"token": 1}': "it has no token",
    }
    shelf.wants = bearer(server.url("/token"))
    for body, why in whys.items():
        shelf.token = lambda request, body=body: answer(body)  # type: ignore[misc]
        assert shown(fails(server), server) == (
            f"HOST sent a token of nvidia/tensorflow that cannot be read: {why}\n"
            "hint: check the name of the registry, and of its mirror"
        ), body


@pytest.mark.parametrize("realm", ["file:///etc/passwd", "http://[127.0.0.1/token", "", "//127.0.0.1/token"])
def test_nobody_is_sent_to_anything_but_a_web_address_for_a_token(server: Hostile, shelf: Shelf, realm: str) -> None:
    shelf.wants = bearer(realm)
    assert shown(fails(server), server) == (
        "HOST names a token server without https\nhint: ask its administrator, or use a mirror"
    )


def test_an_upload_to_what_is_no_address_is_an_error(server: Hostile) -> None:
    with pytest.raises(RegistryError, match=r"the address of an upload .* cannot be read: it is not encrypted"):
        registry().write(named(server), "PUT", "http://[127.0.0.1/x", b"", "text/plain")


# --- refusals and lies


def test_a_tag_that_is_not_there(server: Hostile, shelf: Shelf) -> None:
    error = fails(server)
    assert shown(error, server) == (
        f"HOST has no nvidia/tensorflow:{TAG}\nhint: name another image (see `envlock images`), or a mirror that has it"
    )
    assert error.gone


def test_a_digest_that_is_gone(server: Hostile, shelf: Shelf) -> None:
    digest = digest_of(b"x")
    assert fails(server, TAG, digest).message == f"127.0.0.1:{server.port} has no nvidia/tensorflow@{digest}"


def test_a_403() -> None:
    def reply(request: Request, sock: socket.socket) -> None:
        sock.sendall(answer(b"{}", "200 OK" if request.path == "/v2/" else "403 Forbidden"))

    with hostile(reply) as other:
        assert shown(fails(other), other) == (
            "HOST denies access to nvidia/tensorflow: 403 without a login\n"
            "hint: check the name; if it is private, run `docker login HOST`"
        )


@pytest.mark.parametrize("what", ["manifest", "index", "config"])
def test_something_else_than_was_asked_for_is_noticed(what: str, server: Hostile, shelf: Shelf) -> None:
    manifest = shelf.image()
    index = shelf.index(TAG, amd64=manifest)
    inner = digest_of(encode(config()))
    wanted = {"manifest": manifest, "index": index, "config": inner}[what]
    lie = encode({**json.loads(shelf.documents[wanted]), "more": 1})
    shelf.documents[wanted] = lie
    assert shown(fails(server, TAG, index), server) == (
        f"HOST sent {digest_of(lie)} of nvidia/tensorflow instead of {wanted}\n"
        "hint: use another network or a mirror: a proxy or the registry has changed the content"
    )


def test_a_digest_in_the_header_that_is_not_that_of_the_bytes() -> None:
    data = encode({"config": {"digest": digest_of(b"")}})
    lie = answer(data, Docker_Content_Digest=digest_of(b"other"))
    with hostile(lambda request, sock: sock.sendall(lie)) as server:
        assert f"instead of {digest_of(b'other')}" in fails(server).message


def test_a_platform_that_is_not_there(server: Hostile, shelf: Shelf) -> None:
    shelf.index(TAG, amd64=shelf.image())
    assert shown(fails(server, platform="linux/arm64"), server) == (
        f"HOST/nvidia/tensorflow:{TAG} has no image for linux/arm64, only for linux/amd64\n"
        "hint: name another platform with `--platform`, or another image"
    )
    shelf.image("single")
    assert shown(fails(server, "single", platform="linux/arm64"), server) == (
        "HOST/nvidia/tensorflow:single is an image for linux/amd64, not for linux/arm64\n"
        "hint: name its platform with `--platform`, or another image"
    )


def test_a_manifest_that_is_none(server: Hostile, shelf: Shelf) -> None:
    whys = {
        b"": "it is empty",
        b"<html>": "it is not JSON (line 1, column 1: a value is missing)",
        b"[]": "it is not an object",
        b"[" * 100_000: "it is nested too deeply",
        b'{"a": 1, "a": 2}': "the key 'a' stands twice in one object",
        b'{"schemaVersion": 1, "signatures": []}': "it names no config, as those of schema 1 do",
        b'{"config": {"digest": "sha256:../../x"}}': "it names no config, as those of schema 1 do",
    }
    for document, why in whys.items():
        shelf.put(document, MANIFEST, TAG)
        assert shown(fails(server), server) == (
            f"HOST sent a manifest of nvidia/tensorflow that cannot be read: {why}\n"
            "hint: check the name of the registry, and of its mirror"
        ), document[:40]


def test_a_config_of_another_shape_says_nothing(server: Hostile, shelf: Shelf) -> None:
    odd: dict[str, Any] = {
        "Env": ["=x", 1, "A=1"],
        "Labels": {"a": 1, "b": "c"},
        "Entrypoint": "sh",
        "User": 7,
        "WorkingDir": None,
    }
    shelf.image(TAG, **odd)
    found = registry().find(named(server), AMD64).config
    assert (found.environ, found.labels, found.entrypoint, found.user, found.folder) == (
        {"A": "1"},
        {"b": "c"},
        (),
        "",
        "",
    )


def test_a_registry_that_sends_too_much() -> None:
    def reply(request: Request, sock: socket.socket) -> None:
        sock.sendall(answer(b"{}" if request.path == "/v2/" else b"x" * 5 * 2**20))

    with hostile(reply) as server:
        error = fails(server)
    assert "sent more than 4194304 bytes, which is too much" in error.message


def test_a_registry_that_fails_every_time() -> None:
    def reply(request: Request, sock: socket.socket) -> None:
        sock.sendall(answer(b"{}", "200 OK" if request.path == "/v2/" else "503 Service Unavailable"))

    with hostile(reply) as server:
        error = fails(server)
        assert shown(error, server) == (
            f"cannot look up HOST/nvidia/tensorflow:{TAG}: http://HOST/v2/nvidia/tensorflow/manifests/{TAG} answered "
            "503 (Service Unavailable)\n"
            "hint: try again later, after `docker login HOST`, or with a mirror: `--mirror HOST=...`"
        )
        asked = [request for request in server.requests if "/manifests/" in request.path]
        assert len(asked) == 2


def test_a_registry_that_is_down() -> None:
    with hostile(lambda request, sock: None) as server:
        pass
    error = fails(server)
    assert shown(error, server) == (
        f"cannot look up HOST/nvidia/tensorflow:{TAG}: https://HOST/v2/nvidia/tensorflow/manifests/{TAG} cannot be "
        "reached: connection refused\n"
        "hint: check the network, the address, and the proxy settings (HTTPS_PROXY, NO_PROXY)"
    )


# --- TLS


@pytest.fixture
def secure(certificate: Path, shelf: Shelf) -> Iterator[Hostile]:  # noqa: F811 (the fixture)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with hostile(lambda request, sock: shelf.reply(request, sock), context) as served:
        yield served


def test_a_registry_with_a_private_certificate(
    secure: Hostile,
    shelf: Shelf,
    certificate: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digest = shelf.image(TAG)
    error = fails(secure)
    assert shown(error, secure).startswith(
        f"cannot look up HOST/nvidia/tensorflow:{TAG}: https://HOST/v2/nvidia/tensorflow/manifests/{TAG} is not "
        "trusted: "
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert registry().find(named(secure), AMD64).digest == digest


def test_a_token_over_plain_http_is_not_asked_for_by_a_registry_with_tls(
    secure: Hostile,
    server: Hostile,
    shelf: Shelf,
    certificate: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    shelf.wants = bearer(server.url("/token"))
    assert fails(secure).message.endswith("names a token server without https")
    assert server.requests == []


# --- pinning


FOUND = Found("sha256:" + "a" * 64, "sha256:" + "b" * 64, None)  # type: ignore[arg-type]
NVIDIAS = parse(f"nvcr.io/nvidia/tensorflow:{TAG}")


def test_a_mirror_is_asked_and_the_name_stays() -> None:
    asked: list[str] = []

    def find(reference: Reference, platform: str) -> Found:
        asked.append(f"{reference} {platform}")
        return FOUND

    pinned = resolve_image(find, NVIDIAS, AMD64, mirrors=[Mirror("nvcr.io", "harbor.example/nvcr")])
    assert asked == [f"harbor.example/nvcr/nvidia/tensorflow:{TAG} {AMD64}"]
    assert str(pinned.reference) == f"{NVIDIAS}@{FOUND.digest}"
    assert str(pinned.place) == f"harbor.example/nvcr/nvidia/tensorflow:{TAG}@{FOUND.digest}"


def _found(reference: Reference, platform: str) -> Found:
    return FOUND


@pytest.mark.parametrize("source", ["lock", "table"])
def test_a_release_that_is_served_as_another_image_stops_everything(source: str) -> None:
    """NVIDIA's tags name a release; the digest of this one is known in public, and this lock has one too."""
    locked = PinnedImage(name=NVIDIAS.name, tag=TAG, digest="sha256:" + "d" * 64, manifest=None)
    trust = Trust((locked,) if source == "lock" else ())
    known = locked.digest if source == "lock" else PUBLIC
    with pytest.raises(MovedTagError) as caught:
        resolve_image(_found, NVIDIAS, AMD64, trust=trust)
    assert (caught.value.exit_code, str(caught.value)) == (
        1,
        f"{NVIDIAS} is another image than the known one: known {known}, served {FOUND.digest} by nvcr.io\n"
        f"hint: build on the known one with `--base {NVIDIAS}@{known}`; if NVIDIA published the other, on that "
        f"with `--base {NVIDIAS}@{FOUND.digest}`",
    )
    assert resolve_image(_found, NVIDIAS.at(FOUND.digest), AMD64, trust=trust).reference.digest == FOUND.digest


def test_the_known_digest_may_be_of_the_index_or_of_the_platform() -> None:
    for digest in (FOUND.digest, FOUND.manifest):
        locked = PinnedImage(name=NVIDIAS.name, tag=TAG, digest=digest, manifest=None)
        assert resolve_image(_found, NVIDIAS, AMD64, trust=Trust((locked,))).reference.digest == FOUND.digest


def test_a_tag_that_names_the_newest_build_may_move() -> None:
    python = parse("docker.io/library/python:3.11-slim-bookworm")
    locked = PinnedImage(name=python.name, tag=python.tag, digest="sha256:" + "d" * 64, manifest=None)
    assert resolve_image(_found, python, AMD64, trust=Trust((locked,))).reference.digest == FOUND.digest


def test_a_name_without_a_tag_is_not_looked_up() -> None:
    with pytest.raises(UsageError) as caught:
        registry().find(parse("nvcr.io/nvidia/tensorflow"), AMD64)
    assert str(caught.value) == (
        "nvcr.io/nvidia/tensorflow has no tag\nhint: add a tag or a digest; `latest` cannot be locked"
    )
