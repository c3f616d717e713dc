"""Which driver and which GPUs can run a CUDA version. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from envlock.data.image_tables import (
    CudaImagesTable,
    GpuSupport,
    find_driver_floor,
    find_oldest_driver,
)
from envlock.image.bases.candidate import Candidate, Value
from envlock.image.bases.cuda_requirements import check_gpu_code
from envlock.image.bases.needs import BaseNeeds
from envlock.runtime.release import parse_release

JETSON = (
    "It is for desktop and server GPUs, and the lockfile is from a Jetson: "
    "NVIDIA's images for those have tags that end with `-igpu`, and none of them is known here."
)

# Sources: https://developer.nvidia.com/embedded/jetpack and
# https://nvidia.github.io/TensorRT-Edge-LLM/0.10.1/user_guide/getting_started/support-matrix.html;
# build_info of the aarch64 wheels 2.18.0 to 2.22.0rc0 has is_cuda_build False.
JETPACK = (
    "NVIDIA's images for JetPack 6 and older have tags that end with `-igpu`, none of which is known here; "
    "JetPack 7 (Thor, and Orin from 7.2 on) has CUDA 13, for which NVIDIA made no TensorFlow image; "
    "TensorFlow's wheels for arm64 hold no CUDA"
)
TEGRA = f"It is for desktop and server GPUs. {JETPACK}."


def judge_candidate(candidate: Candidate, needs: BaseNeeds, table: CudaImagesTable) -> Candidate:
    """Return the candidate with sentences on the locked driver and GPUs with its CUDA."""
    cuda = candidate.holds.get("cuda", Value())
    verdict = judge_driver(cuda, needs, table)
    doubts = []
    if verdict.doubt is not None:
        doubts.append(verdict.doubt)
    doubts += judge_gpus(cuda, candidate.lowest, needs, table)
    if candidate.route != "ngc" and needs.gpu:
        doubts += check_gpu_code(needs)
    obstacles = candidate.obstacles
    brings_cuda = candidate.route != "wheels"
    # A candidate that was judged before its registry was asked already has the sentence.
    if needs.jetson is not None and needs.gpu and brings_cuda and JETSON not in obstacles:
        obstacles = (*obstacles, JETSON)
    return replace(candidate, obstacles=obstacles, doubts=tuple(doubts), driver=verdict.note)


def has_driver(driver: str, floor: str) -> bool:
    """Return whether a driver is a known one or newer; 535.104 stands for all that begin so."""
    wanted = parse_release(driver)
    return wanted >= parse_release(floor)[: len(wanted)]


def find_newest_cuda(driver: str, table: CudaImagesTable) -> str | None:
    """Return the newest CUDA that came with a driver or an older one."""
    versions = [row.cuda for row in table.driver if has_driver(driver, row.driver)]
    return max(versions, key=parse_release, default=None)


class DriverVerdict(NamedTuple):
    """Why a driver may not run a CUDA version, or how it does; both None if nothing is known."""

    doubt: str | None = None
    note: str | None = None


def judge_driver(cuda: Value, needs: BaseNeeds, table: CudaImagesTable) -> DriverVerdict:
    """Return whether the locked driver runs this CUDA."""
    if cuda.version is None or needs.driver is None:
        return DriverVerdict()
    own, oldest = find_driver_floor(cuda.version, table), find_oldest_driver(cuda.version, table)
    if own is None or oldest is None:
        return DriverVerdict()
    name = f"CUDA {cuda.version}"
    if parse_release(needs.driver) >= parse_release(own.driver):
        return DriverVerdict(
            note=f"Driver {needs.driver} is new enough for {name}, which came with {own.driver}."
        )
    if parse_release(needs.driver) >= parse_release(oldest):
        return DriverVerdict(
            note=f"Driver {needs.driver} is older than {own.driver}, which came with {name}; "
            f"it runs it by minor version compatibility ({oldest} or newer), except for PTX of {name}."
        )
    return DriverVerdict(
        doubt=f"Driver {needs.driver} is too old for {name}, which needs {oldest} or newer; "
        "on data-centre GPUs the cuda-compat of the image may suffice."
    )


def judge_gpus(
    cuda: Value, lowest: str | None, needs: BaseNeeds, table: CudaImagesTable
) -> Iterator[str]:
    """Yield a doubt for each locked GPU that this CUDA does not support, or that is below `lowest`,
    the lowest GPU of an image.
    """
    for capability in needs.capabilities:
        if lowest is not None and parse_release(capability) < parse_release(lowest):
            yield f"It is for GPUs of compute capability {lowest} or higher; locked {capability}."
        first = find_first_cuda(capability, table)
        if first is None or cuda.version is None:
            continue
        if parse_release(cuda.version)[:2] < parse_release(first):
            yield (
                f"CUDA {cuda.version} does not support compute capability {capability} "
                f"({first} and later do)."
            )


def find_first_cuda(capability: str, table: CudaImagesTable) -> str | None:
    """Return the first CUDA whose machine code runs on a GPU; None if no source states one."""
    versions = [row.cuda for row in list_runnable_code(capability, table)]
    return min(versions, key=parse_release, default=None)


def is_tegra(capability: str, table: CudaImagesTable) -> bool:
    """Return whether GPUs of a compute capability are those of Jetson and DRIVE."""
    return any(row.tegra for row in table.gpu if row.compute_capability == capability)


def list_runnable_code(capability: str, table: CudaImagesTable) -> list[GpuSupport]:
    """Return the compute capabilities whose machine code runs on a GPU, the lowest first.

    Machine code for a lower minor number runs on the higher ones of the same major number, but not
    on or from a Tegra. Source: CUDA C++ Programming Guide, Binary Compatibility.
    """
    wanted = parse_release(capability)
    found = []
    for row in table.gpu:
        known = parse_release(row.compute_capability)
        if known == wanted:
            if row.tegra:
                return [row]
            found.append(row)
        elif known[0] == wanted[0] and known < wanted and not row.tegra:
            found.append(row)
    return sorted(found, key=lambda row: parse_release(row.compute_capability))
