"""Python's slim images: everything else is installed from hashed wheels. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envlock.data.images import SlimImages, Tables, WheelBuild
from envlock.images.candidate import Candidate, Value, Wanted, likeness, minor, numbers
from envlock.images.reference import DOCKER_HUB, Reference

REPOSITORY = "library/python"
NEWEST = "bookworm"
"""For a lock that does not tell its C library."""


def candidates(asked: Wanted, tables: Tables) -> Iterable[Candidate]:
    """Return an image for each suite of Debian that has the lock's Python, else the nearest."""
    libc = {row.name: row.libc for row in tables.python.system}
    for row in nearest_pythons(asked.python, tables):
        tag, python = tag_of(row, asked.python)
        yield Candidate(
            route="wheels",
            reference=Reference(DOCKER_HUB, REPOSITORY, tag),
            holds={**installed(asked), "python": Value(python), "libc": Value(libc[row.suite])},
            lead=_lead(asked),
            exact=asked.tensorflow is not None and asked.label is None,
            obstacles=tuple(_obstacles(asked)),
            notes=tuple(_notes(row, python, asked, tables)),
            newest=(row.suite == NEWEST, *numbers(libc[row.suite])),
        )


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


def installed(asked: Wanted) -> dict[str, Value]:
    """Return what comes with the lock's own wheels."""
    own = {} if asked.label is not None else {"tensorflow": Value(asked.tensorflow)}
    if asked.cuda_wheels:
        own |= {name: Value(getattr(asked, name)) for name in ("cuda", "cudnn", "nccl")}
    return own


def tested_build(tensorflow: str | None, tables: Tables) -> WheelBuild | None:
    """Return the tested build of this minor version of TensorFlow, if it is known."""
    rows = [row for row in tables.builds.build if minor(row.tensorflow) == minor(tensorflow or "")]
    return rows[0] if rows else None


def wheel_notes(asked: Wanted, tables: Tables) -> Iterator[str]:
    """Yield what is odd about the lock's TensorFlow as a wheel."""
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


def _lead(asked: Wanted) -> str:
    if asked.tensorflow is None:
        return "A plain Python, as no TensorFlow is locked."
    if asked.label is not None:
        return (
            f"NVIDIA's build {asked.label} of TensorFlow {asked.tensorflow} is not on an index; this is another build."
        )
    if asked.cuda_wheels:
        return f"TensorFlow {asked.tensorflow} and its CUDA are installed from their locked wheels, by hash."
    return f"TensorFlow {asked.tensorflow} is installed from its locked wheel, by hash."


def _obstacles(asked: Wanted) -> Iterator[str]:
    if asked.gpu and not asked.cuda_wheels:
        yield "It has no CUDA, and none of NVIDIA's wheels is locked."


def _notes(row: SlimImages, python: str, asked: Wanted, tables: Tables) -> Iterator[str]:
    if asked.python is not None and minor(asked.python) != row.python:
        yield f"No slim image has Python {minor(asked.python)}; {row.python} is the nearest."
    elif asked.python is not None and python == row.python:
        yield f"No image of {asked.python} on {row.suite} is known; the tag names the newest {row.python} on it."
    yield from wheel_notes(asked, tables)
