"""Record the base image of a lock, by digest, without building anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envlock.containers.base import Chosen, asked_for
from envlock.images.reference import parse_digest, parse_mirror, parse_platform
from envlock.lock.models import Lockfile
from envlock.workflows.images import registry
from envlock.workflows.locks import lock_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source


@dataclass(frozen=True)
class Pin:
    """A lock with its base image recorded, that image by digest, and what is worth a warning."""

    lock: Lockfile
    base: str
    warnings: tuple[str, ...]


def pin(
    lock: Source | None = None,
    *,
    base: str = "auto",
    platform: str | None = None,
    mirrors: Sequence[str] = (),
    accept: str | None = None,
) -> Pin:
    """Return a lock with the digest of its base image; see `build` for the arguments.

    Raises:
        ImageMismatch: no base image can be the locked environment, or the tag of a release names another image.
        LockfileError: the lock is not valid.
        OutsideError: a registry failed.
        UsageError: there is no such base, or no image can be the machine of the lock.
    """
    model = lock_of(lock)
    chosen = resolved(model, base, platform, mirrors, accept)
    return Pin(model.model_copy(update={"base_image": chosen.kept}), chosen.base.reference, chosen.warnings)


def resolved(lock: Lockfile, base: str, platform: str | None, mirrors: Sequence[str], accept: str | None) -> Chosen:
    """Return the base by what its registry says now; raises as `pin`."""
    places = [parse_mirror(text) for text in mirrors]
    accepted = None if accept is None else parse_digest(accept)
    named = None if platform is None else parse_platform(platform)
    return asked_for(lock, registry(), base, named, places, accepted)
