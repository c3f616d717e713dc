"""Python's slim images: everything else is installed from hashed wheels. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envlock.data.images import BaseSystem, SlimImages, Tables
from envlock.images.candidate import Candidate, Value, likeness
from envlock.images.floors import tested_build
from envlock.images.reference import DOCKER_HUB, Reference
from envlock.images.wanted import Wanted
from envlock.runtime.release import minor, numbers

REPOSITORY = "library/python"
NEWEST = "bookworm"
"""For a lock that does not tell its C library."""


def candidates(asked: Wanted, tables: Tables) -> Iterable[Candidate]:
    """Return an image for each suite of Debian that has the lock's Python, else the nearest."""
    systems = {row.name: row for row in tables.python.system}
    for row in nearest_pythons(asked.python, tables):
        tag, python = tag_of(row, asked.python)
        system = systems[row.suite]
        yield Candidate(
            route="wheels",
            reference=Reference(DOCKER_HUB, REPOSITORY, tag),
            holds={
                **installed(asked),
                **held_by(system),
                "python": Value(version_of(row, asked.python)),
            },
            lead=lead(asked),
            exact=asked.tensorflow is not None and asked.label is None,
            obstacles=tuple(obstacles(asked)),
            notes=tuple(_notes(row, python, asked, tables)),
            newest=(row.suite == NEWEST, *numbers(system.libc)),
        )


def held_by(system: BaseSystem) -> dict[str, Value]:
    """Return what a system tells of an image with it: what it is, its C library, and the compiler of its Python."""
    return {"os": Value(system.os), "libc": Value(system.libc), "compiler": Value(system.compiler)}


def nearest_pythons(python: str | None, tables: Tables) -> list[SlimImages]:
    """Return the images of this minor version of Python, else of the nearest; of the newest where none is asked for."""
    rows = tables.python.slim
    newest = max((row.python for row in rows), key=numbers)
    asked = minor(python or newest)
    closest = max(likeness(asked, Value(row.python)) for row in rows)
    return [row for row in rows if likeness(asked, Value(row.python)) == closest]


def tag_of(row: SlimImages, python: str | None) -> tuple[str, str]:
    """Return the tag for this Python on this suite and the version it stands for: the very patch where there is one."""
    patch = numbers(python or "")[2:3]
    exact = minor(python or "") == row.python and patch != () and row.first <= patch[0] <= row.last
    version = f"{row.python}.{patch[0]}" if exact else row.python
    return f"{version}-slim-{row.suite}", version


def version_of(row: SlimImages, asked: str | None) -> str:
    """Return the Python that a tag stands for: one without a patch is never older than the newest patch known."""
    _, python = tag_of(row, asked)
    patch = numbers(asked or "")[2:3]
    earlier = minor(asked or "") == row.python and patch != () and patch[0] < row.first
    return f"{row.python}.{row.last}" if python == row.python and earlier else python


def installed(asked: Wanted) -> dict[str, Value]:
    """Return what comes with the lock's own wheels."""
    own = {} if asked.label is not None else {"tensorflow": Value(asked.tensorflow)}
    if asked.cuda_wheels:
        own |= {name: Value(getattr(asked, name)) for name in ("cuda", "cudnn", "nccl")}
    return own


def wheel_notes(asked: Wanted, tables: Tables) -> Iterator[str]:
    """Yield what is odd about the lock's Python, and about its TensorFlow as a wheel."""
    if asked.prefix == "conda":
        yield "The locked Python is conda's build; this is another build of the same version."
    if asked.tensorflow is None or asked.label is not None:
        return
    build, python = tested_build(asked.tensorflow, tables), minor(asked.python or "")
    newest = max((row.tensorflow for row in tables.builds.build), key=numbers)
    if build is None:
        side = "newer than" if numbers(asked.tensorflow) > numbers(newest) else "none of"
        yield f"TensorFlow {asked.tensorflow} is {side} the builds known here, up to {newest}."
    elif python and python not in build.python:
        known = ", ".join(build.python)
        yield f"Wheels of TensorFlow {minor(asked.tensorflow)} are known for Python {known}, not for {python}."


def lead(asked: Wanted) -> str:
    """Return how the lock's TensorFlow gets into an image without one."""
    if asked.tensorflow is None:
        return "A plain Python, as no TensorFlow is locked."
    if asked.label is not None:
        return f"NVIDIA's build {asked.label} of TensorFlow {asked.tensorflow} is not on an index; this is another build."
    if asked.cuda_wheels:
        return f"TensorFlow {asked.tensorflow} and its CUDA are installed from their locked wheels, by hash."
    return f"TensorFlow {asked.tensorflow} is installed from its locked wheel, by hash."


def obstacles(asked: Wanted) -> Iterator[str]:
    """Yield why an image without CUDA cannot do what the lock does."""
    if asked.gpu and not asked.cuda_wheels:
        yield "It has no CUDA, and none of NVIDIA's wheels is locked."


def _notes(row: SlimImages, python: str, asked: Wanted, tables: Tables) -> Iterator[str]:
    if asked.python is not None and minor(asked.python) != row.python:
        yield f"No slim image has Python {minor(asked.python)}; {row.python} is the nearest."
    elif asked.python is not None and python == row.python:
        yield f"No image of {asked.python} on {row.suite} is known; the tag names the newest {row.python} on it."
    yield from wheel_notes(asked, tables)
