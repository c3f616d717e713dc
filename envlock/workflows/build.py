"""Build a container that is the locked environment: plan it, write it, build it, build it again.

What a refusal does not need is imported where it is used: Docker's SDK, HTTP and the templates take half a second.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envlock.containers.base import Chosen, unasked
from envlock.containers.debian import check_locked
from envlock.containers.engines.engine import check_name
from envlock.containers.plan import BuildPlan, plan
from envlock.images.reference import parse_platform
from envlock.lock.models import Image, Lockfile
from envlock.runtime.errors import UsageError
from envlock.workflows.container import added, requested
from envlock.workflows.locks import lock_of, name_of
from envlock.workflows.pin import resolved
from envlock.workflows.progress import SILENT, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.containers.build import Wish
    from envlock.containers.engines.engine import Engine
    from envlock.containers.verification import Verdict
    from envlock.workflows.locks import Source

WHEELHOUSE = Path("wheelhouse")


@dataclass(frozen=True)
class Rendered:
    """A Dockerfile, and what is worth a warning."""

    text: str
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Context:
    """A folder that builds without envlock: how many wheels are in it, and what is worth a warning."""

    folder: Path
    wheels: int
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class BuiltImage:
    """An image.

    Attributes:
        name: its tag, or its ID without one.
        verdict: whether it is the locked environment; None where its Python is too old to tell.
        lock: the lock with the base and the image recorded.
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
    wheelhouse: Path = WHEELHOUSE,
    deterministic: bool = False,
    user: str | None = None,
) -> Rendered:
    """Return the Dockerfile of a lock; nothing is written, and only `resolve` asks a registry.

    Where the digest of the base is unknown offline, its tag stands there.

    Raises:
        ImageMismatch: no base image can be the locked environment under the lock's policy.
        LockfileError: the lock is not valid, or something in it must not enter an image.
        OutsideError: a registry failed.
        UsageError: there is no such base, or no image can be the machine of the lock.
    """
    from envlock.containers.render import dockerfile as render

    model = lock_of(lock)
    if resolve:
        chosen = resolved(model, base, platform, mirrors, accept)
        image, warnings = chosen.base, chosen.warnings
    else:
        image, warnings = unasked(model, base, _platform(platform))
    check_locked(image, requested(model))
    made = plan(model, image, None, deterministic=deterministic, added=added(model, wheelhouse, user))
    return Rendered(render(made), warnings)


def context(
    lock: Source | None,
    folder: Path,
    *,
    base: str = "auto",
    platform: str | None = None,
    mirrors: Sequence[str] = (),
    accept: str | None = None,
    wheelhouse: Path = WHEELHOUSE,
    deterministic: bool = False,
    user: str | None = None,
) -> Context:
    """Write the Dockerfile and its context into a folder; nothing is built.

    Raises:
        LockfileError: the lock is not valid, or something in it must not enter an image.
        OutsideError: a registry or a wheel failed.
        UsageError: wheels are missing, or the folder cannot be used.
    """
    from envlock.containers.payload import write_context

    model = lock_of(lock)
    chosen, made = _planned(model, base, platform, mirrors, accept, wheelhouse, user, deterministic=deterministic)
    write_context(made, wheelhouse, folder)
    return Context(folder, len(made.wheels), (*chosen.warnings, *made.notes))


def build(
    lock: Source | None = None,
    *,
    tag: str | None = None,
    base: str = "auto",
    platform: str | None = None,
    mirrors: Sequence[str] = (),
    accept: str | None = None,
    wheelhouse: Path = WHEELHOUSE,
    deterministic: bool = False,
    user: str | None = None,
    engine: str = "auto",
    network: str = "none",
    gpus: bool = False,
    no_cache: bool = False,
    push: bool = False,
    progress: Progress = SILENT,
) -> BuiltImage:
    """Build the image of a lock and verify it inside; it gets its tag only when it is the locked environment.

    Args:
        lock: the lockfile; the one that `assert_locked()` would use when not given.
        tag: a name for the image.
        base: `auto`, a route (`ngc`, `cuda`, `wheels`), or the name of an image.
        platform: `linux/amd64` or `linux/arm64`; the lock's own when not given.
        mirrors: where to take images from instead, such as `nvcr.io=harbor.example/nvcr`.
        accept: the digest of a release's tag that does not name the known image any more.
        wheelhouse: the folder that `vendor` has filled.
        deterministic: also set the variables that this TensorFlow needs for determinism.
        user: whom the program runs as in it, in numbers, as `1000:1000`; the settings' user when not given.
        engine: `auto`, or an engine of `envlock.containers.engines.ENGINES`.
        network: during the build: `none`, `host` or `default`.
        gpus: verify inside with this machine's GPUs.
        no_cache: build every step anew.
        push: push it to the registry of its tag when it is verified, with its bill of materials and provenance.
        progress: shows what the builder prints.

    Raises:
        ImageMismatch: no base image can be the locked environment, or the tag of a release names another image.
        LockfileError: the lock is not valid, or something in it must not enter an image.
        OutsideError: a registry, a wheel or the engine failed.
        UsageError: wheels are missing, or there is no such engine.
    """
    model, builder = _ready(lock, base, platform, engine, tag, push=push)
    chosen, made = _planned(model, base, platform, mirrors, accept, wheelhouse, user, deterministic=deterministic)
    from envlock.containers.build import Wish

    built = _make(model, chosen, made, builder, progress, Wish(tag, network, gpus, no_cache, wheelhouse))
    return _pushed(built, tag, builder, wheelhouse, progress) if push and tag is not None else built


