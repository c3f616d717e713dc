"""What a lock asks of a base image. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from envlock.images.reference import MACHINES
from envlock.images.versions import numbers
from envlock.lock.facts import CudaLibraryFacts, Facts, SystemFacts, TensorflowFacts

_NVIDIA_WHEEL = re.compile(r"nvidia-(cuda-runtime|cudnn)(-cu\d+)?")


@dataclass(frozen=True)
class Wanted:
    """The facts that choose; None: the lock does not tell.

    Attributes:
        tensorflow: the version without NVIDIA's label.
        label: NVIDIA's, as `nv25.2`.
        gpu: it is a build for CUDA.
        cuda_wheels: CUDA is installed as NVIDIA's wheels, so a base image need not bring it.
        capabilities: compute capabilities of the lock's GPUs.
        platform: of the image, as `linux/amd64`.
    """

    tensorflow: str | None = None
    label: str | None = None
    gpu: bool = False
    python: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    nccl: str | None = None
    cuda_wheels: bool = False
    libc: str | None = None
    driver: str | None = None
    capabilities: tuple[str, ...] = ()
    platform: str = "linux/amd64"


def wanted(facts: Facts, platform: str | None = None) -> Wanted:
    """Return what these facts ask for, on their own platform unless another is named."""
    tensorflow = facts.tensorflow or TensorflowFacts()
    system = facts.system or SystemFacts()
    driver, devices = (facts.gpu.driver_version, facts.gpu.devices or {}) if facts.gpu else (None, {})
    gpu = tensorflow.cuda_build
    if gpu is None:  # its build info was not to be read: what is installed beside it tells
        gpu = tensorflow.version is not None and (tensorflow.nvidia_build is not None or facts.cuda is not None)
    return Wanted(
        tensorflow=_told((tensorflow.version or "").partition("+")[0]),
        label=tensorflow.nvidia_build,
        gpu=gpu,
        python=_told(facts.python.version if facts.python else None),
        cuda=_library(facts, "cudart") or _told(tensorflow.built_with_cuda),
        cudnn=_library(facts, "cudnn") or _told(tensorflow.compiled_against_cudnn),
        nccl=_library(facts, "nccl"),
        cuda_wheels=any(_NVIDIA_WHEEL.fullmatch(name) for name in facts.packages or {}),
        libc=_told(system.libc_version) if system.libc == "glibc" else None,
        driver=_told(driver),
        capabilities=tuple(sorted({told for one in devices.values() if (told := _told(one.compute_capability))})),
        platform=platform or MACHINES.get(system.machine or "", "linux/amd64"),
    )


def _library(facts: Facts, name: str) -> str | None:
    library: CudaLibraryFacts | None = getattr(facts.cuda, name, None)
    return _told(library.version) if library else None


def _told(version: str | None) -> str | None:
    """Return a version that begins with a number; of any other nothing can be said."""
    return version if version and numbers(version) else None
