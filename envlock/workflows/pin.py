"""Record the base image of a lock, by digest, and the Debian packages for it, without building anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envlock.containers.base import Chosen, asked_for, locked_base
from envlock.containers.debian import resolve
from envlock.images.base_request import BaseRequest
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
    chosen = resolved(model, BaseRequest.parse(base, platform, mirrors, accept), progress)
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


def resolved(lock: Lockfile, request: BaseRequest, progress: Progress = SILENT) -> Chosen:
    """Return the base by what its registry says now; raises as `pin`."""
    tables = None
    if locked_base(lock, request.choice) is None:
        tables = current(wanted_by(lock, request.platform), progress)
    return asked_for(lock, registry(), request, tables)
