"""Documents about an image, put beside it in its registry, where `oras discover` and `cosign` find them.

Sources: https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md (`subject`, guidelines for artifacts) and
https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-manifests-with-subject
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from envlock.images import manifest
from envlock.images.manifest import RegistryError
from envlock.images.reference import Reference
from envlock.web.client import Answer

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
EMPTY = b"{}"
BYTES = "application/octet-stream"


@dataclass(frozen=True)
class Document:
    """What is to stand beside an image: bytes of a media type, and annotations of their artifact."""

    kind: str
    content: bytes
    annotations: Mapping[str, str] = field(default_factory=dict)


class Writable(Protocol):
    """A registry that can be read and written."""

    def manifest(self, reference: Reference, name: str) -> bytes: ...

    def write(
        self, reference: Reference, method: str, path: str, content: bytes | None, kind: str
    ) -> Answer: ...


def attach(registry: Writable, image: Reference, documents: Sequence[Document]) -> list[str]:
    """Put documents beside an image, which is named by the digest of its manifest; return their digests.

    A registry without the API of referrers, which does not answer with `OCI-Subject`, gets them in an index under the
    tag that clients look for then.

    Raises:
        RegistryError: the registry cannot be asked, or does not take them.
    """
    digest = str(image.digest)
    subject = registry.manifest(image, digest)
    manifest.check(subject, digest, image)
    kind = str(manifest.parse(subject, "a manifest", image).get("mediaType") or MANIFEST)
    about = _descriptor(kind, subject)
    entries = []
    known = True
    for document in documents:
        for blob in (document.content, EMPTY):
            _push_blob(registry, image, blob)
        made = _artifact(document, about)
        answer = registry.write(
            image, "PUT", f"manifests/{manifest.digest_of(made)}", made, MANIFEST
        )
        known = known and bool(answer.headers.get("OCI-Subject"))
        extra = {"annotations": dict(document.annotations)} if document.annotations else {}
        entries.append({**_descriptor(MANIFEST, made), "artifactType": document.kind, **extra})
    if not known:
        _by_tag(registry, image, entries)
    return [str(entry["digest"]) for entry in entries]


def check_writable(registry: Writable, image: Reference) -> None:
    """Begin an upload and cancel it, which writes nothing: so a login is known to do before an image is built.

    Raises:
        RegistryError: the registry cannot be asked, or does not let us write.
    """
    place = registry.write(image, "POST", "blobs/uploads/", b"", BYTES).headers.get("Location", "")
    with suppress(RegistryError):  # one that is not cancelled runs out by itself
        if place:
            registry.write(image, "DELETE", place, None, BYTES)


def _artifact(document: Document, about: Mapping[str, Any]) -> bytes:
    """Return the manifest of a document: the same bytes for the same document and image."""
    made: dict[str, Any] = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": document.kind,
        "config": _descriptor("application/vnd.oci.empty.v1+json", EMPTY),
        "layers": [_descriptor(document.kind, document.content)],
        "subject": dict(about),
    }
    if document.annotations:
        made["annotations"] = dict(document.annotations)
    return _dump(made)


def _by_tag(registry: Writable, image: Reference, entries: Sequence[Mapping[str, Any]]) -> None:
    """Add entries to the index under the tag of an image's referrers; those of others stay."""
    tag = str(image.digest).replace(":", "-")
    try:
        index = manifest.parse(registry.manifest(image, tag), "an index", image)
    except RegistryError as error:
        if not error.gone:
            raise
        index = {}
    listed = index.get("manifests")
    new = {entry["digest"] for entry in entries}
    kept = (
        [each for each in listed if each.get("digest") not in new]
        if isinstance(listed, list)
        else []
    )
    made = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [*kept, *entries]}
    registry.write(image, "PUT", f"manifests/{tag}", _dump(made), INDEX)


def _push_blob(registry: Writable, image: Reference, content: bytes) -> None:
    """Put a blob into a repository: an upload is begun, and the registry says where it goes."""
    place = registry.write(image, "POST", "blobs/uploads/", b"", BYTES).headers.get("Location", "")
    if not place:
        raise manifest.unreadable("an upload", image, "it names no place")
    sign = "&" if "?" in place else "?"
    registry.write(
        image, "PUT", f"{place}{sign}digest={manifest.digest_of(content)}", content, BYTES
    )


def _descriptor(kind: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": manifest.digest_of(content), "size": len(content)}


def _dump(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode("ascii")
