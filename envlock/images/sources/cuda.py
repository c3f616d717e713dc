"""NVIDIA's CUDA images with a Python beside them; TensorFlow is installed from hashed wheels. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envlock.data.images import BaseSystem, CudaImage, SlimImages, Tables
from envlock.images.candidate import Candidate, Value, Wanted, likeness, minor, numbers
from envlock.images.reference import DOCKER_HUB, Reference
from envlock.images.sources import slim

REPOSITORY = "nvidia/cuda"
LAST_DELETED = (10, 2)
"""Tags of this CUDA and older ones were announced to be deleted in July 2023."""


def candidates(asked: Wanted, tables: Tables) -> Iterable[Candidate]:
    """Return an image for each point release and Ubuntu of the lock's CUDA, else of the nearest.

    None where the lock has its CUDA from wheels, or TensorFlow from NVIDIA: then there is nothing to gain.
    """
    if not asked.gpu or asked.tensorflow is None or asked.cuda_wheels or asked.label is not None:
        return []
    build = slim.tested_build(asked.tensorflow, tables)
    version = asked.cuda or (build.cuda if build else None)
    if version is None:
        return []
    closest = max(likeness(minor(version), Value(minor(row.cuda))) for row in tables.cuda.image)
    fitting = [row for row in tables.cuda.image if likeness(minor(version), Value(minor(row.cuda))) == closest]
    return [_candidate(row, asked, tables) for row in fitting]


def _candidate(row: CudaImage, asked: Wanted, tables: Tables) -> Candidate:
    system = next(system for system in tables.python.system if system.name == f"ubuntu{row.ubuntu}")
    donor = _donor(system, asked, tables)
    tag, python = slim.tag_of(donor, asked.python) if donor else (None, None)
    held = {**slim.installed(asked), "python": Value(python), "libc": Value(system.libc)}
    held |= {"cuda": Value(row.cuda), "cudnn": Value(row.cudnn), "nccl": Value(row.nccl)}
    obstacles = () if donor else (f"No image has a Python for its glibc, {system.libc}.",)
    foreign = asked.platform == "linux/arm64" and not row.arm64
    return Candidate(
        route="cuda",
        reference=Reference(DOCKER_HUB, REPOSITORY, row.tag),
        holds=held,
        lead=f"It has CUDA {row.cuda} and cuDNN; TensorFlow {asked.tensorflow} is installed from its locked wheel.",
        exact=True,
        obstacles=(*obstacles, "It is not available for arm64.") if foreign else obstacles,
        notes=tuple(_notes(row, tag, asked, tables)),
        python_from=Reference(DOCKER_HUB, slim.REPOSITORY, tag) if tag else None,
        newest=(not row.end_of_life, *numbers(row.cuda)),
    )


def _donor(system: BaseSystem, asked: Wanted, tables: Tables) -> SlimImages | None:
    """Return the images to take Python from: of the newest suite whose C library is not newer than the image's own."""
    libc = {row.name: numbers(row.libc) for row in tables.python.system}
    rows = [row for row in slim.nearest_pythons(asked.python, tables) if libc[row.suite] <= numbers(system.libc)]
    exact = [row for row in rows if slim.tag_of(row, asked.python)[1] != row.python]
    return max(exact or rows, key=lambda row: libc[row.suite], default=None)


def _notes(row: CudaImage, tag: str | None, asked: Wanted, tables: Tables) -> Iterator[str]:
    if tag is not None:
        yield f"It has no Python; the one of {slim.REPOSITORY.removeprefix('library/')}:{tag} is copied."
    if asked.cuda is None:
        yield f"The locked CUDA is unknown; the locked TensorFlow was built for {row.cuda}."
    if numbers(row.cuda)[:2] <= LAST_DELETED:
        yield "NVIDIA announced the end of its tags in July 2023: the registry may have deleted it."
    elif row.end_of_life:
        yield "NVIDIA deletes tags half a year after their end of life, and this one has reached it."
    yield from slim.wheel_notes(asked, tables)
