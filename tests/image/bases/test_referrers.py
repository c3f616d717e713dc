"""Documents beside an image: found by both ways of the specification, and nothing of others is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envlock.image.bases.manifest import RegistryError, compute_digest
from envlock.image.bases.reference import Reference
from envlock.image.bases.referrers import Document, attach, check_writable
from envlock.packages.web.client import Answer

SUBJECT = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json"}).encode()
IMAGE = Reference("ghcr.io", "team/train", digest=compute_digest(SUBJECT))
TAG = compute_digest(SUBJECT).replace(":", "-")
BILL = Document("application/vnd.cyclonedx+json", b'{"bomFormat": "CycloneDX"}')


class Memory:
    """A registry of one repository."""

    def __init__(self, *, knows_referrers: bool) -> None:
        self.headers = {"OCI-Subject": str(IMAGE.digest)} if knows_referrers else {}
        self.held = {str(IMAGE.digest): SUBJECT}

    def fetch_manifest(self, reference: Reference, name: str) -> bytes:
        if name not in self.held:
            raise RegistryError("none", gone=True)
        return self.held[name]

    def write(self, reference: Reference, method: str, path: str, content: bytes | None, kind: str) -> Answer:
        headers = self.headers
        if method == "POST":
            headers = {"Location": "/v2/team/train/blobs/uploads/1?_state=x"}
        else:
            sign = "digest=" if "digest=" in path else "manifests/"
            self.held[path.partition(sign)[2]] = content or b""
        return Answer(201, path, headers, b"")


def entries(registry: Memory) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(registry.held[TAG])["manifests"]
    return found


def test_a_registry_with_the_api_needs_no_index() -> None:
    registry = Memory(knows_referrers=True)
    (digest,) = attach(registry, IMAGE, [BILL])
    assert TAG not in registry.held
    artifact = json.loads(registry.held[digest])
    assert artifact["subject"] == {
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": IMAGE.digest,
        "size": len(SUBJECT),
    }
    assert registry.held[artifact["layers"][0]["digest"]] == BILL.content
    assert registry.held[artifact["config"]["digest"]] == b"{}"


def test_the_index_of_another_keeps_what_others_put_there() -> None:
    registry = Memory(knows_referrers=False)
    signature = {"mediaType": "x", "digest": "sha256:" + "5a" * 32, "size": 1}
    registry.held[TAG] = json.dumps({"schemaVersion": 2, "manifests": [signature]}).encode()
    first = attach(registry, IMAGE, [BILL, Document("application/vnd.in-toto+json", b"{}", {"a": "b"})])
    held = dict(registry.held)
    assert attach(registry, IMAGE, [BILL, Document("application/vnd.in-toto+json", b"{}", {"a": "b"})]) == first
    assert registry.held == held
    assert [each["digest"] for each in entries(registry)] == [signature["digest"], *first]
    assert entries(registry)[2]["annotations"] == {"a": "b"}


@pytest.mark.parametrize("manifests", [["x"], "x", {"a": 1}])
def test_a_malformed_index_is_refused(manifests: object) -> None:
    registry = Memory(knows_referrers=False)
    registry.held[TAG] = json.dumps({"schemaVersion": 2, "manifests": manifests}).encode()
    with pytest.raises(RegistryError, match="cannot be read: `manifests` is not a list of objects"):
        attach(registry, IMAGE, [BILL])


def test_the_first_index_is_made_where_the_registry_has_none() -> None:
    registry = Memory(knows_referrers=False)
    made = attach(registry, IMAGE, [BILL])
    assert [each["digest"] for each in entries(registry)] == made


@pytest.mark.parametrize("lie", ["refuses the index", "names no place"])
def test_a_registry_that_does_not_do_its_part_is_an_error(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Memory(knows_referrers=False)
    if lie == "names no place":
        monkeypatch.setattr(registry, "write", lambda *_: Answer(202, "x", {}, b""))
        wanted = "it names no place"
    else:
        known, wanted = registry.fetch_manifest, "refused"

        def refuse(reference: Reference, name: str) -> bytes:
            if name == TAG:
                raise RegistryError(wanted, gone=False)
            return known(reference, name)

        monkeypatch.setattr(registry, "fetch_manifest", refuse)
    with pytest.raises(RegistryError, match=wanted):
        attach(registry, IMAGE, [BILL])


class Uploads:
    """A registry that takes uploads, or refuses, and remembers what it was asked."""

    def __init__(self, place: str, *refused: str) -> None:
        self.place, self.refused = place, refused
        self.asked: list[tuple[str, str]] = []

    def fetch_manifest(self, reference: Reference, name: str) -> bytes:
        raise AssertionError("nothing is read")

    def write(self, reference: Reference, method: str, path: str, content: bytes | None, kind: str) -> Answer:
        self.asked.append((method, path))
        if method in self.refused:
            raise RegistryError(f"no {method}")
        return Answer(202, path, {"Location": self.place} if self.place else {}, b"")


@pytest.mark.parametrize(
    ("registry", "asked"),
    [
        (Uploads("/v2/x/1"), [("POST", "blobs/uploads/"), ("DELETE", "/v2/x/1")]),
        (Uploads("/v2/x/1", "DELETE"), [("POST", "blobs/uploads/"), ("DELETE", "/v2/x/1")]),
        (Uploads(""), [("POST", "blobs/uploads/")]),
    ],
)
def test_a_login_is_tried_by_an_upload_that_is_cancelled(registry: Uploads, asked: list[tuple[str, str]]) -> None:
    check_writable(registry, IMAGE)
    assert registry.asked == asked


def test_a_registry_that_takes_no_upload_says_so() -> None:
    with pytest.raises(RegistryError) as raised:
        check_writable(Uploads("", "POST"), IMAGE)
    assert raised.value.message == "no POST"
