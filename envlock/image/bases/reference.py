"""Names of images: `registry/repository:tag@sha256:digest`, mirrors and platforms. Pure.

The grammar is that of the OCI distribution specification, with Docker's defaults: `python:3.12` is
`docker.io/library/python:3.12`. Only digests with SHA-256 are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from envlock.runtime.errors import UsageError

DOCKER_HUB = "docker.io"
LONGEST = 255
"""The most characters of registry and repository together."""

_HOST_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_REGISTRY = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]{{1,5}})?"
_PATH_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = rf"{_PATH_PART}(?:/{_PATH_PART})*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"sha256:[0-9a-f]{64}"
# The registry is optional and taken last (`??`), so only where the rest cannot be a repository, as with
# a port or a capital; `_apply_defaults` decides about the others.
_REFERENCE = re.compile(
    rf"(?:(?P<registry>{_REGISTRY})/)??(?P<repository>{_REPOSITORY})"
    rf"(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?",
    re.ASCII,
)
_PREFIX = re.compile(rf"(?P<registry>{_REGISTRY})(?:/(?P<path>{_REPOSITORY}))?", re.ASCII)

MACHINES = {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}
"""The platform of an image for a machine, by the name that `uname -m` reports."""


def get_machine(platform: str) -> str:
    """Return the machine of one of these platforms, as `uname -m` reports it."""
    for machine, known in MACHINES.items():
        if known == platform:
            return machine
    raise KeyError(platform)


_SPELLINGS = {"amd64": "linux/amd64", "arm64": "linux/arm64", "linux/arm64/v8": "linux/arm64"}


@dataclass(frozen=True)
class Reference:
    """An image in a registry; `str()` returns its full name, which `parse` accepts."""

    registry: str
    repository: str
    tag: str | None = None
    digest: str | None = None

    def __str__(self) -> str:
        text = self.name
        if self.tag is not None:
            text += f":{self.tag}"
        if self.digest is not None:
            text += f"@{self.digest}"
        return text

    @property
    def name(self) -> str:
        """Registry and repository."""
        return f"{self.registry}/{self.repository}"

    def at(self, digest: str) -> Reference:
        """Return the same image with a digest."""
        return replace(self, digest=digest)


_LOCAL = ("localhost", "envlock-base")
"""Registry and repository of images that only an engine has; the tag is the ID of the image."""


def name_local_image(image_id: str) -> Reference:
    """Return the name by which a builder finds an image of its own engine, from the image's ID.

    No builder takes an ID in FROM everywhere, and a tag that somebody gave could move meanwhile.
    """
    digest = image_id.removeprefix("sha256:")
    return Reference(*_LOCAL, tag=digest, digest=f"sha256:{digest}")


def is_local(reference: Reference) -> bool:
    """Return whether an image is one that no registry has, under the name that envlock gave it."""
    return (reference.registry, reference.repository) == _LOCAL


@dataclass(frozen=True)
class Mirror:
    """A source and its replacement: a registry, or a registry and the beginning of its
    repositories.
    """

    source: str
    target: str


def parse(text: str) -> Reference:
    """Return the image that a name stands for.

    Raises:
        UsageError: it is not the name of an image.
    """
    # The length is limited before the match: the time of a regular expression grows with the text.
    if len(text) > 2 * LONGEST:
        raise _make_name_error(text)
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise _make_name_error(text)
    registry, repository = _apply_defaults(match["registry"], match["repository"])
    reference = Reference(registry, repository, match["tag"], match["digest"])
    if len(reference.name) > LONGEST or _PREFIX.fullmatch(reference.name) is None:
        raise _make_name_error(text)
    return reference


def _apply_defaults(registry: str | None, repository: str) -> tuple[str, str]:
    """Return registry and repository according to Docker's rule.

    The first part is a registry when it has a dot, a colon or a capital, or is `localhost`.
    """
    first, slash, rest = repository.partition("/")
    is_host = "." in first or first == "localhost"
    if registry is None and slash and is_host:
        registry, repository = first, rest
    if registry in (None, "index.docker.io", DOCKER_HUB):
        if "/" not in repository:
            repository = f"library/{repository}"
        return DOCKER_HUB, repository
    return registry, repository


def _make_name_error(text: str) -> UsageError:
    return UsageError(
        f"invalid image name `{text[:120]}`",
        hint="use registry/name:tag or registry/name:tag@sha256:digest, "
        "like nvcr.io/nvidia/tensorflow:25.02-tf2-py3",
    )


def parse_mirror(text: str) -> Mirror:
    """Return the mirror that a text such as `nvcr.io=harbor.example/nvcr` stands for.

    Raises:
        UsageError: it is not such a pair.
    """
    source, _, target = text.partition("=")
    if not _is_prefix(source) or not _is_prefix(target):
        raise UsageError(
            f"invalid mirror `{text[:120]}`",
            hint="use REGISTRY=MIRROR, such as nvcr.io=harbor.example/nvcr",
        )
    return Mirror(source, target)


def _is_prefix(text: str) -> bool:
    """Return whether a text is a registry, or a registry and the beginning of its repositories."""
    return len(text) <= LONGEST and _PREFIX.fullmatch(text) is not None


def apply_mirrors(reference: Reference, mirrors: Iterable[Mirror]) -> Reference:
    """Return the image in its mirror, the one that replaces most of its name; unchanged without a
    mirror.

    Raises:
        UsageError: its name in the mirror is not valid.
    """
    fitting = [mirror for mirror in mirrors if f"{reference.name}/".startswith(f"{mirror.source}/")]
    if not fitting:
        return reference
    best = max(fitting, key=lambda mirror: len(mirror.source))
    name = best.target + reference.name.removeprefix(best.source)
    match = _PREFIX.fullmatch(name)
    if match is None or match["path"] is None or len(name) > LONGEST:
        raise UsageError(
            f"the mirror {best.source}={best.target} gives no valid image name for "
            f"{reference.name}",
            hint="name a registry and a repository in it",
        )
    return replace(reference, registry=match["registry"], repository=match["path"])


def parse_platform(text: str) -> str:
    """Return `linux/amd64` or `linux/arm64` for any of their spellings.

    Raises:
        UsageError: it is another platform.
    """
    platform = _SPELLINGS.get(text, MACHINES.get(text, text))
    if platform not in MACHINES.values():
        raise UsageError(
            f"unknown platform `{text[:40]}` for TensorFlow images",
            hint="choose from: linux/amd64, linux/arm64",
        )
    return platform
