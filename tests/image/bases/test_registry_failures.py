"""What a registry, and what stands before it, may do instead of an answer: each told whole, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.image.bases.manifest import RegistryError
from envlock.image.bases.reference import Reference
from envlock.image.bases.registry import Registry
from envlock.packages.web.client import Client
from envlock.packages.web.web_errors import NETWORK, PROXY_LOGIN, TRUST
from tests.golden_files import assert_as_golden
from tests.image.bases.test_registry import AMD64, QUICK, _alone  # noqa: F401 (a fixture)
from tests.packages.web.hostile import Hostile, Reply, always, answer, hostile
from tests.packages.web.test_client import certificate, tls  # noqa: F401 (fixtures)

pytestmark = pytest.mark.network

GOLDEN = Path(__file__).parent / "golden" / "registry-errors.txt"
NAME = "HOST/team/base:1"
URL = "http://HOST/v2/team/base/manifests/1"
V1 = b'{"schemaVersion": 1, "name": "team/base"}'


def moved(place: str, status: str = "307 Temporary Redirect") -> bytes:
    return answer(b"", status, Location=place)


ANSWERS = {
    "401": answer(b"", "401 Unauthorized"),
    "403": answer(b"", "403 Forbidden"),
    "404": answer(b"", "404 Not Found"),
    "429 with a time": answer(b"", "429 Too Many Requests", Retry_After="3600"),
    "429": answer(b"", "429 Too Many Requests"),
    "500": answer(b"", "500 Internal Server Error"),
    "418": answer(b"", "418 I'm a teapot"),
    "no answer": b"",
    "cut off": answer(b"{", Content_Length="100"),
    "a page": answer(b"<html>", Content_Type="text/html; charset=utf-8"),
    "schema 1": answer(V1, Content_Type="application/vnd.docker.distribution.manifest.v1+prettyjws"),
    "another digest": answer(V1, Docker_Content_Digest=f"sha256:{'a' * 64}"),
    "redirected to nowhere": moved("http://elsewhere.invalid/x"),
    "redirected for ever": moved("/v2/team/base/manifests/1"),
    "redirected to an invalid URL": moved("ftp://HOST/x"),
}


def serving(reply: bytes) -> Reply:
    """Return what answers as a registry does, and then so."""
    return lambda request, sock: sock.sendall(answer(b"{}") if request.path == "/v2/" else reply)


def failure(host: str, name: str = "HOST") -> str:
    """Return the error of looking up an image at a host, which is called `name` in it."""
    with pytest.raises(RegistryError) as caught:
        Registry(Client(limits=QUICK)).find(Reference(host, "team/base", "1"), AMD64)
    assert caught.value.exit_code == 5
    return str(caught.value).replace(host, name)


def test_what_a_registry_may_answer() -> None:
    lines = []
    for name, reply in ANSWERS.items():
        with hostile(serving(reply)) as server:
            lines += [f"# {name}", failure(f"127.0.0.1:{server.port}"), ""]
    assert_as_golden("\n".join(lines), GOLDEN)


def test_a_storage_that_denies_what_its_registry_redirects_to() -> None:
    """As where a firewall knows the registry and not the host of its blobs."""
    with hostile(always(answer(b"", "403 Forbidden"))) as storage, hostile(serving(moved(storage.url("/x")))) as server:
        found = failure(f"127.0.0.1:{server.port}").replace(f":{storage.port}", ":PORT")
    assert found == (
        f"cannot look up {NAME}: http://HOST redirects, and http://127.0.0.1:PORT/x answered 403 (Forbidden)\n"
        "hint: check that proxy and firewall allow 127.0.0.1, or use a mirror (`--mirror`)"
    )


def test_a_host_that_is_not_there() -> None:
    assert failure("registry.invalid") == (
        "cannot look up HOST/team/base:1: https://HOST/v2/team/base/manifests/1 cannot be reached: its host is "
        f"unknown\nhint: {NETWORK}"
    )


PROXIES = [
    ("407 Proxy Authentication Required", PROXY_LOGIN),
    ("403 Forbidden", NETWORK),
    ("502 Bad Gateway", NETWORK),
]


@pytest.mark.parametrize(("status", "hint"), PROXIES)
def test_a_proxy_that_says_no_is_named_without_its_password(
    status: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hostile(always(answer(b"", status))) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url().replace("://", "://user:s3cret@"))
        found = failure("registry.invalid")
    code, _, phrase = status.partition(" ")
    assert found == (
        "cannot look up HOST/team/base:1: https://HOST/v2/team/base/manifests/1 cannot be reached: the proxy "
        f"{proxy.url()} answered {code} ({phrase})\nhint: {hint}"
    )


def test_a_proxy_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://user:s3cret@127.0.0.1:1")
    assert failure("registry.invalid") == (
        "cannot look up HOST/team/base:1: https://HOST/v2/team/base/manifests/1 cannot be reached through "
        f"the proxy http://127.0.0.1:1: connection refused\nhint: {NETWORK}"
    )


def test_a_certificate_that_nobody_has_signed_or_that_is_for_another_host(
    tls: Hostile,  # noqa: F811 (a fixture)
    certificate: Path,  # noqa: F811 (a fixture)
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    head = "cannot look up HOST/team/base:1: https://HOST/v2/team/base/manifests/1 is not trusted: "
    assert failure(f"127.0.0.1:{tls.port}") == f"{head}self-signed certificate\nhint: {TRUST}"
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    found = failure(f"localhost:{tls.port}")
    assert found.startswith(head)
    assert found.endswith("\nhint: use the name that its certificate is for, or ask its administrator")
