"""The requirements of TensorFlow itself for the CUDA in a base image. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from envlock.data.compatibility import find_failure, find_ptx_cuda
from envlock.data.image_tables import Tables, WheelBuild
from envlock.image.bases.candidate import Candidate
from envlock.image.bases.needs import BaseNeeds
from envlock.runtime.cuda.gpu_code import NATIVE, NONE, judge
from envlock.runtime.release import minor, parse_release


def find_tested_build(tensorflow: str | None, tables: Tables) -> WheelBuild | None:
    """Return the tested build of this minor version of TensorFlow; None if unknown."""
    for row in tables.builds.build:
        if minor(row.tensorflow) == minor(tensorflow or ""):
            return row
    return None


def add_requirements(candidate: Candidate, needs: BaseNeeds, tables: Tables) -> Candidate:
    """Return the candidate with the requirements of TensorFlow that it does not meet."""
    # NVIDIA's own builds of TensorFlow were made for the image that they are in.
    if candidate.route == "ngc" or not needs.gpu:
        return candidate
    return replace(candidate, unmet_requirements=tuple(_check_cudnn(candidate, needs, tables)))


def _check_cudnn(candidate: Candidate, needs: BaseNeeds, tables: Tables) -> Iterator[str]:
    """Yield why TensorFlow cannot use the cuDNN of an image.

    Source: IsSourceCompatibleWithCudnnLibrary in cuda_dnn.cc of TensorFlow and XLA: the same major
    version and at least the same minor version of cuDNN, else no convolution runs.
    """
    held = candidate.holds.get("cudnn")
    if candidate.route != "cuda" or held is None or held.version is None:
        return
    build = find_tested_build(needs.tensorflow, tables)
    oldest = needs.compiled_against
    # Somebody's own build was compiled against a cuDNN of their choice.
    if not oldest and build is not None and needs.local is None:
        oldest = build.cudnn
    if oldest is not None:
        own, required = parse_release(held.version)[:2], parse_release(oldest)[:2]
        if own[:1] != required[:1] or own < required:
            yield (
                f"TensorFlow {needs.wheel} was compiled against cuDNN {minor(oldest)} "
                f"and needs that or a later {required[0]}.x; the image has {held.version}."
            )
            return
    if needs.cudnn is None:
        return
    # The library's name has the major version, so that of another one is never opened.
    if parse_release(held.version)[:1] != parse_release(needs.cudnn)[:1]:
        yield f"The locked cuDNN is {needs.cudnn}; the image has {held.version}, which is another library."


def check_gpu_code(needs: BaseNeeds) -> Iterator[str]:
    """Yield a doubt for each locked GPU for which TensorFlow has no code that its driver can run."""
    if not needs.targets:
        return
    version = ".".join(map(str, parse_release(needs.tensorflow or "")))
    # The tables are about the builds on the index: of one of NVIDIA's, or of somebody's own, only
    # its own build info tells.
    is_indexed = bool(version) and needs.label is None and needs.local is None
    cuda = (find_ptx_cuda(version) if is_indexed else None) or needs.built_for or needs.cuda
    for capability in needs.capabilities:
        verdict = judge(list(needs.targets), capability, cuda, needs.cuda_driver)
        failure = (
            find_failure(version, capability) if is_indexed and verdict.kind != NATIVE else None
        )
        if failure is not None:
            yield (
                f"TensorFlow holds no machine code for compute capability {capability}: "
                f"{failure.works}."
            )
        elif verdict.kind == NONE or verdict.runs is False:
            yield f"{verdict.sentence.rstrip('.')}."
