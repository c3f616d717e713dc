"""Build a container that is the locked environment: plan it, write it, build it, build it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envlock.containers import image_build
from envlock.containers.base import resolve_offline
from envlock.containers.engines.engine import check_name
from envlock.containers.image_build import Wish
from envlock.containers.image_verification import describe_verdict
from envlock.containers.payload import write_context
from envlock.containers.plan import plan
from envlock.containers.render import dockerfile as render
from envlock.images.base_request import BaseRequest
from envlock.lock.models import Image, Lockfile
from envlock.runtime.errors import UsageError
from envlock.workflows.container_settings import find_engine, read_additions
from envlock.workflows.export import read_licenses
from envlock.workflows.locks import get_name, load_lock
from envlock.workflows.pin import resolve_base
from envlock.workflows.progress import SILENT, Progress
from envlock.workflows.push import check_login, parse_target, push_image
from envlock.workflows.supply import Sources, Supplied, Wanted, find_unknown, prepare_build

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.containers.engines.engine import Engine
    from envlock.containers.image_verification import Verdict
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
        lock: the lock with base and image recorded, and the wheels and Debian packages that were
            found for it.
        warnings: sentences for the user.
        pushed: its name in a registry, by digest; None where it was not pushed.
    """

    name: str
    verdict: Verdict | None
    lock: Lockfile
    warnings: tuple[str, ...]
    pushed: str | None = None

    def describe(self) -> str:
        """Return what was verified, as a sentence."""
        if self.verdict is None:
            reason = "which needs Python 3.8 or newer in the image"
            return f"built {self.name} without verification, {reason}"
        return describe_verdict(self.verdict, self.name)


