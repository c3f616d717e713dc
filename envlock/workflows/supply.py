"""What a build needs and its lock, its wheelhouse or its engine may not have yet: found in the order of what it costs.

What is there is not asked again. Nothing is written into the lockfile here: a build returns a lock with all of it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envlock.containers.base import Chosen, locked_base, unasked, with_config
from envlock.containers.debian import check_locked, locked_request
from envlock.containers.plan import Base, BuildPlan, Unknown, plan
from envlock.images.base_request import BaseRequest
from envlock.lock.models import Lockfile
from envlock.lock.route import COMPLETE
from envlock.packages import proven
from envlock.runtime.errors import EnvironmentMismatch, FactError, OutsideError, UsageError
from envlock.runtime.report import count
from envlock.workflows.container import added, requested
from envlock.workflows.interpreter import find_environment
from envlock.workflows.pin import pin, resolved
from envlock.workflows.progress import SILENT, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.containers.engines.engine import Engine

WHEELHOUSE = Path("wheelhouse")
"""Where `envlock vendor` puts wheels unless told: a folder of this name is used, and filled, where there is one."""


@dataclass(frozen=True)
class Wanted:
    """The image that is wanted: the arguments of `build` that decide what is in it."""

    base: str = "auto"
    platform: str | None = None
    mirrors: Sequence[str] = ()
    accept: str | None = None
    user: str | None = None
    deterministic: bool = False


@dataclass(frozen=True)
class Sources:
    """Where that which is missing may come from.

    Attributes:
        wheelhouse: the folder that is filled; None for `./wheelhouse` where it exists, else one in the user's cache.
        python: the interpreter of the locked environment, which proves wheels; found as by all commands when None.
        indexes: package indexes to ask; those of pip's and uv's settings when empty.
        offline: use no network.
    """

    wheelhouse: Path | None = None
    python: Path | None = None
    indexes: Sequence[str] = ()
    offline: bool = False

    @property
    def folder(self) -> Path:
        """The wheelhouse."""
        from envlock.packages.cache import folder

        return self._own or folder(os.environ, Path.home()) / "wheelhouse"

    @property
    def is_own(self) -> bool:
        """Whether it is the user's: what is in it then says what is installed over a base that has packages."""
        return self._own is not None

    @property
    def _own(self) -> Path | None:
        return self.wheelhouse or (WHEELHOUSE if WHEELHOUSE.is_dir() else None)


@dataclass(frozen=True)
class Supplied:
    """A build with nothing missing: the lock with all that was found, the base, and what the image will consist of."""

    lock: Lockfile
    chosen: Chosen
    plan: BuildPlan


def supply(
    lock: Lockfile,
    wanted: Wanted,
    sources: Sources,
    engine: Engine | None,
    *,
    network: str = "none",
    again: bool = False,
    progress: Progress = SILENT,
) -> Supplied:
    """Return what a build needs, with everything at hand in the wheelhouse.

    Args:
        lock: what the image is of.
        wanted: the image.
        sources: where that which is missing may come from.
        engine: builds it; None where only its context is written.
        network: of the build; apt uses this machine's where it is `host`.
        again: the same image as before is wanted.
        progress: shows what is going on.

    Raises:
        EnvironmentMismatch: wheels are still to be proven, and the environment here is not the locked one.
        ImageMismatch: no base image can be the locked environment, or the tag of a release names another image.
        LockfileError: something in the lock must not enter an image.
        OutsideError: a registry, an index, a wheel or the engine failed.
        UsageError: something is missing and may not be had, or cannot be.
    """
    extra = added(lock, sources.folder, wanted.user, again=again)
    if sources.offline:
        chosen = _offline(lock, wanted, sources, engine)
    else:
        lock, chosen = _based(lock, wanted, engine, network, progress, again=again)
    names = _beyond(lock, chosen.base, sources, engine, progress, again=again)
    if missing := sorted(set(names) & set(proven.unasked(lock))):
        if sources.offline:
            raise _forbidden([f"{_wheels_of(missing)}: run `envlock hash`"])
        lock = _prove(lock, missing, sources, progress)
    at_hand = _fill(lock, chosen.base, names, sources, progress)
    made = plan(lock, chosen.base, at_hand, deterministic=wanted.deterministic, added=extra)
    _fetch_archives(made, sources.folder)
    return Supplied(lock, chosen, made)


