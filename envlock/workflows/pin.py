"""Record the base image of a lockfile by digest, and the Debian packages to install on it."""

from __future__ import annotations

from dataclasses import dataclass

from envlock.containers.base import Chosen, get_locked_base, resolve_online
from envlock.containers.debian import resolve
from envlock.images.base_request import BaseRequest
from envlock.images.needs import collect_lock_needs
from envlock.lock.models import BaseImage, Lockfile
from envlock.workflows.container_settings import find_engine, read_apt_request
from envlock.workflows.images import get_registry_finder, refresh_tables
from envlock.workflows.locks import load_lock
from envlock.workflows.progress import SILENT, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source


@dataclass(frozen=True)
class Pin:
    """A lockfile with its base image recorded, that image by digest, and warnings."""

    lock: Lockfile
    base: str
    warnings: tuple[str, ...]


ANY_BASE = BaseRequest()


def pin(
    lock: Source | None = None,
    request: BaseRequest = ANY_BASE,
    *,
    engine: str = "auto",
    network: str = "none",
    progress: Progress = SILENT,
) -> Pin:
    """Return a lockfile with the digest of its base image; see `build` for the arguments.

    If the project needs Debian packages, the base is pulled, and apt inside it resolves their
    current versions; it uses the engine's network, or this machine's if `network` is `host`.

    Raises:
        ImageMismatch: no base image can be the locked environment, or the tag of a release names
            another image.
        LockfileError: the lockfile is not valid.
        OutsideError: a registry, the engine or an archive of Debian packages failed.
        UsageError: there is no such base or package, or no image can be the machine of the
            lockfile.
    """
    model = load_lock(lock)
    return pin_base(model, request, engine, network, progress)


def pin_base(
    lock: Lockfile, request: BaseRequest, engine: str, network: str, progress: Progress
) -> Pin:
    """Do what `pin` does, for a request that is already parsed."""
    wanted = read_apt_request(lock)
    chosen = resolve_base(lock, request, progress)
    base_image = chosen.kept
    if wanted.packages:
        packages = resolve(
            find_engine(engine),
            chosen.base.reference,
            wanted,
            host=network == "host",
            say=progress.line,
        )
        base_image = base_image.model_copy(update={"apt": packages})
    elif base_image.apt is not None:
        # Without the key: a copy with None would write `"apt": null` into the lockfile.
        base_image = BaseImage.model_validate(base_image.model_dump(exclude={"apt"}))
    pinned = lock.model_copy(update={"base_image": base_image})
    return Pin(pinned, chosen.base.reference, chosen.warnings)


def resolve_base(lock: Lockfile, request: BaseRequest, progress: Progress = SILENT) -> Chosen:
    """Return the base image with the digest that its registry has now; raises the errors of `pin`."""
    tables = None
    if get_locked_base(lock, request.choice) is None:
        tables = refresh_tables(collect_lock_needs(lock, request.platform), progress)
    return resolve_online(lock, get_registry_finder(), request, tables)
