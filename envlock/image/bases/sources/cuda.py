"""NVIDIA's CUDA images with a Python added; TensorFlow is installed from hashed wheels. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envlock.data.image_tables import CudaImage, Tables
from envlock.image.bases.candidate import Candidate, Value
from envlock.image.bases.cuda_requirements import find_tested_build
from envlock.image.bases.needs import BaseNeeds, list_outside_libraries
from envlock.image.bases.reference import DOCKER_HUB, Reference
from envlock.image.bases.sources import slim
from envlock.image.bases.sources.interpreters import Interpreter, choose_interpreter
from envlock.runtime.release import parse_release

REPOSITORY = "nvidia/cuda"
LAST_DELETED = (10, 2)
"""Tags of this CUDA and older ones were announced for deletion in July 2023."""


def list_candidates(needs: BaseNeeds, tables: Tables) -> Iterable[Candidate]:
    """Return an image for each point release and Ubuntu of a CUDA that has the locked libraries;
    none if the CUDA is locked as wheels, or TensorFlow is NVIDIA's build: such an image would not
    help then.
    """
    if not needs.gpu or needs.tensorflow is None or needs.cuda_wheels or needs.label is not None:
        return []
    build = find_tested_build(needs.tensorflow, tables)
    versions = []
    cudnn = needs.cudnn or needs.compiled_against
    cuda = needs.cuda or needs.built_for
    if cuda is not None:
        versions.append(cuda)
    # What the official wheel was built for says nothing of somebody's own build.
    if build is not None and (needs.local is None or not versions):
        versions.append(build.cuda)
        if not cudnn:
            cudnn = build.cudnn
    if not versions:
        return []
    line = _find_nearest_line(get_line(versions[0]), tables)
    oldest = min(parse_release(version)[:2] for version in versions)
    rows = [row for row in tables.cuda.image if get_line(row.cuda) == line]
    return [_make_candidate(row, needs, tables) for row in _select_images(rows, oldest, cudnn)]


def _find_nearest_line(wanted: tuple[int, ...], tables: Tables) -> tuple[int, ...]:
    """Return the same CUDA line, else the newest of the older ones, else the oldest of all."""
    known = {get_line(row.cuda) for row in tables.cuda.image}
    older = [line for line in known if line <= wanted]
    return max(older, default=min(known))


def _select_images(
    rows: list[CudaImage], oldest: tuple[int, ...], cudnn: str | None
) -> list[CudaImage]:
    """Return the images from the locked CUDA on, and older ones if only they have its cuDNN major.

    TensorFlow opens cuDNN under a name with the major version, so another one is never loaded; the
    CUDA runtime is the same library in all of a line.
    """
    late = [row for row in rows if parse_release(row.cuda) >= oldest]
    same_cudnn = rows
    if cudnn is not None:
        major = parse_release(cudnn)[:1]
        same_cudnn = [row for row in rows if parse_release(row.cudnn)[:1] == major]
    if any(row in late for row in same_cudnn) or not same_cudnn:
        return late or rows
    newest = max(same_cudnn, key=lambda row: parse_release(row.cuda)).cuda
    return [*late, *(row for row in same_cudnn if parse_release(row.cuda) == parse_release(newest))]


def get_line(cuda: str) -> tuple[int, ...]:
    """Return the numbers in the names of a CUDA's libraries: the major one from 11.1 on, else two.

    Source: libcudart.so.10.0 and .10.1 are two libraries, and 11.0 has libcusolver.so.10, 11.1 has
    .11.
    """
    version = parse_release(cuda)[:2]
    if version < (11, 1):
        return version
    return version[:1]


def _make_candidate(row: CudaImage, needs: BaseNeeds, tables: Tables) -> Candidate:
    name = f"ubuntu{row.ubuntu}"
    system = next(system for system in tables.python.system if system.name == name)
    python = choose_interpreter(system, needs, tables)
    holds = {
        **slim.list_installed(needs),
        **slim.describe_system(system),
        "cuda": Value(row.cuda),
        "cudnn": Value(row.cudnn),
        "nccl": Value(row.nccl),
    }
    obstacles = []
    python_from = python_archive = None
    if python is None:
        obstacles.append(f"No image has a Python for its glibc, {system.libc}.")
    else:
        holds |= {"python": python.python, "compiler": python.compiler}
        python_from, python_archive = python.image, python.archive
    if needs.platform == "linux/arm64" and not row.arm64:
        obstacles.append("It is not available for arm64.")
    tag = row.tag
    # NVIDIA publishes both of each; only this one has the programs and CUPTI of a toolkit.
    if not needs.idle and {"cupti", "ptxas"}.intersection(list_outside_libraries(needs)):
        tag = tag.replace("-runtime-", "-devel-")
    return Candidate(
        route="cuda",
        reference=Reference(DOCKER_HUB, REPOSITORY, tag),
        holds=holds,
        lead=f"It has CUDA {row.cuda} and cuDNN; "
        f"TensorFlow {needs.wheel} is installed from its locked wheel.",
        exact=True,
        obstacles=tuple(obstacles),
        notes=(*slim.list_support_notes(system), *_list_notes(row, python, needs, tables)),
        python_from=python_from,
        python_archive=python_archive,
        newest=(not row.end_of_life, *parse_release(row.cuda)),
    )


def _list_notes(
    row: CudaImage, python: Interpreter | None, needs: BaseNeeds, tables: Tables
) -> Iterator[str]:
    if python is not None:
        yield python.note
    if needs.cuda is None:
        built_for = needs.built_for or row.cuda
        yield f"The locked CUDA is unknown; the locked TensorFlow was built for {built_for}."
    if parse_release(row.cuda)[:2] <= LAST_DELETED:
        yield "NVIDIA announced the end of its tags in July 2023: the registry may have deleted it."
    elif row.end_of_life:
        yield "NVIDIA deletes tags half a year after their end of life, and this one has reached it."
    yield from slim.list_wheel_notes(needs, tables)
