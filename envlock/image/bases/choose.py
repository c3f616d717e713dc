"""The choice of the base image for a lockfile: from tables to a ranked list, and from a tag to its
digest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from envlock.data.image_tables import Tables, load_image_tables
from envlock.image.bases.base_request import AUTO, BaseRequest
from envlock.image.bases.candidate import Candidate, compute_rank, explain_candidate
from envlock.image.bases.cuda_requirements import add_requirements
from envlock.image.bases.drivers import judge_candidate
from envlock.image.bases.manifest import Found, ImageConfig, RegistryError, apply_config
from envlock.image.bases.needs import BaseNeeds
from envlock.image.bases.preflight import CannotMatchError, add_mismatches, check_base
from envlock.image.bases.reference import Mirror, Reference, apply_mirrors, parse
from envlock.image.bases.sources import SOURCES
from envlock.lock.models import BaseImage, PinnedArchive, PinnedImage
from envlock.lock.route import ROUTES, Route
from envlock.runtime.errors import ImageMismatch, UsageError

Find = Callable[[Reference, str], Found]
"""The function `find` of a registry, which takes a reference and a platform."""

Pin = Callable[[Reference], "Pinned"]
"""A function from a reference to the image that it stands for now, with the platform and mirrors of
one request.
"""

LOOKED_UP = 3
"""How many of the best candidates are looked up in registries; the others are shown for comparison."""

RELEASES = "nvcr.io"
"""The registry whose tags name a release permanently; elsewhere, a tag names its newest build."""


class MovedTagError(ImageMismatch):
    """The tag of a release has moved: it stands for an image other than the known one, so the
    answer is no.
    """


# --- digests, known and served


@dataclass(frozen=True)
class Trust:
    """The digests that are known before a registry is asked.

    Attributes:
        locked: images in the lockfile.
        tables: the tables with the digests that NVIDIA has published; envlock's own when None.
    """

    locked: tuple[PinnedImage, ...] = ()
    tables: Tables | None = None

    def find_digest(self, reference: Reference) -> str | None:
        """Return the digest of a release's tag; None if it is unknown, or tags may move."""
        if reference.registry != RELEASES:
            return None
        name, tag = reference.name, reference.tag
        for image in self.locked:
            if (image.name, image.tag) == (name, tag):
                return image.digest
        if name == "nvcr.io/nvidia/tensorflow":
            for row in (self.tables or load_image_tables()).ngc.digest:
                if row.tag is not None and row.tag == tag and not row.earlier:
                    return row.digest
        return None


def collect_trust(base_image: BaseImage | None) -> Trust:
    """Return the known digests: those of a lockfile, and the published ones."""
    locked: list[PinnedImage] = []
    if base_image is not None:
        locked.append(base_image)
        if base_image.python is not None:
            locked.append(base_image.python)
    return Trust(tuple(locked))


@dataclass(frozen=True)
class Pinned:
    """An image that was looked up.

    Attributes:
        reference: the requested reference, with the digest.
        place: the reference to pull, with the digest; it differs if there is a mirror.
        platform: the requested one.
        manifest: the digest of that platform's own manifest.
        config: the config of the image.
    """

    reference: Reference
    place: Reference
    platform: str
    manifest: str
    config: ImageConfig


def resolve_image(
    find: Find,
    reference: Reference,
    platform: str,
    *,
    mirrors: Iterable[Mirror] = (),
    trust: Trust | None = None,
) -> Pinned:
    """Return the image that a tag or a digest stands for now.

    Args:
        find: the function that asks a registry.
        reference: the image.
        platform: that of the image.
        mirrors: registries to ask instead.
        trust: the known digests.

    Raises:
        MovedTagError: the tag of a release has moved from the known image.
        UsageError: it has neither tag nor digest, or its name in the mirror is not valid.
        RegistryError: it cannot be looked up, or does not exist.
    """
    place = apply_mirrors(reference, mirrors)
    found = find(place, platform)
    # Public lists have either the digest of an index, or that of one platform's image.
    _check_known_digest(reference, place, (found.digest, found.manifest), trust)
    return Pinned(
        reference.at(found.digest), place.at(found.digest), platform, found.manifest, found.config
    )


