"""Build a container that is the locked environment: plan it, write it, build it, build it again.

What a refusal does not need is imported where it is used: Docker's SDK, HTTP and the templates take half a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from envlock.containers.base import unasked
from envlock.containers.engines.engine import check_name
from envlock.containers.plan import plan
from envlock.images.base_request import BaseRequest
from envlock.lock.models import Image, Lockfile
from envlock.runtime.errors import UsageError
from envlock.workflows.container import added
from envlock.workflows.locks import lock_of, name_of
from envlock.workflows.pin import resolved
from envlock.workflows.progress import SILENT, Progress
from envlock.workflows.supply import Sources, Supplied, Wanted, not_found, supply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.containers.engines.engine import Engine
    from envlock.containers.verification import Verdict
    from envlock.workflows.locks import Source


@dataclass(frozen=True)
class Rendered:
    """A Dockerfile, and what is worth a warning."""

    text: str
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Context:
    """A folder that builds without envlock: how many wheels are in it, and what is worth a warning.

    `lock` is the lock with the base and the wheels that were found for it.
    """

    folder: Path
    wheels: int
    warnings: tuple[str, ...]
    lock: Lockfile


@dataclass(frozen=True)
class BuiltImage:
    """An image.

    Attributes:
        name: its tag, or its ID without one.
        verdict: whether it is the locked environment; None where its Python is too old to tell.
        lock: the lock with base and image recorded, and the wheels and Debian packages that were found for it.
        warnings: sentences for the user.
        pushed: its name in a registry, by digest; None where it was not pushed.
    """

    name: str
    verdict: Verdict | None
    lock: Lockfile
    warnings: tuple[str, ...]
    pushed: str | None = None


@dataclass(frozen=True)
class Rebuilt:
    """An image that was built again: what it is, and how it differs from the one that the lock has."""

    old: Image
    new: Image
    differences: tuple[str, ...]


def dockerfile(
    lock: Source | None = None,
    *,
    base: str = "auto",
    platform: str | None = None,
    mirrors: Sequence[str] = (),
    accept: str | None = None,
    resolve: bool = False,
    wheelhouse: Path | None = None,
    deterministic: bool = False,
    user: str | None = None,
) -> Rendered:
    """Return the Dockerfile of a lock; nothing is written, and only `resolve` asks a registry.

    Where the digest of the base is unknown offline, its tag stands there. For wheels and Debian packages that only a
    build will find, a comment and the name of a file that never exists stand there, so that it cannot be built.

    Raises:
        ImageMismatch: no base image can be the locked environment under the lock's policy.
        LockfileError: the lock is not valid, or something in it must not enter an image.
        OutsideError: a registry failed.
        UsageError: there is no such base, or no image can be the machine of the lock.
    """
    from envlock.containers.render import dockerfile as render

    model = lock_of(lock)
    if resolve:
        chosen = resolved(model, BaseRequest.parse(base, platform, mirrors, accept))
        image, warnings = chosen.base, chosen.warnings
    else:
        image, warnings = unasked(model, BaseRequest.parse(base, platform, (), None))
    image, unknown = not_found(model, image)
    extra = added(model, Sources(wheelhouse).folder, user)
    made = plan(model, image, None, deterministic=deterministic, added=extra, unknown=unknown)
    return Rendered(render(made), warnings)


def context(
    lock: Source | None,
    folder: Path,
    *,
    base: str = "auto",
    platform: str | None = None,
    mirrors: Sequence[str] = (),
    accept: str | None = None,
    wheelhouse: Path | None = None,
    deterministic: bool = False,
    user: str | None = None,
    python: Path | None = None,
    indexes: Sequence[str] = (),
    offline: bool = False,
    progress: Progress = SILENT,
) -> Context:
    """Write the Dockerfile and its context into a folder; nothing is built. See `build` for the arguments.

    Raises:
        EnvironmentMismatch: wheels are still to be proven, and the environment here is not the locked one.
        LockfileError: the lock is not valid, or something in it must not enter an image.
        ImageMismatch: no base image can be the locked environment, or the tag of a release names another image.
        OutsideError: a registry, an index or a wheel failed.
        UsageError: something is missing that may not be had, or the folder cannot be used.
    """
    from envlock.containers.payload import write_context

    wanted = Wanted(base, platform, mirrors, accept, user, deterministic)
    sources = Sources(wheelhouse, python, indexes, offline)
    found = supply(lock_of(lock), wanted, sources, None, progress=progress)
    write_context(found.plan, sources.folder, folder)
    told = (*found.chosen.warnings, *found.plan.notes)
    kept = found.lock.model_copy(update={"base_image": found.chosen.kept})
    return Context(folder, len(found.plan.wheels), told, kept)


def build(
    lock: Source | None = None,
    *,
    tag: str | None = None,
    base: str = "auto",
    platform: str | None = None,
    mirrors: Sequence[str] = (),
    accept: str | None = None,
    wheelhouse: Path | None = None,
    deterministic: bool = False,
    user: str | None = None,
    python: Path | None = None,
    indexes: Sequence[str] = (),
    offline: bool = False,
    engine: str = "auto",
    network: str = "none",
    gpus: bool = False,
    no_cache: bool = False,
    push: bool = False,
    progress: Progress = SILENT,
) -> BuiltImage:
    """Build the image of a lock and verify it inside; it gets its tag only when it is the locked environment.

    Args:
        lock: the lockfile; the one that `assert_locked()` would use when not given. What it lacks is found first.
        tag: a name for the image.
        base: `auto`, a route (`ngc`, `cuda`, `wheels`), or the name of an image.
        platform: `linux/amd64` or `linux/arm64`; the lock's own when not given.
        mirrors: where to take images from instead, such as `nvcr.io=harbor.example/nvcr`.
        accept: the digest of a release's tag that has moved.
        wheelhouse: the folder that is filled with wheels; `./wheelhouse` where it exists, else one in the user's cache.
        deterministic: also set the variables that this TensorFlow needs for determinism.
        user: whom the program runs as in it, in numbers, as `1000:1000`; the settings' user when not given.
        python: the interpreter of the locked environment, in which wheels are proven; the active or the project's own.
        indexes, offline: package indexes to ask, those of pip's and uv's settings when not given; use no network.
        engine: `auto`, or an engine of `envlock.containers.engines.ENGINES`.
        network: during the build: `none`, `host` or `default`.
        gpus, no_cache: verify inside with this machine's GPUs; build every step anew.
        push: push it to the registry of its tag when it is verified, with its bill of materials and provenance.
        progress: shows what is going on.

    Raises:
        EnvironmentMismatch, ImageMismatch, LockfileError, OutsideError, UsageError: as `context`, or an engine failed.
    """
    model, builder = _ready(lock, base, platform, engine, tag, push=push)
    sources = Sources(wheelhouse, python, indexes, offline)
    wanted = Wanted(base, platform, mirrors, accept, user, deterministic)
    found = supply(model, wanted, sources, builder, network=network, progress=progress)
    how = {
        "tag": tag,
        "network": network,
        "gpus": gpus,
        "no_cache": no_cache,
        "wheelhouse": sources.folder,
    }
    return _pushed(
        _make(found, builder, progress, how),
        tag if push else None,
        builder,
        sources.folder,
        progress,
    )


def _make(
    found: Supplied, builder: Engine, progress: Progress, how: Mapping[str, Any]
) -> BuiltImage:
    """Return the image of a plan, built and verified inside."""
    from envlock.containers.build import Wish
    from envlock.containers.build import build as make

    wish = Wish(**how)

    for text in (told := (*found.chosen.warnings, *found.plan.notes)):
        progress.say(f"warning: {text}")
    progress.say(
        f"building on {found.chosen.base.reference.partition('@')[0]}, and verifying inside"
    )
    out = make(found.plan, found.chosen, builder, wish, progress.line)
    kept = found.lock.model_copy(update={"base_image": found.chosen.kept, "image": out.section})
    return BuiltImage(wish.tag or out.built.image_id, out.verdict, kept, told)


def _pushed(
    built: BuiltImage, tag: str | None, builder: Engine, wheelhouse: Path, progress: Progress
) -> BuiltImage:
    """Return the image, pushed by its tag, if there is one and it is the locked environment."""
    from envlock.workflows.export import licenses
    from envlock.workflows.push import push_image

    if tag is None or (built.verdict is not None and not built.verdict.image.match):
        return built
    known = (
        licenses(built.lock, wheelhouse) if wheelhouse.is_dir() else {}
    )  # with nothing to install, there is none
    kept, pushed = push_image(built.lock, tag, builder, known, progress)
    return replace(built, lock=kept, pushed=pushed)


def rebuild(
    lock: Source | None = None,
    *,
    base: str = "auto",
    platform: str | None = None,
    mirrors: Sequence[str] = (),
    accept: str | None = None,
    wheelhouse: Path | None = None,
    deterministic: bool = False,
    user: str | None = None,
    indexes: Sequence[str] = (),
    offline: bool = False,
    engine: str = "auto",
    network: str = "none",
    progress: Progress = SILENT,
) -> Rebuilt:
    """Build the image of a lock again, from the first step, and return how it differs; see `build`.

    Raises:
        UsageError: the lock has no image, or as `build`.
        LockfileError, OutsideError: as `build`.
    """
    from envlock.containers.build import Wish, check
    from envlock.containers.engines.find import find

    model = lock_of(lock)
    old = model.image
    if old is None:
        hint = "run `envlock build` to build and record one"
        raise UsageError(f"{name_of(lock)} has no recorded image", hint=hint)
    wanted = Wanted(base, platform, mirrors, accept, user, deterministic or old.deterministic)
    sources, builder = Sources(wheelhouse, None, indexes, offline), find(engine)
    found = supply(model, wanted, sources, builder, network=network, again=True, progress=progress)
    wish = Wish(None, network, no_cache=True, wheelhouse=sources.folder)
    new, lines = check(found.plan, found.chosen, builder, wish, progress.line, old)
    return Rebuilt(old, new, tuple(lines))


def _ready(
    lock: Source | None,
    base: str,
    platform: str | None,
    engine: str,
    tag: str | None,
    *,
    push: bool,
) -> tuple[Lockfile, Engine]:
    """Return lock and engine; a name, or a base, that cannot be is refused before anybody is asked for anything."""
    if tag is not None:
        check_name(tag)
    if push:
        from envlock.workflows.push import target

        target(tag)
    model = lock_of(lock)
    unasked(model, BaseRequest.parse(base, platform, (), None))
    from envlock.containers.engines.find import find

    builder = find(engine)
    if push:
        from envlock.workflows.push import check_login

        check_login(tag)
    return model, builder
