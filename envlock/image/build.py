"""Build a container image of the locked environment, and rebuild it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from envlock.image import image_build
from envlock.image.base import resolve_offline
from envlock.image.bases.base_request import BaseRequest
from envlock.image.container_settings import find_engine, read_additions
from envlock.image.debian import get_locked_request
from envlock.image.engines.engine import Engine, check_name
from envlock.image.image_build import Wish
from envlock.image.image_verification import Verdict, describe_verdict
from envlock.image.payload import write_context
from envlock.image.plan import plan
from envlock.image.push import check_login, parse_target, push_image
from envlock.image.render import dockerfile as render
from envlock.image.supply import (
    BuildSources,
    ImageRequest,
    Supplied,
    check_environment,
    check_plan,
    find_unknown,
    prepare_build,
)
from envlock.image.unloadable import describe_unloadable
from envlock.lock.locks import get_name, load_lock
from envlock.lock.models import Image, Lockfile
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source


@dataclass(frozen=True)
class BuildEngine:
    """The engine that builds, and how.

    Attributes:
        name: `auto`, or an engine of `envlock.image.engines.ENGINES`.
        network: the network during the build: `none`, `host` or `default`.
        gpus: verify the image with this machine's GPUs.
        no_cache: run every step of the build again.
    """

    name: str = "auto"
    network: str = "none"
    gpus: bool = False
    no_cache: bool = False


PLAIN_IMAGE = ImageRequest()
USUAL_SOURCES = BuildSources()
USUAL_ENGINE = BuildEngine()


@dataclass(frozen=True)
class Rendered:
    """A Dockerfile, with warnings."""

    text: str
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Context:
    """A folder that can be built without envlock: the number of wheels in it, and warnings.

    `lock` is the lockfile with the base and the wheels that were found for it.
    """

    folder: Path
    wheels: int
    warnings: tuple[str, ...]
    lock: Lockfile


@dataclass(frozen=True)
class BuiltImage:
    """An image that was built and verified.

    Attributes:
        name: its tag, or its ID if it has no tag.
        verdict: whether it is the locked environment; None if its Python is too old to run the
            check.
        lock: the lockfile with base and image recorded, and the wheels and Debian packages that
            were found for it.
        warnings: sentences for the user.
        pushed: its name in a registry, by digest; None if it was not pushed.
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
    """An image that was built again, and how it differs from the one that the lockfile records."""

    old: Image
    new: Image
    differences: tuple[str, ...]


def dockerfile(
    lock: Source | None = None,
    image: ImageRequest = PLAIN_IMAGE,
    *,
    wheelhouse: Path | None = None,
) -> Rendered:
    """Return the Dockerfile of a lockfile; nothing is written, and no registry is asked.

    If the digest of the base is not known offline, the Dockerfile has its tag. In place of wheels
    and Debian packages that only a build finds, it has a comment and the name of a file that never
    exists, so that it cannot be built as it is.

    Raises:
        ImageMismatch: no base image can be the locked environment under the lockfile's policy.
        LockfileError: the lockfile is not valid, or something in it must not enter an image.
        UsageError: there is no such base, or no image can be the machine of the lockfile.
    """
    model = load_lock(lock)
    # No registry is asked, so mirrors mean nothing.
    base, warnings = resolve_offline(model, BaseRequest.parse(image.base, image.platform, ()))
    base, unknown = find_unknown(model, base)
    additions = read_additions(model.image, BuildSources(wheelhouse).folder)
    made = plan(
        model, base, None, deterministic=image.deterministic, added=additions, unknown=unknown
    )
    check_environment(model, base.route)
    check_plan(made)
    return Rendered(render(made), (*warnings, *additions.warnings))


def context(
    lock: Source | None,
    folder: Path,
    image: ImageRequest = PLAIN_IMAGE,
    sources: BuildSources = USUAL_SOURCES,
    *,
    progress: Progress = SILENT,
) -> Context:
    """Write the Dockerfile and its context into a folder; nothing is built. See `build` for the
    arguments.

    Raises:
        EnvironmentMismatch: wheels are still to be proven, and the environment here is not the
            locked one.
        LockfileError: the lockfile is not valid, or something in it must not enter an image.
        ImageMismatch: no base image can be the locked environment, or the tag of a release names
            another image.
        OutsideError: a registry, an index or a wheel failed.
        UsageError: something is missing that must not be downloaded, or the folder cannot be used.
    """
    model = load_lock(lock)
    supplied = prepare_build(model, image, sources, None, progress=progress)
    write_context(supplied.plan, sources.folder, folder)
    complete = supplied.lock.model_copy(update={"base_image": supplied.chosen.kept})
    return Context(folder, len(supplied.plan.wheels), supplied.warnings, complete)


