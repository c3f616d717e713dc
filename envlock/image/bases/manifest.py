"""The documents of a registry: indexes, manifests and configs, each checked against its digest.
Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from envlock.image.bases.candidate import SUBJECTS, Candidate, Value
from envlock.image.bases.reference import Reference
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
    """The config of an image, which is known without reading a layer.

    Attributes:
        platform: `linux/amd64` or the like.
        environ: its variables.
        labels: its labels.
        entrypoint, command: argument lists; empty if not set.
        user, folder: the user and the folder in which a container starts; "" if not set.
        layers: digests of its uncompressed layers.
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
        digest: that of what the tag stands for: an index, if the image exists for several
            platforms.
        manifest: the digest for the requested platform.
        config: the config for that platform.
    """

    digest: str
    manifest: str
    config: ImageConfig


def compute_digest(data: bytes) -> str:
    """Return the digest of some bytes in the form that registries use."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def check(data: bytes, digest: str, reference: Reference) -> None:
    """Check that the bytes have the requested digest.

    Raises:
        RegistryError: they have another one.
    """
    found = compute_digest(data)
    if found != digest:
        raise RegistryError(
            f"{reference.registry} sent {found} of {reference.repository} instead of {digest}",
            hint="use another network or a mirror: a proxy or the registry has changed the content",
        )


def parse(
    data: bytes, what: str, reference: Reference, media_type: str | None = None
) -> dict[str, object]:
    """Return a document.

    Args:
        data: its bytes.
        what: the kind of document, for a message.
        reference: the image.
        media_type: the one that the registry gave, or None.

    Raises:
        RegistryError: it is not JSON, or not an object.
    """
    try:
        document = strict_json.parse(data)
    except ValueError as error:
        reason = str(error)
        if media_type and media_type.partition(";")[0] not in (*INDEXES, *MANIFESTS):
            reason += f"; it is {media_type[:60]}"
        raise make_unreadable_error(what, reference, reason) from None
    if not isinstance(document, dict):
        raise make_unreadable_error(what, reference, "it is not an object")
    return document


def make_unreadable_error(what: str, reference: Reference, reason: str) -> RegistryError:
    """Return the error for a document that is not of the requested kind."""
    return RegistryError(
        f"{reference.registry} sent {what} of {reference.repository} that cannot be read: {reason}",
        hint="check the name of the registry, and of its mirror",
    )


def find_manifest(platform: str, index: Mapping[str, object], reference: Reference) -> str:
    """Return the digest of the manifest for a platform, of those that an index lists.

    Raises:
        RegistryError: the index does not list the platform.
    """
    # If an index lists a platform twice, its first entry is used.
    digests = dict(reversed(list(_list_platforms(index))))
    digests.pop("unknown/unknown", None)  # an attestation of BuildKit, which is not an image
    if platform not in digests:
        available = ", ".join(sorted(digests)) or "none that envlock knows"
        raise RegistryError(
            f"{reference} has no image for {platform}, only for {available}",
            hint="name another platform with `--platform`, or another image",
        )
    return digests[platform]


def _list_platforms(index: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield platform and digest of each well-formed entry of an index."""
    entries = index.get("manifests")
    if not isinstance(entries, list):
        return
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        platform, digest = entry.get("platform"), entry.get("digest")
        if not isinstance(platform, dict) or not isinstance(digest, str):
            continue
        names = (platform.get("os"), platform.get("architecture"))
        if _DIGEST.fullmatch(digest) and all(_is_platform_word(name) for name in names):
            yield f"{names[0]}/{names[1]}", digest


def _is_platform_word(name: object) -> bool:
    return isinstance(name, str) and re.fullmatch(r"[a-z0-9]{1,20}", name) is not None


def get_config_digest(manifest: Mapping[str, object], reference: Reference) -> str:
    """Return the digest of the config that a manifest names.

    Raises:
        RegistryError: it names none, as manifests before 2016 did.
    """
    digest = _get_object(manifest, "config").get("digest")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        reason = "it names no config, as those of schema 1 do"
        raise make_unreadable_error("a manifest", reference, reason)
    return digest


def config(document: Mapping[str, object]) -> ImageConfig:
    """Return the contents of a config document; a value of a wrong type is treated as absent."""
    own = _get_object(document, "config")
    # The digest vouches for the bytes, not for their form: anybody can publish an image.
    environ = {}
    for text in _keep_texts(own.get("Env")):
        name, _, value = text.partition("=")
        if name:
            environ[name] = value
    labels = _get_object(own, "Labels")
    return ImageConfig(
        platform=f"{document.get('os')}/{document.get('architecture')}",
        environ=environ,
        labels={name: value for name, value in labels.items() if isinstance(value, str)},
        entrypoint=_keep_texts(own.get("Entrypoint")),
        command=_keep_texts(own.get("Cmd")),
        user=_get_text(own, "User"),
        folder=_get_text(own, "WorkingDir"),
        layers=_keep_texts(_get_object(document, "rootfs").get("diff_ids")),
    )


def _get_object(document: Mapping[str, object], key: str) -> dict[str, object]:
    value = document.get(key)
    if isinstance(value, dict):
        return value
    return {}


def _get_text(document: Mapping[str, object], key: str) -> str:
    value = document.get(key)
    if isinstance(value, str):
        return value
    return ""


def _keep_texts(value: object) -> tuple[str, ...]:
    """Return the strings in a list; empty if the value is not a list."""
    if not isinstance(value, list):
        return ()
    return tuple(item for item in value if isinstance(item, str))


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
"""The parts that an image of each route contains itself; the others are installed, or copied from
another image.
"""

_VERSION = re.compile(r"(\d+(?:\.\d+){1,3})(?:[-+].*)?", re.ASCII)
_PARTS = {"cuda": 3}
"""How many numbers of a version are compared: the fourth one of CUDA is that of a build."""


def read_versions(config: ImageConfig) -> dict[str, str]:
    """Return the versions in an image's variables and labels; variables go before labels."""
    versions: dict[str, str] = {}
    for names, values in ((VARIABLES, config.environ), (LABELS, config.labels)):
        for name, subject in names.items():
            match = _VERSION.fullmatch(values.get(name, ""))
            if match is not None:
                numbers = match[1].split(".")[: _PARTS.get(subject)]
                versions.setdefault(subject, ".".join(numbers))
    return versions


def apply_config(candidate: Candidate, config: ImageConfig) -> Candidate:
    """Return the candidate with the versions that its image states, instead of those of the tables."""
    holds = dict(candidate.holds)
    versions = read_versions(config)
    texts = []
    for subject, title in SUBJECTS.items():
        if subject in versions and subject in OWN[candidate.route]:
            holds[subject] = Value(versions[subject])
            texts.append(f"{title} {versions[subject]}")
    if not texts:
        return candidate
    note = f"The image says: {', '.join(texts)}."
    return replace(candidate, holds=holds, notes=(*candidate.notes, note))


class RegistryError(OutsideError):
    """A registry could not be reached, refused, or has something other than what was requested.

    Attributes:
        gone: it does not have this image, or no longer has it.
    """

    def __init__(self, message: str, *, hint: str | None = None, gone: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.gone = gone
