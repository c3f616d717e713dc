"""From a lock to the base of its image: the one that the lock has, the one that is named, or the best that is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from envlock.containers.engines import AUTO
from envlock.containers.plan import Base
from envlock.data.images import image_tables
from envlock.images.candidate import Candidate, Wanted, wanted
from envlock.images.choose import Find, Pinned, base_image, candidates, look_up, pin
from envlock.images.reference import Mirror, Reference, parse
from envlock.lock.models import BaseImage, Lockfile, PinnedImage
from envlock.lock.route import ROUTES, Route
from envlock.runtime.errors import UsageError
from envlock.runtime.tables import table


@dataclass(frozen=True)
class Chosen:
    """A base, what the lock keeps of it, and what is worth a warning."""

    base: Base
    kept: BaseImage
    warnings: tuple[str, ...] = ()


def unasked(lock: Lockfile, choice: str = AUTO, platform: str | None = None) -> Chosen:
    """Return the base without asking anybody: from the lock, or by a digest that is known in public.

    Args:
        lock: what the image is for.
        choice: `auto`, a route, or the name of an image.
        platform: of the image; the lock's own unless named.

    Raises:
        UsageError: nothing that is known here says which digest it has.
    """
    if lock.base_image is not None and choice in (AUTO, lock.base_image.route):
        return _locked(lock, lock.base_image)
    asked = wanted(lock.facts, platform)
    best = _candidates(lock, choice, asked)[0]
    reference = _known(best.reference)
    python = _known(best.python_from) if best.python_from is not None else None
    return _chosen(best, asked, _unread(reference, asked), _unread(python, asked) if python else None)


def asked_for(
    lock: Lockfile, find: Find, choice: str = AUTO, platform: str | None = None, mirrors: Sequence[Mirror] = ()
) -> Chosen:
    """Return the base as the registry has it now, with what its config says.

    Args:
        lock: what the image is for.
        find: asks a registry.
        choice: `auto`, a route, or the name of an image.
        platform: of the image; the lock's own unless named.
        mirrors: where to take images from instead.

    Raises:
        UsageError: there is no such route or image for this lock.
        RegistryError: a registry was not reached, refused, or does not have it.
    """
    asked = wanted(lock.facts, platform)
    fetch = cast(Callable[[Reference], Pinned], partial(pin, find, platform=asked.platform, mirrors=mirrors))
    if lock.base_image is not None and choice in (AUTO, lock.base_image.route):
        kept = lock.base_image
        found = fetch(_reference(kept))
        python = fetch(_reference(kept.python)) if kept.python is not None else None
        return Chosen(_base(kept.route, found, python), kept)
    ranked, pinned = look_up(_candidates(lock, choice, asked), asked, image_tables(), fetch)
    best = ranked[0]
    python = fetch(best.python_from) if best.python_from is not None else None
    return _chosen(best, asked, pinned[best.reference], python)


def _candidates(lock: Lockfile, choice: str, asked: Wanted) -> list[Candidate]:
    """Return what the choice leaves, the best first; there is at least one."""
    if choice not in (AUTO, *ROUTES):
        reference = parse(choice)
        if reference.tag is None and reference.digest is None:
            raise UsageError(f"{choice} has neither a tag nor a digest", hint=f"use {choice}:TAG")
        return [Candidate(_route(reference, asked), reference, {}, lead="It was chosen with --base.", exact=True)]
    found = [candidate for candidate in candidates(asked, image_tables()) if choice in (AUTO, candidate.route)]
    if not found:
        raise UsageError(
            f"no base image of route {choice} for this lockfile",
            hint="run `envlock images --for LOCK` for a list",
        )
    return found


def _route(reference: Reference, asked: Wanted) -> Route:
    """Return by which route an image that was named is built on: its name tells, else whose TensorFlow it must hold."""
    if reference.repository.endswith("nvidia/tensorflow") or asked.label is not None:
        return "ngc"
    return "cuda" if reference.repository.endswith("nvidia/cuda") else "wheels"


def _known(reference: Reference) -> Reference:
    if reference.digest is not None:
        return reference
    rows = image_tables().ngc.digest if reference.name == "nvcr.io/nvidia/tensorflow" else []
    digest = next((row.digest for row in rows if row.tag == reference.tag and not row.earlier), None)
    if digest is None:
        raise UsageError(
            f"the digest of {reference} is unknown, and a dry run uses no network",
            hint=f"run `envlock build --output DIR`, or name the digest: `--base {reference}@sha256:...`",
        )
    return reference.at(digest)


def _unread(reference: Reference, asked: Wanted) -> Pinned:
    return Pinned(reference, reference, asked.platform, None, None)


def _chosen(candidate: Candidate, asked: Wanted, image: Pinned, python: Pinned | None) -> Chosen:
    against = (*candidate.obstacles, *candidate.doubts)
    lead = (
        () if candidate.exact else (f"{image.reference.name}:{image.reference.tag} is the nearest: {candidate.lead}",)
    )
    kept = base_image(candidate, asked, image, python)
    return Chosen(_base(candidate.route, image, python), kept, (*lead, *against))


def _base(route: Route, image: Pinned, python: Pinned | None) -> Base:
    base = Base(str(image.place), route, python_from=str(python.place) if python else None)
    if image.config is None:
        return base
    names = {row["name"] for row in table("environ")}
    environ = sorted((name, value) for name, value in image.config.environ.items() if name in names)
    return replace(base, entrypoint=image.config.entrypoint, command=image.config.command, environ=tuple(environ))


def _locked(lock: Lockfile, kept: BaseImage) -> Chosen:
    python = str(_reference(kept.python)) if kept.python is not None else None
    base = Base(str(_reference(kept)), kept.route, python_from=python)
    built = lock.image
    if built is not None and built.base_config is not None and built.base == kept.digest:
        known = built.base_config
        environ = tuple(sorted(known.environ.items()))
        base = replace(base, entrypoint=tuple(known.entrypoint), command=tuple(known.command), environ=environ)
    return Chosen(base, kept)


def _reference(kept: PinnedImage) -> Reference:
    reference = parse(kept.name)
    return replace(reference, tag=kept.tag, digest=kept.digest)