def build(
    lock: Source | None = None,
    image: ImageRequest = PLAIN_IMAGE,
    sources: BuildSources = USUAL_SOURCES,
    engine: BuildEngine = USUAL_ENGINE,
    *,
    tag: str | None = None,
    push: bool = False,
    progress: Progress = SILENT,
) -> BuiltImage:
    """Build the image of a lockfile and verify it inside; it gets its tag only if it is the locked
    environment.

    Args:
        lock: the lockfile; the one that `assert_locked()` would use when not given. What it lacks
            is found first.
        image: the image that is wanted.
        sources: where missing parts may come from.
        engine: the engine that builds, and how.
        tag: a name for the image.
        push: push the verified image to the registry of its tag, with its bill of materials and
            provenance.
        progress: shows what is being done.

    Raises:
        EnvironmentMismatch, ImageMismatch, LockfileError, OutsideError, UsageError: as `context`,
            or an engine failed.
    """
    model = _check_request(lock, image.parse_base(), tag, push=push)
    builder = find_engine(engine.name)
    # Before the build, which takes minutes: a registry that refuses would throw them away.
    if push:
        check_login(tag)
    supplied = prepare_build(
        model,
        image,
        sources,
        builder,
        network=engine.network,
        # What is pushed is what this call has built.
        reuse=not (push or engine.no_cache),
        progress=progress,
    )
    wish = Wish(
        tag=tag,
        network=engine.network,
        gpus=engine.gpus,
        no_cache=engine.no_cache,
        wheelhouse=sources.folder,
    )
    built = _make_image(supplied, builder, progress, wish)
    if not push or tag is None:
        return built
    return _push_if_verified(built, tag, builder, progress)


def _push_if_verified(
    built: BuiltImage, tag: str, builder: Engine, progress: Progress
) -> BuiltImage:
    """Return the image; it is pushed under its tag if it is the locked environment."""
    # An image that is not the locked environment gets no name, neither here nor in a registry.
    if built.verdict is not None and not built.verdict.image.match:
        return built
    lock, name = push_image(built.lock, tag, builder, progress)
    return replace(built, lock=lock, pushed=name)


def _check_request(
    lock: Source | None, request: BaseRequest, tag: str | None, *, push: bool
) -> Lockfile:
    """Return the lockfile after checking the tag and the base, before any engine or registry is
    asked.

    Raises:
        LockfileError: the lockfile is not valid.
        UsageError: the tag or the base is malformed or does not exist.
    """
    if tag is not None:
        check_name(tag)
    if push:
        parse_target(tag)
    model = load_lock(lock)
    resolve_offline(model, request)
    return model


def _make_image(supplied: Supplied, builder: Engine, progress: Progress, wish: Wish) -> BuiltImage:
    """Return the image of a plan, after it was built and verified inside."""
    for warning in supplied.warnings:
        progress.say(f"warning: {warning}")
    base, _, _ = supplied.chosen.base.reference.partition("@")
    progress.say(f"building on {base}, and verifying inside")
    made = image_build.build(supplied.plan, supplied.chosen, builder, wish, progress.line)
    unloadable = made.verdict.unloadable if made.verdict is not None else {}
    found = describe_unloadable(unloadable, get_locked_request(supplied.chosen.base.apt).packages)
    for warning in found:
        progress.say(f"warning: {warning}")
    update = {"base_image": supplied.chosen.kept, "image": made.section}
    complete = supplied.lock.model_copy(update=update)
    warnings = (*supplied.warnings, *found)
    return BuiltImage(wish.tag or made.built.image_id, made.verdict, complete, warnings)


def rebuild(
    lock: Source | None = None,
    image: ImageRequest = PLAIN_IMAGE,
    sources: BuildSources = USUAL_SOURCES,
    engine: BuildEngine = USUAL_ENGINE,
    *,
    progress: Progress = SILENT,
) -> Rebuilt:
    """Build the image of a lockfile again from the first step, and return how the new one differs;
    see `build`.

    Raises:
        UsageError: the lockfile has no image, or as `build`.
        LockfileError, OutsideError: as `build`.
    """
    model = load_lock(lock)
    old = model.image
    if old is None:
        hint = "run `envlock build` to build and record one"
        raise UsageError(f"{get_name(lock)} has no recorded image", hint=hint)
    image = replace(image, deterministic=image.deterministic or old.deterministic)
    builder = find_engine(engine.name)
    supplied = prepare_build(
        model, image, sources, builder, network=engine.network, again=True, progress=progress
    )
    # A step from the build cache would be the same whatever has changed since.
    wish = Wish(None, engine.network, no_cache=True, wheelhouse=sources.folder)
    new, differences = image_build.check(
        supplied.plan, supplied.chosen, builder, wish, progress.line, old
    )
    return Rebuilt(old, new, tuple(differences))
