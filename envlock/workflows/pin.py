"""Record the base image of a lock, by digest, and the Debian packages for it, without building anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envlock.containers.base import Chosen, asked_for, locked_base
from envlock.containers.debian import resolve
from envlock.images.reference import parse_digest, parse_mirror, parse_platform
from envlock.images.wanted import wanted_by
from envlock.lock.models import BaseImage, Lockfile
from envlock.workflows.container import requested
from envlock.workflows.images import current, registry
from envlock.workflows.locks import lock_of
from envlock.workflows.progress import SILENT, Progress

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
    engine: str = "auto",
    network: str = "none",
    progress: Progress = SILENT,
) -> Pin:
    """Return a lock with the digest of its base image; see `build` for the arguments.

    Where the project asks for Debian packages, the base is pulled, and apt in it says which these are now; it has the
    engine's own network, or this machine's where `network` is `host`.

    Raises:
        ImageMismatch: no base image can be the locked environment, or the tag of a release names another image.
        LockfileError: the lock is not valid.
        OutsideError: a registry, the engine or an archive of Debian packages failed.
        UsageError: there is no such base or package, or no image can be the machine of the lock.
    """
    model = lock_of(lock)
    wanted = requested(model)
    chosen = resolved(model, base, platform, mirrors, accept, progress)
    kept = chosen.kept
    if wanted.packages:
        from envlock.containers.engines.find import find  # and with it Docker's SDK

        packages = resolve(
            find(engine), chosen.base.reference, wanted, host=network == "host", say=progress.line
        )
        kept = kept.model_copy(update={"apt": packages})
    elif kept.apt is not None:
        kept = BaseImage.model_validate(kept.model_dump(exclude={"apt"}))
    return Pin(
        model.model_copy(update={"base_image": kept}), chosen.base.reference, chosen.warnings
    )


def resolved(
    lock: Lockfile,
    base: str,
    platform: str | None,
    mirrors: Sequence[str],
    accept: str | None,
    progress: Progress = SILENT,
) -> Chosen:
    """Return the base by what its registry says now; raises as `pin`."""
    places = [parse_mirror(text) for text in mirrors]
    accepted = None if accept is None else parse_digest(accept)
    named = None if platform is None else parse_platform(platform)
    tables = (
        None if locked_base(lock, base) is not None else current(wanted_by(lock, named), progress)
    )
    return asked_for(lock, registry(), base, named, places, accepted, tables)
