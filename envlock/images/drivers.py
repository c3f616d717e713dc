"""Which driver and which GPU a CUDA needs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from envlock.data.images import CudaImagesTable, DriverFloor
from envlock.images.candidate import Candidate, Value
from envlock.images.floors import code_for
from envlock.images.wanted import Wanted
from envlock.runtime.release import minor, numbers

JETSON = (
    "It is for desktop and server GPUs, and the lockfile is from a Jetson: NVIDIA's images for those have tags that "
    "end with `-igpu`, and none of them is known here."
)


def judged(candidate: Candidate, asked: Wanted, table: CudaImagesTable) -> Candidate:
    """Return the candidate with what is to be said of the lock's driver and GPUs under its CUDA."""
    cuda = candidate.holds.get("cuda", Value())
    doubt, driver = judge_driver(cuda, asked, table)
    doubts = [*([doubt] if doubt else []), *judge_gpus(cuda, candidate.lowest, asked, table)]
    if candidate.route != "ngc":
        doubts += code_for(asked)
    obstacles = candidate.obstacles
    if (
        asked.jetson is not None
        and asked.gpu
        and candidate.route != "wheels"
        and JETSON not in obstacles
    ):
        obstacles = (*obstacles, JETSON)
    return replace(candidate, obstacles=obstacles, doubts=tuple(doubts), driver=driver)


def driver_floor(cuda: str, table: CudaImagesTable) -> DriverFloor | None:
    """Return which driver came with this CUDA: its own row, else the oldest of the same minor version."""
    rows = [row for row in table.driver if minor(row.cuda) == minor(cuda)]
    exact = [row for row in rows if numbers(row.cuda) == numbers(cuda)]
    return min(exact or rows, key=lambda row: numbers(row.driver), default=None)


def oldest_driver(cuda: str, table: CudaImagesTable) -> str | None:
    """Return the oldest driver that runs this CUDA at all: that of its major version, where there is such a rule."""
    major = [row for row in table.minor_version if numbers(row.cuda)[0] == numbers(cuda)[0]]
    floor = driver_floor(cuda, table)
    floors = [row.driver for row in [*major, *([floor] if floor else [])]]
    return min(floors, key=numbers, default=None)


def judge_driver(
    cuda: Value, asked: Wanted, table: CudaImagesTable
) -> tuple[str | None, str | None]:
    """Return a doubt, and a note, about the lock's driver under this CUDA."""
    if cuda.version is None or asked.driver is None:
        return None, None
    own, oldest = driver_floor(cuda.version, table), oldest_driver(cuda.version, table)
    if own is None or oldest is None:
        return None, None
    name = f"CUDA {cuda.version}"
    if numbers(asked.driver) >= numbers(own.driver):
        return (
            None,
            f"Driver {asked.driver} is new enough for {name}, which came with {own.driver}.",
        )
    if numbers(asked.driver) >= numbers(oldest):
        compatible = (
            f"runs it by minor version compatibility ({oldest} or newer), except for PTX of {name}"
        )
        return (
            None,
            f"Driver {asked.driver} is older than {own.driver}, which came with {name}; it {compatible}.",
        )
    compat = "on data-centre GPUs the cuda-compat of the image may suffice"
    return (
        f"Driver {asked.driver} is too old for {name}, which needs {oldest} or newer; {compat}.",
        None,
    )


def judge_gpus(
    cuda: Value, lowest: str | None, asked: Wanted, table: CudaImagesTable
) -> Iterator[str]:
    """Yield a doubt for each GPU of the lock that this CUDA, or an image for GPUs from `lowest` on, does not serve."""
    for capability in asked.capabilities:
        if lowest is not None and numbers(capability) < numbers(lowest):
            yield f"It is for GPUs of compute capability {lowest} or higher; locked {capability}."
        first = _first_cuda(capability, table)
        if (
            first is not None
            and cuda.version is not None
            and numbers(cuda.version)[:2] < numbers(first)
        ):
            yield f"CUDA {cuda.version} does not support compute capability {capability} ({first} and later do)."


def _first_cuda(capability: str, table: CudaImagesTable) -> str | None:
    """Return the first CUDA for a compute capability; for one between two rows of a major number, that of the lower."""
    same = [
        row for row in table.gpu if numbers(row.compute_capability)[0] == numbers(capability)[0]
    ]
    lower = [row for row in same if numbers(row.compute_capability) <= numbers(capability)]
    return max(lower, key=lambda row: numbers(row.compute_capability)).cuda if lower else None
