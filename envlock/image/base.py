"""The base of an image: the locked one, the named one, or the best known one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from envlock.data.image_tables import Tables, load_image_tables
from envlock.image.bases.base_request import AUTO, BaseRequest
from envlock.image.bases.candidate import Candidate, PythonArchive
from envlock.image.bases.choose import (
    Find,
    Pin,
    Pinned,
    Trust,
    choose_offline,
    choose_online,
    collect_trust,
    make_base_image,
    resolve_image,
)
from envlock.image.bases.needs import BaseNeeds, collect_lock_needs
from envlock.image.bases.preflight import CannotMatchError
from envlock.image.bases.reference import Reference, is_local, parse
from envlock.image.bases.sources.interpreters import find_unlisted_machine
from envlock.image.plan import Base
from envlock.lock.models import BaseImage, Image, Lockfile, PinnedImage
from envlock.lock.route import Route
from envlock.runtime.tables import table

NEWER_PYTHON = (
    "run `envlock build --pin`, "
    "which looks for this Python in the newest release of python-build-standalone"
)


@dataclass(frozen=True)
class Chosen:
    """A base, its record in the lockfile, and warnings for the user."""

    base: Base
    kept: BaseImage
    warnings: tuple[str, ...] = ()


def resolve_offline(lock: Lockfile, request: BaseRequest) -> tuple[Base, tuple[str, ...]]:
    """Return the base without asking any registry, and warnings; its digest may be unknown.

    Raises:
        CannotMatchError: no known image can be the locked environment, or the named one cannot.
        UsageError: there is no such route or image for this lockfile, or no image can be its
            machine.
    """
    base_image = get_locked_base(lock.base_image, request.choice)
    if base_image is not None:
        return _restore_base(base_image, lock.image), ()
    needs = collect_lock_needs(lock, request.platform)
    tables = load_image_tables()
    try:
        candidate = choose_offline(needs, request, tables)
    except CannotMatchError as error:
        if find_unlisted_machine(needs, tables) is None:
            raise
        # A newer release of python-build-standalone than the one in the tables may have the locked
        # Python.
        hint = f"{NEWER_PYTHON}, or {error.hint}"
        raise CannotMatchError(error.message, hint=hint) from None
    image = _add_known_digest(candidate.reference)
    warnings = [*_list_warnings(candidate, image), *_warn_of_tag(image)]
    python_from = None
    if candidate.python_from is not None:
        python = _add_known_digest(candidate.python_from)
        warnings += _warn_of_tag(python)
        python_from = str(python)
    base = Base(
        str(image),
        candidate.route,
        python_from=python_from,
        python_archive=candidate.python_archive,
    )
    return base, tuple(warnings)


def resolve_online(
    needs: BaseNeeds,
    recorded: BaseImage | None,
    find: Find,
    request: BaseRequest,
    tables: Tables | None = None,
) -> Chosen:
    """Return the base with the digest that its registry has now, and with its config.

    Args:
        needs: those of the lockfile.
        recorded: the base in the lockfile.
        find: the function that asks a registry.
        request: the request for a base.
        tables: the tables of base images; envlock's own when not given.

    Raises:
        CannotMatchError: no known image can be the locked environment, or the named one cannot.
        MovedTagError: the tag of a release has moved from the known image.
        UsageError: there is no such route or image for this lockfile, or no image can be its
            machine.
        RegistryError: a registry could not be reached, refused, or does not have it.
    """
    trust = collect_trust(recorded)

    def ask_registry(reference: Reference) -> Pinned:
        return resolve_image(find, reference, needs.platform, mirrors=request.mirrors, trust=trust)

    base_image = get_locked_base(recorded, request.choice)
    if base_image is not None:
        return Chosen(_look_up_locked_base(base_image, ask_registry), base_image)
    chosen = choose_online(needs, request, tables or load_image_tables(), ask_registry)
    candidate = chosen.candidate
    base = _make_base(candidate.route, chosen.image, chosen.python, candidate.python_archive)
    warnings = _list_warnings(candidate, chosen.image.reference)
    return Chosen(base, make_base_image(chosen, needs), warnings)


def get_locked_base(recorded: BaseImage | None, choice: str) -> BaseImage | None:
    """Return the base in the lockfile; None if it has none, or another one was chosen."""
    if recorded is not None and choice in (AUTO, recorded.route):
        return recorded
    return None


def _add_known_digest(reference: Reference) -> Reference:
    """Return a reference with its digest, if that was published."""
    digest = reference.digest or Trust().find_digest(reference)
    if digest is None:
        return reference
    return reference.at(digest)


def _warn_of_tag(reference: Reference) -> list[str]:
    if reference.digest is not None:
        return []
    return [
        f"{reference} is not pinned: its digest is unknown offline; "
        "run `envlock build --pin` to record it"
    ]


def _list_warnings(candidate: Candidate, image: Reference) -> tuple[str, ...]:
    """Return the reasons against an image although it was chosen."""
    warnings = [*candidate.obstacles, *candidate.unmet_requirements, *candidate.doubts]
    if not candidate.exact:
        warnings.insert(0, f"{image.name}:{image.tag} is the nearest: {candidate.lead}")
    return tuple(warnings)


def _make_base(
    route: Route, image: Pinned, python: Pinned | None, archive: PythonArchive | None
) -> Base:
    python_from = str(python.place) if python is not None else None
    base = Base(
        _format_reference(image.place), route, python_from=python_from, python_archive=archive
    )
    return add_config(base, image.config.entrypoint, image.config.command, image.config.environ)


def _format_reference(reference: Reference) -> str:
    """Return the name of an image in a Dockerfile."""
    if is_local(reference):
        # A builder asks a registry for a digest; the tag is the image's ID.
        return f"{reference.name}:{reference.tag}"
    return str(reference)


def add_config(
    base: Base, entrypoint: Sequence[str], command: Sequence[str], environ: Mapping[str, str]
) -> Base:
    """Return a base with its config: entrypoint, command, and those variables that are facts."""
    facts = {row["name"] for row in table("environ")}
    known = sorted((name, value) for name, value in environ.items() if name in facts)
    return replace(base, entrypoint=tuple(entrypoint), command=tuple(command), environ=tuple(known))


# --- the base of a lockfile


def _look_up_locked_base(base_image: BaseImage, pin_image: Pin) -> Base:
    """Return the base in the lockfile, after asking its registry."""
    image = pin_image(_get_reference(base_image))
    locked = base_image.python
    python = pin_image(_get_reference(locked)) if locked is not None else None
    base = _make_base(base_image.route, image, python, _get_archive(base_image))
    return replace(base, apt=base_image.apt)


def _restore_base(base_image: BaseImage, image: Image | None) -> Base:
    """Return the base in the lockfile, with the config that a build has recorded."""
    python = base_image.python
    python_from = str(_get_reference(python)) if python is not None else None
    base = Base(
        _format_reference(_get_reference(base_image)),
        base_image.route,
        python_from=python_from,
        python_archive=_get_archive(base_image),
        apt=base_image.apt,
    )
    # The config is that of the base at the time of the build, which may have been another base.
    if image is None or image.base_config is None or image.base != base_image.digest:
        return base
    config = image.base_config
    return replace(
        base,
        entrypoint=tuple(config.entrypoint),
        command=tuple(config.command),
        environ=tuple(sorted(config.environ.items())),
    )


def _get_archive(base_image: BaseImage) -> PythonArchive | None:
    archive = base_image.python_archive
    if archive is None:
        return None
    return PythonArchive(archive.file, archive.sha256)


def _get_reference(image: PinnedImage) -> Reference:
    return replace(parse(image.name), tag=image.tag, digest=image.digest)
