"""Python's slim images: everything else is installed from hashed wheels. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from envlock.data.image_tables import BaseSystem, SlimImages, Tables
from envlock.image.bases.candidate import Candidate, Value, compare_versions
from envlock.image.bases.cuda_requirements import find_tested_build
from envlock.image.bases.needs import BaseNeeds
from envlock.image.bases.reference import DOCKER_HUB, Reference
from envlock.runtime.release import minor, parse_release

REPOSITORY = "library/python"
NEWEST = "bookworm"
"""The suite that is preferred if the lockfile has no C library."""


def list_candidates(needs: BaseNeeds, tables: Tables) -> Iterable[Candidate]:
    """Return an image for each suite of Debian that has the locked Python, else the nearest one."""
    systems = {row.name: row for row in tables.python.system}
    for row in find_nearest_pythons(needs.python, tables):
        tag, python = choose_tag(row, needs.python)
        system = systems[row.suite]
        holds = {
            **list_installed(needs),
            **describe_system(system),
            "python": Value(find_version(row, needs.python)),
        }
        yield Candidate(
            route="wheels",
            reference=Reference(DOCKER_HUB, REPOSITORY, tag),
            holds=holds,
            lead=describe_install(needs),
            exact=needs.tensorflow is not None and needs.label is None,
            obstacles=tuple(list_obstacles(needs)),
            notes=(*list_support_notes(system), *_list_notes(row, python, needs, tables)),
            newest=(row.suite == NEWEST, *parse_release(system.libc)),
        )


def describe_system(system: BaseSystem) -> dict[str, Value]:
    """Return the contents of a system: its name, its C library, and the compiler of its Python."""
    return {"os": Value(system.os), "libc": Value(system.libc), "compiler": Value(system.compiler)}


def list_support_notes(system: BaseSystem) -> Iterator[str]:
    """Yield that the support of a system has ended."""
    if system.ended is not None:
        name = system.os.title()
        yield f"Support of {name} ended on {system.ended}: it gets no security updates."


def find_nearest_pythons(python: str | None, tables: Tables) -> list[SlimImages]:
    """Return the images with this minor version of Python, else with the nearest one; None stands
    for the newest.
    """
    rows = tables.python.slim
    newest = max(rows, key=lambda row: parse_release(row.python)).python
    wanted = minor(python or newest)
    closest = max(compare_versions(wanted, Value(row.python)) for row in rows)
    return [row for row in rows if compare_versions(wanted, Value(row.python)) == closest]


class SlimTag(NamedTuple):
    """A tag and its Python: a patch release, or a minor version, which stands for its newest patch
    release.
    """

    tag: str
    python: str


def choose_tag(row: SlimImages, python: str | None) -> SlimTag:
    """Return the tag for a Python on a suite: that of its patch release, if there is such an image."""
    version = row.python
    patch = _get_patch(row, python)
    if patch is not None and row.first <= patch <= row.last:
        version = f"{row.python}.{patch}"
    return SlimTag(f"{version}-slim-{row.suite}", version)


def find_version(row: SlimImages, python: str | None) -> str:
    """Return the Python that the tag for this one stands for."""
    version = choose_tag(row, python).python
    patch = _get_patch(row, python)
    # A tag without a patch release is never older than the newest known one.
    if version == row.python and patch is not None and patch < row.first:
        return f"{row.python}.{row.last}"
    return version


def _get_patch(row: SlimImages, python: str | None) -> int | None:
    """Return the third number of a Python; None without one, or if its minor version differs."""
    third = parse_release(python or "")[2:3]
    if minor(python or "") != row.python or not third:
        return None
    return third[0]


def list_installed(needs: BaseNeeds) -> dict[str, Value]:
    """Return the versions that are installed from the lockfile's wheels."""
    versions = {}
    if needs.label is None:
        versions["tensorflow"] = Value(needs.tensorflow)
    if needs.cuda_wheels:
        versions |= {
            "cuda": Value(needs.cuda),
            "cudnn": Value(needs.cudnn),
            "nccl": Value(needs.nccl),
        }
    return versions


def list_wheel_notes(needs: BaseNeeds, tables: Tables) -> Iterator[str]:
    """Yield notes on the locked Python, and on its TensorFlow as a wheel."""
    if needs.prefix == "conda":
        yield "The locked Python is conda's build; this is another build of the same version."
    if needs.tensorflow is None or needs.label is not None or needs.local is not None:
        return
    build, python = find_tested_build(needs.tensorflow, tables), minor(needs.python or "")
    horizon = tables.builds.horizon
    newer = horizon.describe_beyond(needs.tensorflow)
    if newer is not None:
        yield f"{newer}."
    elif build is None:
        yield (
            f"TensorFlow {needs.tensorflow} is not among the builds known here, "
            f"up to {horizon.through}."
        )
    elif python and python not in build.python:
        known = ", ".join(build.python)
        yield (
            f"Wheels of TensorFlow {minor(needs.tensorflow)} are known for Python {known}, "
            f"not for {python}."
        )


def describe_install(needs: BaseNeeds) -> str:
    """Return a sentence on how the locked TensorFlow gets into an image without one."""
    if needs.tensorflow is None:
        return "A plain Python, as no TensorFlow is locked."
    if needs.label is not None:
        return (
            f"NVIDIA's build {needs.label} of TensorFlow {needs.tensorflow} is not on an index; "
            "this is another build."
        )
    if needs.cuda_wheels:
        return (
            f"TensorFlow {needs.wheel} and its CUDA are installed from their locked wheels, "
            "by hash."
        )
    return f"TensorFlow {needs.wheel} is installed from its locked wheel, by hash."


def list_obstacles(needs: BaseNeeds) -> Iterator[str]:
    """Yield why an image without CUDA cannot be the locked environment."""
    if needs.gpu and not needs.cuda_wheels and not needs.idle:
        yield "It has no CUDA, and none of NVIDIA's wheels is locked."


def _list_notes(row: SlimImages, python: str, needs: BaseNeeds, tables: Tables) -> Iterator[str]:
    if needs.python is not None and minor(needs.python) != row.python:
        yield f"No slim image has Python {minor(needs.python)}; {row.python} is the nearest."
    elif needs.python is not None and python == row.python:
        yield (
            f"No image of {needs.python} on {row.suite} is known; "
            f"the tag names the newest {row.python} on it."
        )
    yield from list_wheel_notes(needs, tables)
