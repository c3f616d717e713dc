"""Push a verified image, with its bill of materials and its provenance."""

from __future__ import annotations

from envlock.image.bases.reference import Reference, parse
from envlock.image.bases.referrers import Document, attach, check_writable
from envlock.image.bases.registry import open_registry
from envlock.image.engines.engine import Engine
from envlock.image.forms import cyclonedx, slsa
from envlock.lock.models import Image, Lockfile
from envlock.reports.progress import Progress
from envlock.runtime.errors import OutsideError, UsageError

SBOM = "application/vnd.cyclonedx+json"
"""As registered: https://www.iana.org/assignments/media-types/application/vnd.cyclonedx+json."""
IN_TOTO = "application/vnd.in-toto+json"
"""The media type that BuildKit and cosign use, with the annotation:
https://github.com/in-toto/attestation/tree/main/spec/v1.
"""
PREDICATE = "in-toto.io/predicate-type"


def parse_target(tag: str | None) -> Reference:
    """Return the place in a registry that an image with this tag is pushed to.

    Without a tag it is `latest`, as for the engines.

    Raises:
        UsageError: the image has no name.
    """
    if tag is None:
        raise UsageError("`--push` needs a name", hint="add `--tag registry/name:tag`")
    found = parse(tag)
    if found.tag is None:
        return Reference(found.registry, found.repository, "latest")
    return found


def check_login(tag: str | None) -> None:
    """Check that the registry of a tag lets this user push, before anything is built.

    Raises:
        OutsideError: the registry cannot be reached, or refuses.
        UsageError: the tag names no registry.
    """
    check_writable(open_registry(), parse_target(tag))


def push_image(
    lock: Lockfile, tag: str, engine: Engine, progress: Progress
) -> tuple[Lockfile, str]:
    """Push the image of a lockfile; return the lockfile with the image's reference, and the
    reference.

    Raises:
        OutsideError: the engine or the registry failed.
    """
    target = parse_target(tag)
    digest = engine.push(tag, progress.line)
    if digest is None or lock.image is None:
        raise OutsideError(
            f"{engine.name} did not say which digest {tag} has in its registry",
            hint="push it with the engine's own command, or use another engine",
        )
    pushed = Reference(target.registry, target.repository, digest=digest)
    image = Image.model_validate(
        {**lock.image.model_dump(exclude_unset=True), "reference": str(pushed)}
    )
    named = lock.model_copy(update={"image": image})
    bill = Document(SBOM, cyclonedx.render(named).encode())
    provenance = Document(IN_TOTO, slsa.render(named).encode(), {PREDICATE: slsa.PREDICATE})
    attach(open_registry(), pushed, [bill, provenance])
    return named, str(pushed)