def _check_known_digest(
    reference: Reference, place: Reference, served: tuple[str, ...], trust: Trust | None
) -> None:
    """Check that a registry serves the image that is known under a tag.

    Raises:
        MovedTagError: it serves another one.
    """
    if trust is None or reference.digest is not None:
        return
    known = trust.find_digest(reference)
    if known is None or known in served:
        return
    raise MovedTagError(
        f"{reference} is another image than the known one: known {known}, "
        f"served {served[0]} by {place.registry}",
        hint=f"build on the known one with `--base {reference}@{known}`; "
        f"if NVIDIA published the other, on that with `--base {reference}@{served[0]}`",
    )


# --- candidates, ranked


def candidates(needs: BaseNeeds, tables: Tables) -> list[Candidate]:
    """Return the candidates of all sources, the best first."""
    found: list[Candidate] = []
    for source in SOURCES.values():
        found += source(needs, tables)
    return sort_candidates(found, needs, tables)


def sort_candidates(
    found: Iterable[Candidate], needs: BaseNeeds, tables: Tables
) -> list[Candidate]:
    """Return candidates with everything that is known about them for the lockfile, the best first."""
    judged = []
    for candidate in found:
        candidate = judge_candidate(candidate, needs, tables.cuda)
        candidate = add_requirements(candidate, needs, tables)
        judged.append(add_mismatches(candidate, needs))
    return sorted(judged, key=lambda candidate: compute_rank(candidate, needs), reverse=True)


def look_up(
    ranked: Sequence[Candidate], needs: BaseNeeds, tables: Tables, pin_image: Pin
) -> tuple[list[Candidate], dict[Reference, Pinned]]:
    """Return the candidates ranked by what registries say about the best ones, and these images by
    reference.

    An image that no longer exists is ranked after all others. If one other than the best cannot be
    looked up, a note says so.

    Raises:
        MovedTagError: the tag of the best one has moved from the known image.
        RegistryError: the best one cannot be looked up, or none of them exists any more.
    """
    looked_up: list[Candidate] = []
    pinned: dict[Reference, Pinned] = {}
    gone: list[RegistryError] = []
    for candidate in ranked[:LOOKED_UP]:
        image = _try_pin(pin_image, candidate.reference)
        if isinstance(image, Pinned):
            pinned[candidate.reference] = image
            looked_up.append(apply_config(candidate, image.config))
            continue
        error = image
        if isinstance(error, RegistryError) and error.gone:
            gone.append(error)
            looked_up.append(_add_obstacle(candidate, f"It is not available: {error.message}."))
        elif not looked_up:
            raise error
        elif isinstance(error, MovedTagError):
            looked_up.append(_add_obstacle(candidate, f"Its tag has moved: {error.message}."))
        else:
            note = f"It could not be looked up: {error.message}."
            looked_up.append(replace(candidate, notes=(*candidate.notes, note)))
    if gone and not pinned:
        raise gone[0]
    return sort_candidates([*looked_up, *ranked[LOOKED_UP:]], needs, tables), pinned


def _try_pin(pin_image: Pin, reference: Reference) -> Pinned | RegistryError | MovedTagError:
    try:
        return pin_image(reference)
    except (RegistryError, MovedTagError) as error:
        return error


def _add_obstacle(candidate: Candidate, obstacle: str) -> Candidate:
    return replace(candidate, obstacles=(*candidate.obstacles, obstacle))


# --- the choice


@dataclass(frozen=True)
class ChosenImage:
    """A base image that was chosen and looked up, and the image that its Python is copied from, if
    any.
    """

    candidate: Candidate
    image: Pinned
    python: Pinned | None


def choose_offline(needs: BaseNeeds, request: BaseRequest, tables: Tables) -> Candidate:
    """Return the best base image for a request, without asking a registry.

    Raises:
        CannotMatchError: no known image can be the locked environment, or the named one cannot.
        UsageError: there is no such route or image for this lockfile.
    """
    return _select(needs, request.choice, tables)[0]


