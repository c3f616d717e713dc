"""Push a verified image."""

from __future__ import annotations

from envlock.containers.engines.engine import Engine
from envlock.images.reference import Reference, parse
from envlock.images.registry import open_registry
from envlock.lock.models import Image, Lockfile
from envlock.runtime.errors import OutsideError, UsageError
from envlock.workflows.progress import Progress


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
    open_registry().check_writable(parse_target(tag))


def push_image(
    lock: Lockfile, tag: str, engine: Engine, progress: Progress
) -> tuple[Lockfile, str]:
    """Push the image of a lockfile; return the lockfile with the image's reference, and the
    reference.

    Raises:
        OutsideError: the engine failed.
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
    return lock.model_copy(update={"image": image}), str(pushed)