def _make(
    lock: Lockfile, chosen: Chosen, made: BuildPlan, builder: Engine, progress: Progress, wish: Wish
) -> BuiltImage:
    """Return the image of a plan, built and verified inside."""
    from envlock.containers.build import build as make

    for text in (told := (*chosen.warnings, *made.notes)):
        progress.say(f"warning: {text}")
    out = make(made, chosen, builder, wish, progress.line)
    kept = lock.model_copy(update={"base_image": chosen.kept, "image": out.section})
    return BuiltImage(wish.tag or out.built.image_id, out.verdict, kept, told)


def _pushed(built: BuiltImage, tag: str, builder: Engine, wheelhouse: Path, progress: Progress) -> BuiltImage:
    """Return the image, pushed if it is the locked environment."""
    from envlock.workflows.export import licenses
    from envlock.workflows.push import push_image

    if built.verdict is not None and not built.verdict.image.match:
        return built
    kept, pushed = push_image(built.lock, tag, builder, licenses(built.lock, wheelhouse), progress)
    return replace(built, lock=kept, pushed=pushed)


def rebuild(
    lock: Source | None = None,
    *,
    base: str = "auto",
    platform: str | None = None,
    mirrors: Sequence[str] = (),
    accept: str | None = None,
    wheelhouse: Path = WHEELHOUSE,
    deterministic: bool = False,
    user: str | None = None,
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
    wanted = deterministic or old.deterministic
    chosen, made = _planned(model, base, platform, mirrors, accept, wheelhouse, user, deterministic=wanted, again=True)
    wish = Wish(None, network, no_cache=True, wheelhouse=wheelhouse)
    new, lines = check(made, chosen, find(engine), wish, progress.line, old)
    return Rebuilt(old, new, tuple(lines))


def _planned(
    lock: Lockfile,
    base: str,
    platform: str | None,
    mirrors: Sequence[str],
    accept: str | None,
    wheelhouse: Path,
    user: str | None,
    *,
    deterministic: bool,
    again: bool = False,
) -> tuple[Chosen, BuildPlan]:
    """Return the base by what its registry says now, and what the image will consist of."""
    from envlock.containers.payload import wheels_in
    from envlock.packages.archives import fetch_debian, fetch_python

    extra = added(lock, wheelhouse, user, again=again)
    chosen = resolved(lock, base, platform, mirrors, accept)
    if not again:
        check_locked(chosen.base, requested(lock))
    archive = chosen.base.python_archive
    if archive is not None:
        fetch_python(archive.file, archive.sha256, wheelhouse, os.environ)
    made = plan(lock, chosen.base, wheels_in(wheelhouse), deterministic=deterministic, added=extra)
    for package in made.debian:
        fetch_debian(package, wheelhouse)
    return chosen, made


def _ready(
    lock: Source | None, base: str, platform: str | None, engine: str, tag: str | None, *, push: bool
) -> tuple[Lockfile, Engine]:
    """Return lock and engine; a name, or a base, that cannot be is refused before anybody is asked for anything."""
    if tag is not None:
        check_name(tag)
    if push:
        from envlock.workflows.push import target

        target(tag)
    model = lock_of(lock)
    check_locked(unasked(model, base, _platform(platform))[0], requested(model))
    from envlock.containers.engines.find import find

    return model, find(engine)


def _platform(text: str | None) -> str | None:
    return None if text is None else parse_platform(text)