@dataclass(frozen=True)
class Rebuilt:
    """An image that was built again, and how it differs from the one that the lock has."""

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

    Where the digest of the base is unknown offline, its tag stands there. For wheels and Debian
    packages that only a build will find, a comment and the name of a file that never exists stand
    there, so that it cannot be built.

    Raises:
        ImageMismatch: no base image can be the locked environment under the lock's policy.
        LockfileError: the lock is not valid, or something in it must not enter an image.
        OutsideError: a registry failed.
        UsageError: there is no such base, or no image can be the machine of the lock.
    """
    model = load_lock(lock)
    if resolve:
        chosen = resolve_base(model, BaseRequest.parse(base, platform, mirrors, accept))
        image, warnings = chosen.base, chosen.warnings
    else:
        image, warnings = resolve_offline(model, BaseRequest.parse(base, platform, (), None))
    image, unknown = find_unknown(model, image)
    additions = read_additions(model, Sources(wheelhouse).folder, user)
    made = plan(model, image, None, deterministic=deterministic, added=additions, unknown=unknown)
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
        EnvironmentMismatch: wheels are still to be proven, and the environment here is not the
            locked one.
        LockfileError: the lock is not valid, or something in it must not enter an image.
        ImageMismatch: no base image can be the locked environment, or the tag of a release names
            another image.
        OutsideError: a registry, an index or a wheel failed.
        UsageError: something is missing that may not be had, or the folder cannot be used.
    """
    model = load_lock(lock)
    request = BaseRequest.parse(base, platform, mirrors, accept)
    sources = Sources(wheelhouse, python, indexes, offline)
    supplied = prepare_build(
        model, Wanted(request, user, deterministic), sources, None, progress=progress
    )
    write_context(supplied.plan, sources.folder, folder)
    complete = supplied.lock.model_copy(update={"base_image": supplied.chosen.kept})
    return Context(folder, len(supplied.plan.wheels), supplied.warnings, complete)


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
        lock: the lockfile; the one that `assert_locked()` would use when not given. What it lacks
            is found first.
        tag: a name for the image.
        base: `auto`, a route (`ngc`, `cuda`, `wheels`), or the name of an image.
        platform: `linux/amd64` or `linux/arm64`; the lock's own when not given.
        mirrors: where to take images from instead, such as `nvcr.io=harbor.example/nvcr`.
        accept: the digest of a release's tag that has moved.
        wheelhouse: the folder that is filled with wheels; `./wheelhouse` where it exists, else one
            in the user's cache.
        deterministic: also set the variables that this TensorFlow needs for determinism.
        user: whom the program runs as in it, in numbers, as `1000:1000`; the settings' user when
            not given.
        python: the interpreter of the locked environment, in which wheels are proven; the active or
            the project's own.
        indexes, offline: package indexes to ask, those of pip's and uv's settings when not given;
            use no network.
        engine: `auto`, or an engine of `envlock.containers.engines.ENGINES`.
        network: during the build: `none`, `host` or `default`.
        gpus, no_cache: verify inside with this machine's GPUs; build every step anew.
        push: push it to the registry of its tag when it is verified, with its bill of materials and
            provenance.
        progress: shows what is going on.

    Raises:
        EnvironmentMismatch, ImageMismatch, LockfileError, OutsideError, UsageError: as `context`,
            or an engine failed.
    """
    request = BaseRequest.parse(base, platform, mirrors, accept)
    model = _check_request(lock, request, tag, push=push)
    builder = find_engine(engine)
    if push:
        check_login(tag)
    sources = Sources(wheelhouse, python, indexes, offline)
    supplied = prepare_build(
        model,
        Wanted(request, user, deterministic),
        sources,
        builder,
        network=network,
        progress=progress,
    )
    wish = Wish(tag=tag, network=network, gpus=gpus, no_cache=no_cache, wheelhouse=sources.folder)
    built = _make_image(supplied, builder, progress, wish)
    if not push or tag is None:
        return built
    return _push_if_verified(built, tag, builder, sources.folder, progress)


def _push_if_verified(
    built: BuiltImage, tag: str, builder: Engine, wheelhouse: Path, progress: Progress
) -> BuiltImage:
    """Return the image, pushed by its tag if it is the locked environment."""
    # What is not the locked environment gets no name, neither here nor in a registry.
    if built.verdict is not None and not built.verdict.image.match:
        return built
    licenses = {}
    # A build with nothing to install makes no wheelhouse.
    if wheelhouse.is_dir():
        licenses = read_licenses(built.lock, wheelhouse)
    lock, name = push_image(built.lock, tag, builder, licenses, progress)
    return replace(built, lock=lock, pushed=name)


def _check_request(
    lock: Source | None, request: BaseRequest, tag: str | None, *, push: bool
) -> Lockfile:
    """Return the lock; a name, or a base, that cannot be is refused before any engine or registry is asked.

    Raises:
        LockfileError: the lock is not valid.
        UsageError: the name or the base cannot be.
    """
    if tag is not None:
        check_name(tag)
    if push:
        parse_target(tag)
    model = load_lock(lock)
    resolve_offline(model, request)
    return model


def _make_image(supplied: Supplied, builder: Engine, progress: Progress, wish: Wish) -> BuiltImage:
    """Return the image of a plan, built and verified inside."""
    for warning in supplied.warnings:
        progress.say(f"warning: {warning}")
    base, _, _ = supplied.chosen.base.reference.partition("@")
    progress.say(f"building on {base}, and verifying inside")
    made = image_build.build(supplied.plan, supplied.chosen, builder, wish, progress.line)
    update = {"base_image": supplied.chosen.kept, "image": made.section}
    complete = supplied.lock.model_copy(update=update)
    return BuiltImage(wish.tag or made.built.image_id, made.verdict, complete, supplied.warnings)


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
    model = load_lock(lock)
    old = model.image
    if old is None:
        hint = "run `envlock build` to build and record one"
        raise UsageError(f"{get_name(lock)} has no recorded image", hint=hint)
    request = BaseRequest.parse(base, platform, mirrors, accept)
    sources = Sources(wheelhouse, None, indexes, offline)
    builder = find_engine(engine)
    supplied = prepare_build(
        model,
        Wanted(request, user, deterministic or old.deterministic),
        sources,
        builder,
        network=network,
        again=True,
        progress=progress,
    )
    # A step that comes from the cache would be the same whatever has changed since.
    wish = Wish(None, network, no_cache=True, wheelhouse=sources.folder)
    new, differences = image_build.check(
        supplied.plan, supplied.chosen, builder, wish, progress.line, old
    )
    return Rebuilt(old, new, tuple(differences))
