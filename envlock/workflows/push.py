"""Push an image that was verified: into its registry, with its bill of materials and provenance beside it."""

from __future__ import annotations

from envlock.containers.engines.engine import Engine
from envlock.images.reference import Reference, parse
from envlock.lock.models import Image, Lockfile
from envlock.packages.licenses import License
from envlock.runtime.errors import OutsideError, UsageError
from envlock.workflows.progress import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SBOM = "application/vnd.cyclonedx+json"
"""As registered: https://www.iana.org/assignments/media-types/application/vnd.cyclonedx+json."""
IN_TOTO = "application/vnd.in-toto+json"
"""What BuildKit and cosign call it, with the annotation: https://github.com/in-toto/attestation/tree/main/spec/v1."""
PREDICATE = "in-toto.io/predicate-type"


def target(tag: str | None) -> Reference:
    """Return where an image of this name is pushed to.

    Raises:
        UsageError: it has no name, or one without a tag.
    """
    if tag is None:
        raise UsageError("`--push` needs a name", hint="add `--tag registry/name:tag`")
    found = parse(tag)
    return found if found.tag is not None else Reference(found.registry, found.repository, "latest")


def check_login(tag: str | None) -> None:
    """Make sure that the registry of a tag lets us push, before anything is built.

    Raises:
        OutsideError: it cannot be asked, or does not.
        UsageError: the tag names none.
    """
    from envlock.images.referrers import check_writable
    from envlock.images.registry import Registry
    from envlock.web.client import Client

    check_writable(Registry(Client()), target(tag))


def push_image(
    lock: Lockfile, tag: str, engine: Engine, licenses: Mapping[str, License], progress: Progress
) -> tuple[Lockfile, str]:
    """Push the image that a lock has, by its name; return the lock with its reference, and that.

    Raises:
        OutsideError: the engine or the registry failed.
    """
    from envlock.forms import cyclonedx, slsa
    from envlock.images.referrers import Document, attach
    from envlock.images.registry import Registry
    from envlock.web.client import Client

    place = target(tag)
    digest = engine.push(tag, progress.line)
    if digest is None or lock.image is None:
        raise OutsideError(
            f"{engine.name} did not say which digest {tag} has in its registry",
            hint="push it with the engine's own command, or use another engine",
        )
    pushed = Reference(place.registry, place.repository, digest=digest)
    image = Image.model_validate(
        {**lock.image.model_dump(exclude_unset=True), "reference": str(pushed)}
    )
    named = lock.model_copy(update={"image": image})
    bill = Document(SBOM, cyclonedx.render(named, licenses).encode())
    provenance = Document(IN_TOTO, slsa.render(named, {}).encode(), {PREDICATE: slsa.PREDICATE})
    attach(Registry(Client()), pushed, [bill, provenance])
    return named, str(pushed)
