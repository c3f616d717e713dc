"""A registry's documents: indexes, manifests and configs, each held to its digest, and what a config says. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from envlock.images.candidate import SUBJECTS, Candidate, Value
from envlock.images.reference import Reference
from envlock.runtime import strict_json
from envlock.runtime.errors import OutsideError

INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class ImageConfig:
    """What an image says of itself; no layer was read for it.

    Attributes:
        platform: `linux/amd64` or the like.
        environ: its variables.
        labels: its labels.
        entrypoint, command: argument lists; empty where it has none.
        user, folder: whom and where a container starts; "" where it does not say.
        layers: digests of its layers, unpacked.
    """

    platform: str
    environ: dict[str, str]
    labels: dict[str, str]
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    user: str
    folder: str
    layers: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """An image as a registry has it now.

    Attributes:
        digest: of what the tag points at: an index, where it is there for several platforms.
        manifest: of the one platform that was asked for.
        config: what the image says of itself.
    """

    digest: str
    manifest: str
    config: ImageConfig


def digest_of(data: bytes) -> str:
    """Return the digest of some bytes, as registries write it."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def check(data: bytes, digest: str, reference: Reference) -> None:
    """Make sure that these bytes are what was asked for.

    Raises:
        RegistryError: they are something else.
    """
    found = digest_of(data)
    if found != digest:
        raise RegistryError(
            f"{reference.registry} sent {found} of {reference.repository} instead of {digest}",
            hint="use another network or a mirror: a proxy or the registry has changed the content",
        )


def parse(data: bytes, what: str, reference: Reference, kind: str | None = None) -> dict[str, Any]:
    """Return a document, of the media type `kind` where the registry told one.

    Raises:
        RegistryError: it is not a manifest.
    """
    try:
        document = strict_json.parse(data)
    except ValueError as error:
        told = (
            f"; it is {kind[:60]}"
            if kind and kind.partition(";")[0] not in (*INDEXES, *MANIFESTS)
            else ""
        )
        raise unreadable(what, reference, f"{error}{told}") from None
    if not isinstance(document, dict):
        raise unreadable(what, reference, "it is not an object")
    return document


def unreadable(what: str, reference: Reference, why: str) -> RegistryError:
    """Return the error for a document of another kind."""
    return RegistryError(
        f"{reference.registry} sent {what} of {reference.repository} that cannot be read: {why}",
        hint="check the name of the registry, and of its mirror",
    )


def manifest_for(platform: str, index: dict[str, Any], reference: Reference) -> str:
    """Return the digest of the manifest for a platform, of those that an index lists.

    Raises:
        RegistryError: there is none.
    """
    offered = dict(_offered(index))
    offered.pop("unknown/unknown", None)  # BuildKit's attestation, which is not an image
    if platform not in offered:
        there = ", ".join(sorted(offered)) or "none that envlock knows"
        raise RegistryError(
            f"{reference} has no image for {platform}, only for {there}",
            hint="name another platform with `--platform`, or another image",
        )
    return offered[platform]


def _offered(index: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield platform and digest of each manifest of an index, the first of a platform last."""
    rows = index.get("manifests")
    for row in reversed(rows if isinstance(rows, list) else []):
        platform = row.get("platform") if isinstance(row, dict) else None
        if (
            isinstance(platform, dict)
            and isinstance(row.get("digest"), str)
            and _DIGEST.fullmatch(row["digest"])
        ):
            names = (platform.get("os"), platform.get("architecture"))
            if all(
                isinstance(name, str) and re.fullmatch(r"[a-z0-9]{1,20}", name) for name in names
            ):
                yield f"{names[0]}/{names[1]}", row["digest"]


def config_digest(manifest: dict[str, Any], reference: Reference) -> str:
    """Return the digest of the config that a manifest names.

    Raises:
        RegistryError: it names none, as the manifests of before 2016 do.
    """
    config = manifest.get("config")
    digest = config.get("digest") if isinstance(config, dict) else None
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise unreadable("a manifest", reference, "it names no config, as those of schema 1 do")
    return digest


def config(data: dict[str, Any]) -> ImageConfig:
    """Return what a config says; what has another shape than it should counts as not said."""
    inner = data.get("config")
    own: dict[str, Any] = inner if isinstance(inner, dict) else {}
    labels = own.get("Labels")
    rootfs = data.get("rootfs")
    pairs = (text.partition("=") for text in _texts(own.get("Env")))
    return ImageConfig(
        platform=f"{data.get('os')}/{data.get('architecture')}",
        environ={name: value for name, _, value in pairs if name},
        labels={k: v for k, v in labels.items() if isinstance(v, str)}
        if isinstance(labels, dict)
        else {},
        entrypoint=_texts(own.get("Entrypoint")),
        command=_texts(own.get("Cmd")),
        user=own["User"] if isinstance(own.get("User"), str) else "",
        folder=own["WorkingDir"] if isinstance(own.get("WorkingDir"), str) else "",
        layers=_texts(rootfs.get("diff_ids")) if isinstance(rootfs, dict) else (),
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()


VARIABLES = {
    "TENSORFLOW_VERSION": "tensorflow",
    "PYTHON_VERSION": "python",
    "CUDA_VERSION": "cuda",
    "CUDNN_VERSION": "cudnn",
    "NV_CUDNN_VERSION": "cudnn",
    "NCCL_VERSION": "nccl",
}
LABELS = {"com.nvidia.tensorflow.version": "tensorflow", "com.nvidia.cudnn.version": "cudnn"}
OWN = {"ngc": {*SUBJECTS}, "cuda": {"cuda", "cudnn", "nccl"}, "wheels": {"python"}}
"""What the image of a route has to tell; the rest is installed from wheels, or taken from elsewhere."""

_VERSION = re.compile(r"(\d+(?:\.\d+){1,3})(?:[-+].*)?", re.ASCII)
_PARTS = {"cuda": 3}
"""CUDA's fourth number is that of a build."""


def told(config: ImageConfig) -> dict[str, str]:
    """Return the versions that an image's variables and labels tell; the variables win."""
    found: dict[str, str] = {}
    for names, values in ((VARIABLES, config.environ), (LABELS, config.labels)):
        for name, subject in names.items():
            match = _VERSION.fullmatch(values.get(name, ""))
            if match is not None:
                found.setdefault(subject, ".".join(match[1].split(".")[: _PARTS.get(subject)]))
    return found


def informed(candidate: Candidate, config: ImageConfig) -> Candidate:
    """Return the candidate with what its image tells in place of what the tables say."""
    facts = {
        name: version for name, version in told(config).items() if name in OWN[candidate.route]
    }
    if not facts:
        return candidate
    listed = ", ".join(f"{SUBJECTS[name]} {facts[name]}" for name in SUBJECTS if name in facts)
    holds = {**candidate.holds, **{name: Value(version) for name, version in facts.items()}}
    return replace(candidate, holds=holds, notes=(*candidate.notes, f"The image says: {listed}."))


class RegistryError(OutsideError):
    """A registry was not reached, refused, or has something else than was asked for.

    Attributes:
        ours: somebody else may get further, such as a container engine with logins and certificates of its own.
        gone: it does not have this image, or not any more.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, ours: bool = False, gone: bool = False
    ) -> None:
        super().__init__(message, hint=hint)
        self.ours = ours
        self.gone = gone
