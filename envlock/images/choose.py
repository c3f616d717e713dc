"""Choose the base image for a lock, and pin it: from facts and tables to a ranked list, from a tag to its digest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from envlock.data.images import Tables, image_tables
from envlock.images.candidate import Candidate, Wanted, rank, reason, wanted
from envlock.images.drivers import judged
from envlock.images.manifest import Found, ImageConfig, RegistryError, informed
from envlock.images.reference import Mirror, Reference, mirrored
from envlock.images.sources import SOURCES
from envlock.lock.facts import Facts
from envlock.lock.models import BaseImage, PinnedImage
from envlock.runtime.report import ERROR, Finding

Find = Callable[[Reference, str], Found]
"""Takes a reference and a platform: a registry's `find`."""

Second = Callable[[Reference, str], str]
"""Takes a reference and a platform, returns the digest: a container engine, whose logins are its own."""

LOOKED_UP = 3
"""So many of the best candidates are looked up; the others are shown for comparison."""


@dataclass(frozen=True)
class Pinned:
    """An image that was looked up.

    Attributes:
        reference: as it was asked for, with the digest.
        place: where it is to be taken from, with the digest; another name where there is a mirror.
        platform: the one that was asked for.
        manifest: that platform's own; None where only a second source was to be had.
        config: what the image says of itself; None likewise.
    """

    reference: Reference
    place: Reference
    platform: str
    manifest: str | None
    config: ImageConfig | None


def pin(
    find: Find,
    reference: Reference,
    platform: str,
    *,
    mirrors: Iterable[Mirror] = (),
    second: Second | None = None,
) -> Pinned:
    """Return what a tag, or a digest, stands for now.

    Args:
        find: asks a registry.
        reference: the image.
        platform: of the image.
        mirrors: where to ask instead.
        second: asked where the registry is not to be had from here for a reason that is ours alone.

    Raises:
        UsageError: it names neither tag nor digest, or the mirror makes no name of it.
        RegistryError: it cannot be looked up, or is not there.
    """
    place = mirrored(reference, mirrors)
    try:
        found = find(place, platform)
    except RegistryError as error:
        if second is None or not error.ours:
            raise
        digest = second(place, platform)
        return Pinned(reference.at(digest), place.at(digest), platform, None, None)
    return Pinned(reference.at(found.digest), place.at(found.digest), platform, found.manifest, found.config)


def look_up(
    candidates: Sequence[Candidate],
    asked: Wanted,
    tables: Tables,
    find: Callable[[Reference], Pinned],
) -> tuple[list[Candidate], dict[Reference, Pinned]]:
    """Return the candidates by what the registries say of the best of them, and what was found, by reference.

    One that is gone falls behind all that are there. Where a runner-up cannot be asked for, that is noted.

    Raises:
        RegistryError: the best one cannot be looked up, or none of them is there any more.
    """
    told: list[Candidate] = []
    pinned: dict[Reference, Pinned] = {}
    gone: list[RegistryError] = []
    for candidate in candidates[:LOOKED_UP]:
        found = _tried(find, candidate.reference)
        if isinstance(found, Pinned):
            pinned[candidate.reference] = found
            told.append(candidate if found.config is None else informed(candidate, found.config))
        elif found.gone or told:
            gone += [found] if found.gone else []
            told.append(_without(candidate, found))
        else:
            raise found
    if gone and not pinned:
        raise gone[0]
    return ranked([*told, *candidates[LOOKED_UP:]], asked, tables), pinned


def _tried(find: Callable[[Reference], Pinned], reference: Reference) -> Pinned | RegistryError:
    try:
        return find(reference)
    except RegistryError as error:
        return error


def _without(candidate: Candidate, error: RegistryError) -> Candidate:
    if error.gone:
        return replace(candidate, obstacles=(*candidate.obstacles, f"It is not available: {error.message}."))
    return replace(candidate, notes=(*candidate.notes, f"It could not be looked up: {error.message}."))


def base_image(candidate: Candidate, asked: Wanted, image: Pinned, python: Pinned | None = None) -> BaseImage:
    """Return what the lock keeps of a base image, and of the image its Python is from."""
    return BaseImage(
        **_kept(image).model_dump(),
        platform="linux/arm64" if image.platform == "linux/arm64" else "linux/amd64",
        route=candidate.route,
        reason=reason(candidate, asked),
        python=_kept(python) if python else None,
    )


def _kept(image: Pinned) -> PinnedImage:
    reference = image.reference
    return PinnedImage(name=reference.name, tag=reference.tag, digest=reference.digest or "", manifest=image.manifest)


def moved(locked: PinnedImage, now: Pinned) -> Finding | None:
    """Return the finding that a tag does not point any more at what was locked; None where it still does."""
    if locked.digest == now.reference.digest:
        return None
    return Finding(
        "exact",
        ERROR,
        "base_image.digest",
        f"base_image.digest: locked {locked.digest}, live {now.reference.digest}",
        f"The tag {locked.name}:{locked.tag} has moved: it now names another image.",
        "Build on the locked digest, or run `envlock build` again and commit the lockfile.",
        "https://github.com/opencontainers/distribution-spec/blob/main/spec.md, Pulling manifests",
        expected=locked.digest,
        actual=now.reference.digest,
        weight=90,
    )


def choose(facts: Facts, *, platform: str | None = None, tables: Tables | None = None) -> list[Candidate]:
    """Return the base images for these facts, the best first; there is always one.

    Args:
        facts: of the lock.
        platform: of the image; the lock's own unless named.
        tables: what is known of base images; envlock's own unless given.
    """
    return candidates(wanted(facts, platform), tables or image_tables())


def candidates(asked: Wanted, tables: Tables) -> list[Candidate]:
    """Return what all sources have for this, the best first."""
    return ranked((candidate for source in SOURCES.values() for candidate in source(asked, tables)), asked, tables)


def ranked(found: Iterable[Candidate], asked: Wanted, tables: Tables) -> list[Candidate]:
    """Return candidates held against the lock's driver and GPUs, the best first."""
    told = [judged(candidate, asked, tables.cuda) for candidate in found]
    return sorted(told, key=lambda candidate: rank(candidate, asked), reverse=True)
