"""Record the base image of a lockfile by digest, and the Debian packages to install on it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from envlock.image.base import Chosen, get_locked_base, resolve_online
from envlock.image.bases.base_request import AUTO, BaseRequest
from envlock.image.bases.needs import BaseNeeds, collect_lock_needs
from envlock.image.bases.reference import is_local, parse
from envlock.image.container_settings import find_engine, read_apt_request
from envlock.image.debian import AptRequest, resolve
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
    wanted = read_apt_request(model.base_image)
    needs = collect_lock_needs(model, request.platform)
    chosen = resolve_base(needs, model.base_image, request, progress, engine)
    chosen = pin_packages(chosen, wanted, engine, network, progress)
    pinned = model.model_copy(update={"base_image": chosen.kept})
    return Pin(pinned, chosen.base.reference, chosen.warnings)


def pin_packages(
    chosen: Chosen, wanted: AptRequest, engine: str, network: str, progress: Progress
) -> Chosen:
    """Return the base with the Debian packages of a request, as apt in it resolves them now; raises
    the errors of `pin`.
    """
    kept = chosen.kept
    if wanted.packages:
        packages = resolve(
            find_engine(engine),
            chosen.base.reference,
            wanted,
            host=network == "host",
            say=progress.line,
        )
        kept = kept.model_copy(update={"apt": packages})
    elif kept.apt is not None:
        # Without the key: a copy with None would write `"apt": null` into the lockfile.
        kept = BaseImage.model_validate(kept.model_dump(exclude={"apt"}))
    return replace(chosen, base=replace(chosen.base, apt=kept.apt), kept=kept)


def resolve_base(
    needs: BaseNeeds,
    recorded: BaseImage | None,
    request: BaseRequest,
    progress: Progress,
    engine: str,
) -> Chosen:
    """Return the base image with the digest that its registry has now, or with its ID if only the
    engine has it; raises the errors of `pin`.

    `recorded` is the base in the lockfile, and `needs` are those of the lockfile.
    """
    tables = None
    locked = get_locked_base(recorded, request.choice)
    if locked is None:
        tables = refresh_tables(needs, progress)
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
    return resolve_online(needs, recorded, finder, request, tables)
