"""What a lock asks of a base image. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from envlock.images.reference import MACHINES
from envlock.lock.facts import CudaLibraryFacts, Facts, PythonFacts, SystemFacts, TensorflowFacts
from envlock.lock.models import Lockfile
from envlock.runtime.errors import UsageError
from envlock.runtime.policy import DEFAULT
from envlock.runtime.release import minor, numbers

_NVIDIA_WHEEL = re.compile(r"nvidia-(cuda-runtime|cudnn)(-cu\d+)?")
_WHEEL_PYTHON = re.compile(r"cp(\d)(\d+)-cp\1\2t?-.*")
_WHEEL_LIBC = re.compile(r"-manylinux(?:(1|2010|2014)|_(\d+)_(\d+))_[a-z0-9_]+$")
_LEGACY = {"1": "2.5", "2010": "2.12", "2014": "2.17"}
_SYSTEMS = {"Darwin": "macOS"}


@dataclass(frozen=True)
class Wanted:
    """The facts that choose; None: the lock does not tell.

    Attributes:
        tensorflow: the version without NVIDIA's label.
        label: NVIDIA's, as `nv25.2`.
        gpu: it is a build for CUDA.
        compiler, prefix: of Python, as `sys.version` has it; `venv`, `conda` or `system`.
        cuda_wheels: CUDA is installed as NVIDIA's wheels, so a base image need not bring it.
        compiled_against: the cuDNN that TensorFlow was compiled against.
        targets: the GPUs that TensorFlow holds code for, as its build info has them.
        os: as /etc/os-release has it, `ubuntu 22.04`.
        gpus: how many are locked.
        capabilities: compute capabilities of the lock's GPUs.
        cuda_driver: the CUDA of the locked driver.
        wheel_pythons: versions of Python that the locked wheels are for, and no other.
        wheel_libc: the oldest glibc that all locked wheels were built for.
        platform: of the image, as `linux/amd64`.
        machine: of the lock, as `uname -m` calls it.
        jetson: the kernel release that tells that it is one of NVIDIA's Jetson modules.
        policy, overrides: of the lock.
    """

    tensorflow: str | None = None
    label: str | None = None
    gpu: bool = False
    python: str | None = None
    compiler: str | None = None
    prefix: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    nccl: str | None = None
    cuda_wheels: bool = False
    compiled_against: str | None = None
    targets: tuple[str, ...] = ()
    os: str | None = None
    libc: str | None = None
    driver: str | None = None
    cuda_driver: str | None = None
    gpus: int = 0
    capabilities: tuple[str, ...] = ()
    wheel_pythons: tuple[str, ...] = ()
    wheel_libc: str | None = None
    platform: str = "linux/amd64"
    machine: str | None = None
    jetson: str | None = None
    policy: str = DEFAULT
    overrides: tuple[tuple[str, str], ...] = ()


def wanted_by(lock: Lockfile, platform: str | None = None) -> Wanted:
    """Return what a lock asks for, under its own policy; see `wanted`."""
    return wanted(lock.facts, platform, lock.policy.name, lock.policy.overrides)


def wanted(
    facts: Facts,
    platform: str | None = None,
    policy: str = DEFAULT,
    overrides: dict[str, str] | None = None,
) -> Wanted:
    """Return what these facts ask for, on their own platform unless another is named.

    Raises:
        UsageError: they are of a machine that no image can be.
    """
    tensorflow = facts.tensorflow or TensorflowFacts()
    system = facts.system or SystemFacts()
    python = facts.python or PythonFacts()
    driver, cuda_driver, devices = (
        (facts.gpu.driver_version, facts.gpu.cuda_driver_version, facts.gpu.devices or {})
        if facts.gpu
        else (None, None, {})
    )
    gpu = tensorflow.cuda_build
    if gpu is None:  # its build info was not to be read: what is installed beside it tells
        gpu = tensorflow.version is not None and (
            tensorflow.nvidia_build is not None or facts.cuda is not None
        )
    return Wanted(
        tensorflow=_told((tensorflow.version or "").partition("+")[0]),
        label=tensorflow.nvidia_build,
        gpu=gpu,
        python=_told(python.version),
        compiler=python.compiler.strip() if python.compiler else None,
        prefix=python.prefix_kind,
        cuda=_toolkit(_library(facts, "cudart") or _told(tensorflow.built_with_cuda)),
        cudnn=_library(facts, "cudnn") or _told(tensorflow.compiled_against_cudnn),
        nccl=_library(facts, "nccl"),
        cuda_wheels=any(_NVIDIA_WHEEL.fullmatch(name) for name in facts.packages or {}),
        compiled_against=_told(tensorflow.compiled_against_cudnn),
        targets=tuple(tensorflow.compute_capabilities or ()),
        os=f"{system.os} {system.os_version}" if system.os and system.os_version else None,
        libc=_told(system.libc_version) if system.libc == "glibc" else None,
        driver=_told(driver),
        cuda_driver=_told(cuda_driver),
        gpus=len(devices),
        capabilities=tuple(
            sorted({told for one in devices.values() if (told := _told(one.compute_capability))})
        ),
        wheel_pythons=tuple(sorted(set(_wheel_pythons(facts)), key=numbers)),
        wheel_libc=max(_wheel_libcs(facts), key=numbers, default=None),
        platform=_platform(system, platform),
        machine=system.machine,
        jetson=_jetson(system),
        policy=policy,
        overrides=tuple(sorted((overrides or {}).items())),
    )


def _platform(system: SystemFacts, named: str | None) -> str:
    """Return the platform of an image for this system.

    Raises:
        UsageError: there is none.
    """
    if system.kernel not in (None, "Linux"):
        name = _SYSTEMS.get(system.kernel, system.kernel)
        raise UsageError(
            f"the lockfile is from {name} ({system.machine or 'unknown machine'}), and images hold Linux",
            hint="capture an environment on Linux: its wheels, and so its bits, are other ones",
        )
    if system.machine is not None and system.machine not in MACHINES:
        raise UsageError(
            f"the lockfile is from a {system.machine} machine, and no base image with TensorFlow for it is known",
            hint=f"capture an environment on {' or '.join(MACHINES)}",
        )
    return named or MACHINES.get(system.machine or "", "linux/amd64")


def _jetson(system: SystemFacts) -> str | None:
    """Return the kernel release of a Jetson module, such as `5.15.148-tegra`; None on any other machine.

    The kernels of JetPack end with `-tegra`.
    """
    release = system.kernel_release or ""
    return release if system.machine == "aarch64" and "tegra" in release.split("-") else None


def _wheel_pythons(facts: Facts) -> Iterable[str]:
    """Yield the Python of each package whose wheel is for that version alone."""
    for package in (facts.packages or {}).values():
        found = [_WHEEL_PYTHON.fullmatch(tag) for tag in package.wheel_tags or ()]
        if found and all(found):
            yield from {f"{match[1]}.{match[2]}" for match in found if match}


def _wheel_libcs(facts: Facts) -> Iterable[str]:
    """Yield the glibc that each package's wheel needs; one of several tags is enough for an installer.

    Source: https://peps.python.org/pep-0600/#legacy-manylinux-tags, and its definition of `manylinux_X_Y`.
    """
    for package in (facts.packages or {}).values():
        found = [_WHEEL_LIBC.search(tag) for tag in package.wheel_tags or ()]
        needs = [_LEGACY.get(match[1]) or f"{match[2]}.{match[3]}" for match in found if match]
        if needs and all(found):
            yield min(needs, key=numbers)


def _library(facts: Facts, name: str) -> str | None:
    library: CudaLibraryFacts | None = getattr(facts.cuda, name, None)
    return _told(library.version) if library else None


def _toolkit(version: str | None) -> str | None:
    """Return the CUDA of a runtime library: the third number of `12.5.82` is the library's own, not a point release."""
    if version is None or len(numbers(version)) < 3 or numbers(version)[2] < 10:
        return version
    return minor(version)


def _told(version: Any) -> str | None:
    """Return a version that begins with a number; of any other nothing can be said."""
    return version if version and numbers(version) else None
