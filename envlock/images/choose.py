"""Choose the base image for a lock, and pin it: from facts and tables to a ranked list, from a tag to its digest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from envlock.data.images import Tables, image_tables
from envlock.images.candidate import Candidate, rank, reason
from envlock.images.drivers import judged
from envlock.images.floors import grounded
from envlock.images.manifest import Found, ImageConfig, RegistryError, informed
from envlock.images.preflight import checked
from envlock.images.reference import Mirror, Reference, mirrored
from envlock.images.sources import SOURCES
from envlock.images.wanted import Wanted, wanted
from envlock.lock.facts import Facts
from envlock.lock.models import BaseImage, PinnedArchive, PinnedImage
from envlock.runtime.errors import ImageMismatch

Find = Callable[[Reference, str], Found]
"""Takes a reference and a platform: a registry's `find`."""

Second = Callable[[Reference, str], str]
"""Takes a reference and a platform, returns the digest: a container engine, whose logins are its own."""

LOOKED_UP = 3
"""So many of the best candidates are looked up; the others are shown for comparison."""


RELEASES = "nvcr.io"
"""The registry whose tags name a release for good; elsewhere, a tag names its newest build."""


class MovedTagError(ImageMismatch):
    """A tag of a release does not point any more at the image that is known by it: the answer is no."""


@dataclass(frozen=True)
class Trust:
    """What is known of tags before a registry is asked.

    Attributes:
        locked: images of the lock.
        tables: what is known in public.
        accepted: the digest that was named as the right one, whatever is known.
    """

    locked: tuple[PinnedImage, ...] = ()
    tables: Tables | None = None
    accepted: str | None = None

    def known(self, reference: Reference) -> str | None:
        """Return the digest of a release's tag; None where none is known, or tags may move."""
        if reference.registry != RELEASES:
            return None
        name, tag = reference.name, reference.tag
        locked = [image.digest for image in self.locked if (image.name, image.tag) == (name, tag)]
        rows = (
            (self.tables or image_tables()).ngc.digest
            if name == "nvcr.io/nvidia/tensorflow"
            else []
        )
        public = [
            row.digest for row in rows if row.tag is not None and row.tag == tag and not row.earlier
        ]
        return next(iter([*locked, *public]), None)


def trusted(kept: BaseImage | None, accepted: str | None = None) -> Trust:
    """Return which digests are known: those of a lock, the public ones, and one that was named."""
    python = [] if kept is None or kept.python is None else [kept.python]
    return Trust(() if kept is None else (kept, *python), accepted=accepted)


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
    trust: Trust | None = None,
) -> Pinned:
    """Return what a tag, or a digest, stands for now.

    Args:
        find: asks a registry.
        reference: the image.
        platform: of the image.
        mirrors: where to ask instead.
        second: asked where the registry cannot be reached for a reason on our side.
        trust: which digests are known.

    Raises:
        MovedTagError: the tag of a release points at another image than is known.
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
        _hold(reference, place, (digest,), trust)
        return Pinned(reference.at(digest), place.at(digest), platform, None, None)
    _hold(reference, place, (found.digest, found.manifest), trust)
    return Pinned(
        reference.at(found.digest), place.at(found.digest), platform, found.manifest, found.config
    )


def _hold(
    reference: Reference, place: Reference, served: tuple[str, ...], trust: Trust | None
) -> None:
    """Make sure that a registry serves the image that is known; public lists name an index or one platform's image.

    Raises:
        MovedTagError: it serves another one.
    """
    known = None if trust is None or reference.digest is not None else trust.known(reference)
    if trust is None or known is None or known in served or trust.accepted in served:
        return
    raise MovedTagError(
        f"{reference} is another image than the known one: known {known}, served {served[0]} by {place.registry}",
        hint=f"build on the known one with `--base {reference}@{known}`; if NVIDIA published the other, accept it "
        f"with `--accept {served[0]}`",
    )


def look_up(
    candidates: Sequence[Candidate],
    asked: Wanted,
    tables: Tables,
    find: Callable[[Reference], Pinned],
) -> tuple[list[Candidate], dict[Reference, Pinned]]:
    """Return the candidates by what the registries say of the best of them, and what was found, by reference.

    One that is gone is ranked after all that exist. Where a runner-up cannot be asked for, that is noted.

    Raises:
        MovedTagError: the tag of the best one points at another image than is known.
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
        elif isinstance(found, MovedTagError):
            if not told:
                raise found
            told.append(
                replace(
                    candidate,
                    obstacles=(*candidate.obstacles, f"Its tag has moved: {found.message}."),
                )
            )
        elif found.gone or told:
            gone += [found] if found.gone else []
            told.append(_without(candidate, found))
        else:
            raise found
    if gone and not pinned:
        raise gone[0]
    return ranked([*told, *candidates[LOOKED_UP:]], asked, tables), pinned


def _tried(
    find: Callable[[Reference], Pinned], reference: Reference
) -> Pinned | RegistryError | MovedTagError:
    try:
        return find(reference)
    except (RegistryError, MovedTagError) as error:
        return error


def _without(candidate: Candidate, error: RegistryError) -> Candidate:
    if error.gone:
        return replace(
            candidate, obstacles=(*candidate.obstacles, f"It is not available: {error.message}.")
        )
    return replace(
        candidate, notes=(*candidate.notes, f"It could not be looked up: {error.message}.")
    )


def base_image(
    candidate: Candidate, asked: Wanted, image: Pinned, python: Pinned | None = None
) -> BaseImage:
    """Return what the lock keeps of a base image, and of where its Python is from."""
    archive = candidate.python_archive
    return BaseImage(
        **_kept(image).model_dump(),
        platform="linux/arm64" if image.platform == "linux/arm64" else "linux/amd64",
        route=candidate.route,
        reason=reason(candidate, asked),
        python=_kept(python) if python else None,
        python_archive=PinnedArchive(file=archive.file, sha256=archive.sha256) if archive else None,
    )


def _kept(image: Pinned) -> PinnedImage:
    reference = image.reference
    return PinnedImage(
        name=reference.name,
        tag=reference.tag,
        digest=reference.digest or "",
        manifest=image.manifest,
    )


def choose(
    facts: Facts, *, platform: str | None = None, tables: Tables | None = None
) -> list[Candidate]:
    """Return the base images for these facts, the best first; there is always one.

    Args:
        facts: of the lock.
        platform: of the image; the lock's own unless named.
        tables: what is known of base images; envlock's own unless given.
    """
    return candidates(wanted(facts, platform), tables or image_tables())


def candidates(asked: Wanted, tables: Tables) -> list[Candidate]:
    """Return what all sources have for this, the best first."""
    return ranked(
        (candidate for source in SOURCES.values() for candidate in source(asked, tables)),
        asked,
        tables,
    )


def ranked(found: Iterable[Candidate], asked: Wanted, tables: Tables) -> list[Candidate]:
    """Return candidates held against TensorFlow's needs, the lock's policy, its driver and its GPUs, the best first."""
    told = [
        checked(grounded(judged(each, asked, tables.cuda), asked, tables), asked) for each in found
    ]
    return sorted(told, key=lambda candidate: rank(candidate, asked), reverse=True)
