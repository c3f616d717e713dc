"""Documents about an image, stored beside it in its registry, where `oras discover` and `cosign`
find them.

Sources: https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md (`subject`, guidelines
for artifacts) and
https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-manifests-with-subject
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from envlock.image.bases import manifest
from envlock.image.bases.manifest import RegistryError
from envlock.image.bases.reference import Reference
from envlock.packages.web.client import Answer

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
EMPTY = b"{}"
BYTES = "application/octet-stream"


@dataclass(frozen=True)
class Document:
    """A document about an image: its media type, its bytes, and the annotations of its artifact."""

    kind: str
    content: bytes
    annotations: Mapping[str, str] = field(default_factory=dict)


class Writable(Protocol):
    """A registry that can be read and written."""

    def fetch_manifest(self, reference: Reference, name: str) -> bytes: ...

    def write(
        self, reference: Reference, method: str, path: str, content: bytes | None, kind: str
    ) -> Answer: ...


def attach(registry: Writable, image: Reference, documents: Sequence[Document]) -> list[str]:
    """Store documents beside an image, which the digest of its manifest names; return the digests
    of the documents.

    Raises:
        RegistryError: the registry cannot be reached, or refuses them.
    """
    digest = str(image.digest)
    subject = registry.fetch_manifest(image, digest)
    manifest.check(subject, digest, image)
    kind = str(manifest.parse(subject, "a manifest", image).get("mediaType") or MANIFEST)
    about = _describe(kind, subject)
    entries: list[dict[str, object]] = []
    has_referrers = True
    for document in documents:
        for blob in (document.content, EMPTY):
            _push_blob(registry, image, blob)
        artifact = _make_artifact(document, about)
        path = f"manifests/{manifest.compute_digest(artifact)}"
        answer = registry.write(image, "PUT", path, artifact, MANIFEST)
        if not answer.headers.get("OCI-Subject"):
            has_referrers = False
        entry = {**_describe(MANIFEST, artifact), "artifactType": document.kind}
        if document.annotations:
            entry["annotations"] = dict(document.annotations)
        entries.append(entry)
    # If the answer has no `OCI-Subject`, the registry has no referrers API: clients then look for a
    # tag.
    if not has_referrers:
        _update_tag_index(registry, image, entries)
    return [str(entry["digest"]) for entry in entries]


def check_writable(registry: Writable, image: Reference) -> None:
    """Check, before an image is built, that its registry lets us write, by starting and cancelling
    an upload.

    Raises:
        RegistryError: the registry cannot be reached, or does not let us write.
    """
    place = registry.write(image, "POST", "blobs/uploads/", b"", BYTES).headers.get("Location", "")
    with suppress(RegistryError):  # an upload that is not cancelled expires by itself
        if place:
            registry.write(image, "DELETE", place, None, BYTES)


def _make_artifact(document: Document, about: Mapping[str, object]) -> bytes:
    """Return the manifest of a document: the same bytes for the same document and image."""
    artifact: dict[str, object] = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": document.kind,
        "config": _describe("application/vnd.oci.empty.v1+json", EMPTY),
        "layers": [_describe(document.kind, document.content)],
        "subject": dict(about),
    }
    if document.annotations:
        artifact["annotations"] = dict(document.annotations)
    return _dump(artifact)


def _update_tag_index(
    registry: Writable, image: Reference, entries: Sequence[Mapping[str, object]]
) -> None:
    """Add entries to the index under the tag of an image's referrers; existing entries are kept."""
    # Two pushes at once can lose an entry, as the specification says, which has this tag:
    # https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#unavailable-referrers-api
    tag = str(image.digest).replace(":", "-")
    try:
        index = manifest.parse(registry.fetch_manifest(image, tag), "an index", image)
    except RegistryError as error:
        if not error.gone:
            raise
        index = {}
    new = {entry["digest"] for entry in entries}
    merged: list[Mapping[str, object]] = []
    listed = index.get("manifests", [])
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        reason = "`manifests` is not a list of objects"
        raise manifest.make_unreadable_error("an index", image, reason)
    merged += [entry for entry in listed if entry.get("digest") not in new]
    merged += entries
    content = _dump({"schemaVersion": 2, "mediaType": INDEX, "manifests": merged})
    registry.write(image, "PUT", f"manifests/{tag}", content, INDEX)


def _push_blob(registry: Writable, image: Reference, content: bytes) -> None:
    """Put a blob into a repository: start an upload, and send the content to the address in the
    answer.
    """
    place = registry.write(image, "POST", "blobs/uploads/", b"", BYTES).headers.get("Location", "")
    if not place:
        raise manifest.make_unreadable_error("an upload", image, "it names no place")
    sign = "&" if "?" in place else "?"
    address = f"{place}{sign}digest={manifest.compute_digest(content)}"
    registry.write(image, "PUT", address, content, BYTES)


def _describe(kind: str, content: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": manifest.compute_digest(content), "size": len(content)}


def _dump(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode("ascii")