def not_found(lock: Lockfile, base: Base) -> tuple[Base, Unknown]:
    """Return a base without Debian packages that are not those of the project, and what a build has still to find.

    Raises:
        UsageError: the project asks for what is no package, or for an archive that is none.
    """
    wheels = () if base.route in COMPLETE else tuple(proven.unasked(lock))
    asked = requested(lock)
    if locked_request(base.apt) == asked:
        return base, Unknown(wheels)
    return replace(base, apt=None), Unknown(wheels, asked.packages)


def _based(
    lock: Lockfile,
    wanted: Wanted,
    engine: Engine | None,
    network: str,
    progress: Progress,
    *,
    again: bool,
) -> tuple[Lockfile, Chosen]:
    """Return the base by what its registry says now, and the lock with the Debian packages for it."""
    request = BaseRequest.parse(wanted.base, wanted.platform, wanted.mirrors, wanted.accept)
    chosen = resolved(lock, request)
    asked_for = requested(lock)
    if again or locked_request(chosen.base.apt) == asked_for:
        return lock, chosen
    if engine is None:
        check_locked(chosen.base, asked_for)  # apt is asked inside the base
        return lock, chosen
    progress.say("locking the Debian packages of `apt`")
    found = pin(
        lock,
        base=wanted.base,
        platform=wanted.platform,
        mirrors=wanted.mirrors,
        accept=wanted.accept,
        engine=engine.name,
        network=network,
        progress=progress,
    ).lock
    return found, resolved(found, request)


def _beyond(
    lock: Lockfile,
    base: Base,
    sources: Sources,
    engine: Engine | None,
    progress: Progress,
    *,
    again: bool,
) -> list[str]:
    """Return the locked packages whose wheels a build has to have: all, or those that a complete base lacks."""
    facts = lock.facts.packages or {}
    if base.route not in COMPLETE:
        return sorted({*facts, *(lock.identity.packages if lock.identity is not None else ())})
    if sources.is_own and lock.identity is not None:
        return []  # what the user has put there says what is installed
    if again and lock.image is not None:
        return sorted(lock.image.wheels or ())
    if engine is None:
        return []
    from envlock.containers.inside import look_inside
    from envlock.packages.closure import is_held

    try:
        found = (
            look_inside(engine, base.reference, say=progress.line).snapshot.facts.get("packages")
            or {}
        )
    except FactError as error:
        progress.say(f"warning: {error.message}; only the base's own packages are in the image")
        return []
    return sorted(
        name
        for name, fact in facts.items()
        if (found.get(name) or {}).get("version") != fact.version and is_held(name)
    )


def _prove(
    lock: Lockfile, missing: Sequence[str], sources: Sources, progress: Progress
) -> Lockfile:
    """Return the lock with the wheel of every package, or the reason why none is known."""
    from envlock.workflows.hash import hash_packages, summary

    python = sources.python
    if python is None:
        found = find_environment(os.environ, Path.cwd())
        python = found.python
        if found.origin:
            progress.say(f"environment: {found.shown} ({found.origin})")
    progress.say(f"proving the wheels of {count(len(missing), 'package')}")
    try:
        new = hash_packages(lock, python=python, indexes=sources.indexes, progress=progress)
    except EnvironmentMismatch as error:
        raise EnvironmentMismatch(
            error.message,
            error.report,
            hint="wheels are proven in the locked environment: activate it, name its interpreter with `--python`, or "
            "run `envlock hash` where it is",
        ) from None
    for line in summary(new):
        progress.say(line)
    return new


def _fill(
    lock: Lockfile, base: Base, names: Sequence[str], sources: Sources, progress: Progress
) -> Collection[str]:
    """Return the names of the wheels at hand, after those that are to be installed were put into the wheelhouse."""
    from envlock.containers.payload import wheels_in
    from envlock.workflows.vendor import vendor

    at_hand = wheels_in(sources.folder)
    if lock.identity is None or (base.route in COMPLETE and sources.is_own and not names):
        return at_hand
    meant = [each for each in plan(lock, base, None).wheels if each.name in names]
    files = [each.file for each in meant]
    if meant:
        if set(files) - set(at_hand):
            progress.say(f"filling {sources.folder}: {count(len(meant), 'wheel')}")
        only = [each.name for each in meant]
        done = vendor(
            lock,
            sources.folder,
            indexes=sources.indexes,
            only=only,
            offline=sources.offline,
            progress=progress,
        )
        if done.missing:
            raise OutsideError(
                f"{len(done.missing)} of {count(len(meant), 'wheel')} could not be had:",
                lines=[f"  {each}" for each in done.missing],
                hint="run it again: finished files are kept, and partial downloads are resumed",
            )
    return files


