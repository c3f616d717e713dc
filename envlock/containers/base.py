"""From a lock to the base of its image: the one that the lock has, the one that is named, or the best that is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from envlock.containers.engines import AUTO
from envlock.containers.plan import Base
from envlock.data.images import Tables, image_tables
from envlock.images.candidate import Candidate, PythonArchive
from envlock.images.choose import Find, Pinned, Trust, base_image, candidates, look_up, pin, trusted
from envlock.images.preflight import CannotMatchError, admitted
from envlock.images.reference import Mirror, Reference, parse
from envlock.images.sources.interpreters import unknown_build
from envlock.images.wanted import Wanted, wanted_by
from envlock.lock.models import BaseImage, Lockfile, PinnedImage
from envlock.lock.route import ROUTES, Route
from envlock.runtime.errors import UsageError
from envlock.runtime.tables import table

LIVE = "run `envlock build --pin`, which looks for this Python in the newest release of python-build-standalone"


@dataclass(frozen=True)
class Chosen:
    """A base, what the lock keeps of it, and what is worth a warning."""

    base: Base
    kept: BaseImage
    warnings: tuple[str, ...] = ()


def unasked(
    lock: Lockfile, choice: str = AUTO, platform: str | None = None
) -> tuple[Base, tuple[str, ...]]:
    """Return the base without asking anybody, and what is worth a warning: its digest may be unknown.

    Args:
        lock: what the image is for.
        choice: `auto`, a route, or the name of an image.
        platform: of the image; the lock's own unless named.

    Raises:
        CannotMatchError: no image that is known can be the locked environment, or not the one that was named.
        UsageError: there is no such route or image for this lock, or no image can be its machine.
    """
    if (kept := locked_base(lock, choice)) is not None:
        return _locked(lock, kept), ()
    asked = wanted_by(lock, platform)
    try:
        best = _candidates(choice, asked, image_tables())[0]
    except CannotMatchError as error:
        if unknown_build(asked, image_tables()) is None:
            raise
        raise CannotMatchError(error.message, hint=f"{LIVE}, or {error.hint}") from None
    image, python = _unread(best.reference), best.python_from and _unread(best.python_from)
    loose = [each for each in (image, python) if each is not None and each.digest is None]
    base = Base(
        str(image),
        best.route,
        python_from=str(python) if python else None,
        python_archive=best.python_archive,
    )
    told = "its digest is unknown offline; run `envlock build --pin` to record it"
    return base, (*_against(best, image), *(f"{each} is not pinned: {told}" for each in loose))


def asked_for(
    lock: Lockfile,
    find: Find,
    choice: str = AUTO,
    platform: str | None = None,
    mirrors: Sequence[Mirror] = (),
    accepted: str | None = None,
    tables: Tables | None = None,
) -> Chosen:
    """Return the base as the registry has it now, with what its config says.

    Args:
        lock: what the image is for.
        find: asks a registry.
        choice: `auto`, a route, or the name of an image.
        platform: of the image; the lock's own unless named.
        mirrors: where to take images from instead.
        accepted: the digest of a tag that has moved.
        tables: what is known of base images; envlock's own unless given.

    Raises:
        CannotMatchError: no image that is known can be the locked environment, or not the one that was named.
        MovedTagError: the tag of a release points at another image than is known.
        UsageError: there is no such route or image for this lock, or no image can be its machine.
        RegistryError: a registry was not reached, refused, or does not have it.
    """
    asked = wanted_by(lock, platform)
    trust = trusted(lock.base_image, accepted)
    known = partial(pin, find, platform=asked.platform, mirrors=mirrors, trust=trust)
    fetch = cast(Callable[[Reference], Pinned], known)
    if (kept := locked_base(lock, choice)) is not None:
        found = fetch(_reference(kept))
        python = fetch(_reference(kept.python)) if kept.python is not None else None
        return Chosen(replace(_base(kept.route, found, python, _archive(kept)), apt=kept.apt), kept)
    tables = tables or image_tables()
    ranked, pinned = look_up(_candidates(choice, asked, tables), asked, tables, fetch)
    best = ranked[0]
    admitted(best, ranked, asked)  # once more, now by what the image says of itself
    python = fetch(best.python_from) if best.python_from is not None else None
    return _chosen(best, asked, pinned[best.reference], python)


def locked_base(lock: Lockfile, choice: str) -> BaseImage | None:
    """Return the lock's own base, if there is one and the choice leaves it."""
    kept = lock.base_image
    return kept if kept is not None and choice in (AUTO, kept.route) else None


