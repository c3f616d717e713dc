"""Record the base image of a lockfile by digest, and the Debian packages to install on it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from envlock.image.base import Chosen, get_locked_base, resolve_online
from envlock.image.bases.base_request import AUTO, BaseRequest
from envlock.image.bases.needs import collect_lock_needs
from envlock.image.bases.reference import is_local, parse
from envlock.image.container_settings import find_engine, read_apt_request
from envlock.image.debian import resolve
from envlock.image.images import get_registry_finder, refresh_tables
from envlock.image.local_base import find_local_base, make_finder
from envlock.lock.locks import load_lock
from envlock.lock.models import BaseImage, Lockfile
from envlock.lock.route import ROUTES
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.errors import OutsideError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source


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
    chosen = resolve_base(lock, request, progress, engine)
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


def resolve_base(
    lock: Lockfile, request: BaseRequest, progress: Progress = SILENT, engine: str = AUTO
) -> Chosen:
    """Return the base image with the digest that its registry has now, or with its ID if only the
    engine has it; raises the errors of `pin`.
    """
    tables = None
    locked = get_locked_base(lock, request.choice)
    if locked is None:
        tables = refresh_tables(collect_lock_needs(lock, request.platform), progress)
    finder = get_registry_finder()
    if locked is not None:
        if is_local(parse(locked.name)):
            finder = make_finder(find_engine(engine), finder)
    elif request.choice not in (AUTO, *ROUTES):
        with contextlib.suppress(OutsideError):
            builder = find_engine(engine)
            local = find_local_base(builder, request.choice)
            if local is not None:
                progress.say(f"no registry has {request.choice}: it is taken from {builder.name}")
                request = replace(request, choice=str(local))
                finder = make_finder(builder, finder)
    return resolve_online(lock, finder, request, tables)
