"""What TensorFlow itself needs of the CUDA in a base image. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from envlock.data.compatibility import failing, ptx_cuda
from envlock.data.images import Tables, WheelBuild
from envlock.images.candidate import Candidate
from envlock.images.wanted import Wanted
from envlock.runtime.cuda.gpu_code import NATIVE, NONE, judge
from envlock.runtime.release import minor, numbers


def tested_build(tensorflow: str | None, tables: Tables) -> WheelBuild | None:
    """Return the tested build of this minor version of TensorFlow, if it is known."""
    rows = [row for row in tables.builds.build if minor(row.tensorflow) == minor(tensorflow or "")]
    return rows[0] if rows else None


def grounded(candidate: Candidate, asked: Wanted, tables: Tables) -> Candidate:
    """Return the candidate with what TensorFlow needs and it has not; NVIDIA's own builds were made for their image."""
    if candidate.route == "ngc" or not asked.gpu:
        return candidate
    return replace(candidate, floors=tuple(_floors(candidate, asked, tables)))


def _floors(candidate: Candidate, asked: Wanted, tables: Tables) -> Iterator[str]:
    """Yield sentences.

    Source: IsSourceCompatibleWithCudnnLibrary in cuda_dnn.cc of TensorFlow and XLA: the same major version and at least
    the same minor version of cuDNN, else no convolution runs.
    """
    build = tested_build(asked.tensorflow, tables)
    floor = asked.compiled_against or (build.cudnn if build else None)
    held = candidate.holds.get("cudnn")
    if candidate.route != "cuda" or held is None or held.version is None:
        return
    if floor is not None:
        own, needs = numbers(held.version)[:2], numbers(floor)[:2]
        if own[:1] != needs[:1] or own < needs:
            yield (
                f"TensorFlow {asked.tensorflow} was compiled against cuDNN {minor(floor)} and needs that or a later "
                f"{needs[0]}.x; it has {held.version}."
            )
            return
    if asked.cudnn is not None and numbers(held.version)[:1] != numbers(asked.cudnn)[:1]:
        yield f"The locked cuDNN is {asked.cudnn}; it has {held.version}, which is another library."


def code_for(asked: Wanted) -> Iterator[str]:
    """Yield a doubt for each locked GPU for which this TensorFlow has no code that the locked driver can run."""
    version = ".".join(map(str, numbers(asked.tensorflow or "")))
    known = ptx_cuda(version) if version and asked.label is None else None
    for capability in asked.capabilities if asked.targets else ():
        verdict = judge(list(asked.targets), capability, known or asked.cuda, asked.cuda_driver)
        met = (
            failing(version, capability)
            if version and asked.label is None and verdict.kind != NATIVE
            else None
        )
        if met is not None:
            yield f"TensorFlow holds no machine code for compute capability {capability}: {met.works}."
        elif verdict.kind == NONE or verdict.runs is False:
            yield f"{verdict.sentence.rstrip('.')}."