def _candidates(choice: str, asked: Wanted, tables: Tables) -> list[Candidate]:
    """Return what the choice leaves, the best first; there is at least one, and it may become the locked environment.

    Raises:
        CannotMatchError: none may, or not the one that was named.
        UsageError: there is none.
    """
    known = candidates(asked, tables)
    if choice not in (AUTO, *ROUTES):
        found = [_named(choice, known, asked)]
    else:
        found = [candidate for candidate in known if choice in (AUTO, candidate.route)]
    if not found:
        raise UsageError(
            f"no base image of route {choice} for this lockfile",
            hint="run `envlock images LOCK` for a list",
        )
    best = found[0]
    if choice == AUTO and not best.able:
        raise CannotMatchError(
            f"no known base image can do what the lockfile does; the nearest is {best.reference}: "
            f"{' '.join((*best.obstacles, *best.floors)).rstrip('.')}",
            hint="name an image that can, with `--base IMAGE`",
        )
    admitted(best, known, asked)
    return found


def _named(choice: str, known: Sequence[Candidate], asked: Wanted) -> Candidate:
    """Return the image of this name: with all that is known of it, where the tables have it and it is not another one.

    A digest that is not the tag's known one names another image, of which the tables say nothing.
    """
    reference = parse(choice)
    if reference.tag is None and reference.digest is None:
        raise UsageError(f"{choice} has neither a tag nor a digest", hint=f"use {choice}:TAG")
    same = [
        each
        for each in known
        if (each.reference.name, each.reference.tag) == (reference.name, reference.tag)
    ]
    published = Trust().known(replace(reference, digest=None))
    if same and (None in (published, reference.digest) or published == reference.digest):
        return replace(same[0], reference=reference)
    return Candidate(
        _route(reference, asked), reference, {}, lead="It was chosen with --base.", exact=True
    )


def _route(reference: Reference, asked: Wanted) -> Route:
    """Return by which route an image that was named is built on: its name tells, else whose TensorFlow it must hold."""
    if reference.repository.endswith("nvidia/tensorflow") or asked.label is not None:
        return "ngc"
    return "cuda" if reference.repository.endswith("nvidia/cuda") else "wheels"


def _unread(reference: Reference) -> Reference:
    """Return an image that nobody was asked for, with its digest where that is known in public."""
    digest = reference.digest or Trust().known(reference)
    return reference if digest is None else reference.at(digest)


def _chosen(candidate: Candidate, asked: Wanted, image: Pinned, python: Pinned | None) -> Chosen:
    kept = base_image(candidate, asked, image, python)
    base = _base(candidate.route, image, python, candidate.python_archive)
    return Chosen(base, kept, _against(candidate, image.reference))


def _against(candidate: Candidate, image: Reference) -> tuple[str, ...]:
    lead = (
        () if candidate.exact else (f"{image.name}:{image.tag} is the nearest: {candidate.lead}",)
    )
    return (*lead, *candidate.obstacles, *candidate.floors, *candidate.doubts)


def _base(
    route: Route, image: Pinned, python: Pinned | None, archive: PythonArchive | None
) -> Base:
    base = Base(
        str(image.place),
        route,
        python_from=str(python.place) if python else None,
        python_archive=archive,
    )
    if image.config is None:
        return base
    return with_config(base, image.config.entrypoint, image.config.command, image.config.environ)


def with_config(
    base: Base, entrypoint: Sequence[str], command: Sequence[str], environ: Mapping[str, str]
) -> Base:
    """Return a base with what its config says of how it runs; of its variables, those that are facts."""
    names = {row["name"] for row in table("environ")}
    known = sorted((name, value) for name, value in environ.items() if name in names)
    return replace(base, entrypoint=tuple(entrypoint), command=tuple(command), environ=tuple(known))


def _locked(lock: Lockfile, kept: BaseImage) -> Base:
    python = str(_reference(kept.python)) if kept.python is not None else None
    base = Base(
        str(_reference(kept)),
        kept.route,
        python_from=python,
        python_archive=_archive(kept),
        apt=kept.apt,
    )
    built = lock.image
    if built is not None and built.base_config is not None and built.base == kept.digest:
        known = built.base_config
        environ = tuple(sorted(known.environ.items()))
        base = replace(
            base, entrypoint=tuple(known.entrypoint), command=tuple(known.command), environ=environ
        )
    return base


def _archive(kept: BaseImage) -> PythonArchive | None:
    archive = kept.python_archive
    return None if archive is None else PythonArchive(archive.file, archive.sha256)


def _reference(kept: PinnedImage) -> Reference:
    reference = parse(kept.name)
    return replace(reference, tag=kept.tag, digest=kept.digest)
