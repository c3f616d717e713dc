"""NVIDIA's CUDA images with a Python beside them; TensorFlow is installed from hashed wheels. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envlock.data.images import CudaImage, Tables
from envlock.images.candidate import Candidate, Value
from envlock.images.floors import tested_build
from envlock.images.reference import DOCKER_HUB, Reference
from envlock.images.sources import slim
from envlock.images.sources.interpreters import Interpreter, interpreter
from envlock.images.wanted import Wanted
from envlock.runtime.release import numbers

REPOSITORY = "nvidia/cuda"
LAST_DELETED = (10, 2)
"""Tags of this CUDA and older ones were announced to be deleted in July 2023."""


def candidates(asked: Wanted, tables: Tables) -> Iterable[Candidate]:
    """Return an image for each point release and Ubuntu of a CUDA that has the lock's libraries.

    None where the lock has its CUDA from wheels, or TensorFlow from NVIDIA: then there is nothing to gain.
    """
    if not asked.gpu or asked.tensorflow is None or asked.cuda_wheels or asked.label is not None:
        return []
    build = tested_build(asked.tensorflow, tables)
    versions = [
        version for version in (asked.cuda, build.cuda if build else None) if version is not None
    ]
    if not versions:
        return []
    known = {line(row.cuda) for row in tables.cuda.image}
    wanted = line(versions[0])
    nearest = (
        wanted
        if wanted in known
        else max((one for one in known if one <= wanted), default=min(known))
    )
    oldest = min(numbers(version)[:2] for version in versions)
    rows = [row for row in tables.cuda.image if line(row.cuda) == nearest]
    cudnn = asked.cudnn or (build.cudnn if build else None)
    return [_candidate(row, asked, tables) for row in _worth_showing(rows, oldest, cudnn)]


def _worth_showing(
    rows: list[CudaImage], oldest: tuple[int, ...], cudnn: str | None
) -> list[CudaImage]:
    """Return the images from the locked CUDA on, and the next older ones where only they have its cuDNN major.

    TensorFlow opens cuDNN by a name with the major version in it, so that another one is never taken; the CUDA runtime
    is the same library in all of a line.
    """
    late = [row for row in rows if numbers(row.cuda) >= oldest]
    same = [row for row in rows if cudnn is None or numbers(row.cudnn)[:1] == numbers(cudnn)[:1]]
    if any(row in late for row in same) or not same:
        return late or rows
    newest = max(numbers(row.cuda) for row in same)
    return [*late, *(row for row in same if numbers(row.cuda) == newest)]


def line(cuda: str) -> tuple[int, ...]:
    """Return what the names of a CUDA's libraries share: the major version from 11.1 on, before that the minor one.

    Source: libcudart.so.10.0 and .10.1 are two libraries, and 11.0 has libcusolver.so.10, 11.1 has .11.
    """
    version = numbers(cuda)[:2]
    return version if version < (11, 1) else version[:1]


def _candidate(row: CudaImage, asked: Wanted, tables: Tables) -> Candidate:
    system = next(system for system in tables.python.system if system.name == f"ubuntu{row.ubuntu}")
    python = interpreter(system, asked, tables)
    held = {**slim.installed(asked), **slim.held_by(system)}
    held |= {"python": python.python, "compiler": python.compiler} if python else {}
    held |= {"cuda": Value(row.cuda), "cudnn": Value(row.cudnn), "nccl": Value(row.nccl)}
    obstacles = () if python else (f"No image has a Python for its glibc, {system.libc}.",)
    foreign = asked.platform == "linux/arm64" and not row.arm64
    return Candidate(
        route="cuda",
        reference=Reference(DOCKER_HUB, REPOSITORY, row.tag),
        holds=held,
        lead=f"It has CUDA {row.cuda} and cuDNN; TensorFlow {asked.tensorflow} is installed from its locked wheel.",
        exact=True,
        obstacles=(*obstacles, "It is not available for arm64.") if foreign else obstacles,
        notes=tuple(_notes(row, python, asked, tables)),
        python_from=python.image if python else None,
        python_archive=python.archive if python else None,
        newest=(not row.end_of_life, *numbers(row.cuda)),
    )


def _notes(
    row: CudaImage, python: Interpreter | None, asked: Wanted, tables: Tables
) -> Iterator[str]:
    if python is not None:
        yield python.note
    if asked.cuda is None:
        yield f"The locked CUDA is unknown; the locked TensorFlow was built for {row.cuda}."
    if numbers(row.cuda)[:2] <= LAST_DELETED:
        yield "NVIDIA announced the end of its tags in July 2023: the registry may have deleted it."
    elif row.end_of_life:
        yield "NVIDIA deletes tags half a year after their end of life, and this one has reached it."
    yield from slim.wheel_notes(asked, tables)