def _fetch_archives(made: BuildPlan, folder: Path) -> None:
    """Put the Python and the Debian packages of a plan into the wheelhouse, unless they are there."""
    from envlock.packages.archives import fetch_debian, fetch_python

    archive = made.base.python_archive
    if archive is not None:
        fetch_python(archive.file, archive.sha256, folder, os.environ)
    for package in made.debian:
        fetch_debian(package, folder)


# --- without a network


def _offline(lock: Lockfile, wanted: Wanted, sources: Sources, engine: Engine | None) -> Chosen:
    """Return the base as it is known here.

    Raises:
        UsageError: something is missing; the message names all of it, and how to get it.
    """
    base, warnings = unasked(lock, BaseRequest.parse(wanted.base, wanted.platform, (), None))
    kept = locked_base(lock, wanted.base)
    missing = list(_absent(lock, base, sources, is_pinned=kept is not None))
    if kept is not None and engine is not None:
        missing += _unpulled(base, engine)
    if not missing and engine is not None and base.entrypoint is None:
        config = engine.inspect(base.reference).get("Config") or {}
        environ = dict(each.partition("=")[::2] for each in config.get("Env") or ())
        base = with_config(base, config.get("Entrypoint") or (), config.get("Cmd") or (), environ)
    if base.entrypoint is None and not missing:
        missing.append(
            f"the configuration of {base.reference}: run `envlock build` once, which records it"
        )
    if missing or kept is None:
        raise _forbidden(missing)
    return Chosen(base, kept, warnings)


def _forbidden(missing: Sequence[str]) -> UsageError:
    return UsageError(
        f"`--offline` forbids the network, and {'this is' if len(missing) == 1 else 'these are'} missing:",
        lines=[f"  {each}" for each in missing],
        hint="run the commands above, or `envlock build` once without `--offline`",
    )


def _absent(lock: Lockfile, base: Base, sources: Sources, *, is_pinned: bool) -> Iterator[str]:
    """Yield what lock and wheelhouse do not have, and how to get it."""
    folder = sources.folder
    if not is_pinned:
        yield f"the digest of the base image {base.reference.partition('@')[0]}: run `envlock build --pin`"
    if locked_request(base.apt) != requested(lock):
        yield "the Debian packages of `apt` in [tool.envlock.container]: run `envlock build --pin`"
    if base.route not in COMPLETE:
        unknown = proven.unasked(lock)
        if unknown:
            yield f"{_wheels_of(unknown)}: run `envlock hash`"
        yield from _unkept(lock, base, folder)
    archive = base.python_archive
    files = [archive.file] if archive is not None else []
    for file in [
        *files,
        *(each.file for each in (base.apt.packages if base.apt is not None else ())),
    ]:
        if not (folder / file).is_file():
            yield f"{folder / file}: run `envlock build --output FOLDER`"


def _unkept(lock: Lockfile, base: Base, folder: Path) -> Iterator[str]:
    """Yield the wheels that are neither in the wheelhouse nor in the cache."""
    from envlock.packages import cache

    kept = cache.folder(os.environ, Path.home())
    away = [
        each.file
        for each in plan(lock, base, None).wheels
        if not any(
            place.is_file()
            for place in (folder / each.file, cache.wheel(kept, each.sha256, each.file))
        )
    ]
    if away:
        yield f"{_named(away)} in {folder}: run `envlock vendor -o {folder}`"


def _unpulled(base: Base, engine: Engine) -> Iterator[str]:
    """Yield the images that the engine does not have."""
    from envlock.containers.engines.failures import EngineError

    for image in filter(None, (base.reference, base.python_from)):
        with contextlib.suppress(EngineError):
            engine.inspect(image)
            continue
        yield f"the image {image} in the engine: pull it"


def _wheels_of(names: Sequence[str]) -> str:
    return f"the proven wheels of {_named(names)}"


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