def choose_online(
    needs: BaseNeeds, request: BaseRequest, tables: Tables, pin_image: Pin
) -> ChosenImage:
    """Return the best base image for a request, according to its registry.

    Raises:
        CannotMatchError: no known image can be the locked environment, or the named one cannot.
        MovedTagError: the tag of a release has moved from the known image.
        UsageError: there is no such route or image for this lockfile.
        RegistryError: a registry could not be reached, refused, or does not have it.
    """
    # Without a network first: what the tables refuse is not asked for.
    selected = _select(needs, request.choice, tables)
    ranked, pinned = look_up(selected, needs, tables, pin_image)
    best = ranked[0]
    # The first check used the tables; the config of the image may contradict them.
    check_base(best, ranked, needs)
    python = pin_image(best.python_from) if best.python_from is not None else None
    return ChosenImage(best, pinned[best.reference], python)


def _select(needs: BaseNeeds, choice: str, tables: Tables) -> list[Candidate]:
    """Return the candidates that fit a choice, the best first; there is at least one.

    Raises:
        CannotMatchError: none can become the locked environment, or the named one cannot.
        UsageError: no candidate fits the choice.
    """
    known = candidates(needs, tables)
    if choice == AUTO:
        selected = known
    elif choice in ROUTES:
        selected = [candidate for candidate in known if candidate.route == choice]
    else:
        selected = [_find_named(choice, known, needs)]
    if not selected:
        raise UsageError(
            f"no base image of route {choice} for this lockfile",
            hint="run `envlock images LOCK` for a list",
        )
    best = selected[0]
    if choice == AUTO and not best.able:
        reasons = " ".join((*best.obstacles, *best.unmet_requirements)).rstrip(".")
        raise CannotMatchError(
            "no known base image can do what the lockfile does; "
            f"the nearest is {best.reference}: {reasons}",
            hint="name an image that can, with `--base IMAGE`",
        )
    check_base(best, known, needs)
    return selected


def _find_named(name: str, known: Sequence[Candidate], needs: BaseNeeds) -> Candidate:
    """Return the image with a name, with everything that is known about it if the tables have it."""
    reference = parse(name)
    if reference.tag is None and reference.digest is None:
        raise UsageError(f"{name} has neither a tag nor a digest", hint=f"use {name}:TAG")
    published = Trust().find_digest(replace(reference, digest=None))
    # With a digest other than the published one of the tag, it is another image, which the tables
    # do not describe.
    is_known = published is None or reference.digest in (None, published)
    for candidate in known:
        same_name = candidate.reference.name == reference.name
        if is_known and same_name and candidate.reference.tag == reference.tag:
            return replace(candidate, reference=reference)
    route = _guess_route(reference, needs)
    return Candidate(route, reference, {}, lead="It was chosen with --base.", exact=True)


def _guess_route(reference: Reference, needs: BaseNeeds) -> Route:
    """Return the route of an image that is not in the tables."""
    # A copy of NVIDIA's images in another registry keeps the end of its name. Any other image must
    # contain NVIDIA's TensorFlow if that is locked, because no index has it.
    if reference.repository.endswith("nvidia/tensorflow") or needs.label is not None:
        return "ngc"
    if reference.repository.endswith("nvidia/cuda"):
        return "cuda"
    return "wheels"


# --- what the lockfile records


def make_base_image(chosen: ChosenImage, needs: BaseNeeds) -> BaseImage:
    """Return the record of a base image for a lockfile, and of the image that its Python is copied
    from.
    """
    candidate, image = chosen.candidate, chosen.image
    python = _make_pinned_image(chosen.python) if chosen.python is not None else None
    archive = None
    if candidate.python_archive is not None:
        archive = PinnedArchive(
            file=candidate.python_archive.file, sha256=candidate.python_archive.sha256
        )
    return BaseImage(
        **_make_pinned_image(image).model_dump(),
        platform="linux/arm64" if image.platform == "linux/arm64" else "linux/amd64",
        route=candidate.route,
        reason=explain_candidate(candidate, needs),
        python=python,
        python_archive=archive,
    )


def _make_pinned_image(image: Pinned) -> PinnedImage:
    reference = image.reference
    return PinnedImage(
        name=reference.name,
        tag=reference.tag,
        digest=reference.digest or "",
        manifest=image.manifest,
    )
