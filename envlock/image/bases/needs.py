"""What a lockfile needs from a base image. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from envlock.image.bases.reference import MACHINES
from envlock.lock.fact_models import (
    CudaLibraryFacts,
    Facts,
    GpuFacts,
    PythonFacts,
    SystemFacts,
    TensorflowFacts,
)
from envlock.lock.models import Lockfile
from envlock.runtime.compare import is_idle
from envlock.runtime.errors import UsageError
from envlock.runtime.policies import DEFAULT
from envlock.runtime.release import minor, parse_release

TYPE_CHECKING = False
if TYPE_CHECKING:
    Section = tuple[Mapping[str, Any], Mapping[str, Mapping[str, str]]]

_NVIDIA_WHEEL = re.compile(r"nvidia-(cuda-runtime|cudnn)(-cu\d+)?")
# With the ABI of the same Python, or of its free threading (`t`, PEP 703); `abi3` fits later ones.
_WHEEL_PYTHON = re.compile(r"cp(\d)(\d+)-cp\1\2t?-.*")
_WHEEL_LIBC = re.compile(r"-manylinux(?:(1|2010|2014)|_(\d+)_(\d+))_[a-z0-9_]+$")
_LEGACY = {"1": "2.5", "2010": "2.12", "2014": "2.17"}
_SYSTEMS = {"Darwin": "macOS"}


@dataclass(frozen=True)
class BaseNeeds:
    """The locked facts by which a base image is chosen; None for a fact that the lockfile does not
    have.

    Attributes:
        tensorflow: the version without NVIDIA's label.
        label: that of NVIDIA's build, such as `nv25.2`.
        local: the local version of a TensorFlow that someone else has built, such as `selfbuilt`.
        gpu: whether TensorFlow computes, or may compute, with CUDA: a wheel that was built for CUDA
            does not where its libraries are not found.
        compiler, prefix: those of Python: the compiler in `sys.version`; `venv`, `conda` or
            `system`.
        cuda, cudnn, nccl: the versions of libraries that were found; a NCCL that is linked into
            TensorFlow's wheel comes with that and does not count.
        built_for: the CUDA that TensorFlow was built for, which says nothing of the environment.
        cuda_wheels: whether CUDA is installed from NVIDIA's wheels, so that a base image does not
            need it.
        idle: whether there is CUDA outside of the environment, and no driver to use it.
        compiled_against: the cuDNN that TensorFlow was compiled against.
        targets: the GPUs that TensorFlow has code for, in the notation of its build info.
        os: from /etc/os-release, such as `ubuntu 22.04`.
        gpus: how many are locked.
        capabilities: compute capabilities of the locked GPUs.
        cuda_driver: the CUDA of the locked driver.
        wheel_pythons: versions of Python that the locked wheels are for, and no other.
        wheel_libc: the oldest glibc that all locked wheels were built for.
        platform: that of the image, such as `linux/amd64`.
        machine: the locked machine, as `uname -m` reports it.
        jetson: the kernel release of one of NVIDIA's Jetson modules; None on any other machine.
        policy, overrides: those of the lockfile.
        libraries: the locked section `cuda`, whole.
    """

    tensorflow: str | None = None
    label: str | None = None
    local: str | None = None
    gpu: bool = False
    python: str | None = None
    compiler: str | None = None
    prefix: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    nccl: str | None = None
    built_for: str | None = None
    cuda_wheels: bool = False
    idle: bool = False
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
    libraries: Section = field(default=({}, {}), repr=False, compare=False)

    @property
    def wheel(self) -> str | None:
        """The version of the TensorFlow whose wheel is locked, with its local version."""
        if self.tensorflow is None or self.local is None:
            return self.tensorflow
        return f"{self.tensorflow}+{self.local}"


def list_outside_libraries(needs: BaseNeeds) -> list[str]:
    """Return the CUDA libraries, and programs, whose files are not in the environment itself, such
    as those of a toolkit; the driver is not among them, as the host has it.
    """
    names = []
    for name, library in (needs.libraries[0].get("cuda") or {}).items():
        if name == "cuda_driver" or not isinstance(library, dict):
            continue
        if library.get("file") and not library["file"].startswith("{prefix}"):
            names.append(name)
    return names


def collect_lock_needs(lock: Lockfile, platform: str | None = None) -> BaseNeeds:
    """Return what a lockfile needs, under its own policy; see `collect_needs`."""
    document = lock.to_document()
    return collect_needs(
        lock.facts,
        platform,
        lock.policy.name,
        lock.policy.overrides,
        unavailable=document["unavailable"],
    )


def collect_needs(
    facts: Facts,
    platform: str | None = None,
    policy: str = DEFAULT,
    overrides: Mapping[str, str] | None = None,
    *,
    unavailable: Mapping[str, Mapping[str, str]] | None = None,
) -> BaseNeeds:
    """Return what these facts need from a base image.

    Args:
        facts: those of the lockfile.
        platform: that of the image; that of the facts' own machine when None.
        policy, overrides: the rules for comparing an image with the facts.
        unavailable: the facts that could not be collected.

    Raises:
        UsageError: no image can be a machine with these facts.
    """
    tensorflow = facts.tensorflow or TensorflowFacts()
    system = facts.system or SystemFacts()
    python = facts.python or PythonFacts()
    gpu = facts.gpu or GpuFacts()
    compiler = python.compiler.strip() if python.compiler else None
    os_release = f"{system.os} {system.os_version}" if system.os and system.os_version else None
    # Versions of another C library cannot be compared with those of images.
    libc = _accept_version(system.libc_version) if system.libc == "glibc" else None
    libraries: Section = (facts.model_dump(include={"cuda"}, exclude_unset=True), unavailable or {})
    has_cuda = _has_cuda(tensorflow, facts)
    return BaseNeeds(
        tensorflow=_accept_version((tensorflow.version or "").partition("+")[0]),
        label=tensorflow.nvidia_build,
        local=_get_local_version(tensorflow),
        gpu=has_cuda,
        python=_accept_version(python.version),
        compiler=compiler,
        prefix=python.prefix_kind,
        cuda=_strip_library_build(_get_library_version(facts, "cudart")),
        cudnn=_get_library_version(facts, "cudnn"),
        nccl=_get_library_version(facts, "nccl"),
        built_for=_accept_version(tensorflow.built_with_cuda),
        cuda_wheels=any(_NVIDIA_WHEEL.fullmatch(name) for name in facts.packages or {}),
        idle=has_cuda and is_idle("cuda.cudart", libraries, libraries),
        compiled_against=_accept_version(tensorflow.compiled_against_cudnn),
        targets=tuple(tensorflow.compute_capabilities or ()),
        os=os_release,
        libc=libc,
        driver=_accept_version(gpu.driver_version),
        cuda_driver=_accept_version(gpu.cuda_driver_version),
        gpus=len(gpu.devices or {}),
        capabilities=_list_capabilities(gpu),
        wheel_pythons=tuple(sorted(set(_list_wheel_pythons(facts)), key=parse_release)),
        wheel_libc=max(_list_wheel_libcs(facts), key=parse_release, default=None),
        platform=_choose_platform(system, platform),
        machine=system.machine,
        jetson=_find_jetson_kernel(system),
        policy=policy,
        overrides=tuple(sorted((overrides or {}).items())),
        libraries=libraries,
    )


def _get_local_version(tensorflow: TensorflowFacts) -> str | None:
    """Return the local version of a TensorFlow; None of one of NVIDIA's, or without one."""
    if tensorflow.nvidia_build is not None:
        return None
    return (tensorflow.version or "").partition("+")[2] or None


def _is_cuda_build(tensorflow: TensorflowFacts, facts: Facts) -> bool:
    if tensorflow.cuda_build is not None:
        return tensorflow.cuda_build
    # Its build info could not be read: NVIDIA's label, or installed CUDA libraries, show it as
    # well.
    has_cuda = tensorflow.nvidia_build is not None or facts.cuda is not None
    return tensorflow.version is not None and has_cuda


def _has_cuda(tensorflow: TensorflowFacts, facts: Facts) -> bool:
    """Return whether TensorFlow computes, or may compute, with CUDA.

    Without the CUDA runtime, which it opens before it looks for GPUs, a build for CUDA computes on
    the CPU, as after a plain `pip install tensorflow`.
    """
    if not _is_cuda_build(tensorflow, facts):
        return False
    if tensorflow.nvidia_build is not None or facts.cuda is None or facts.cuda.cudart is None:
        return True
    cudart = facts.cuda.cudart
    return cudart.resolved_by != "not found" and cudart.linkage != "absent"


def _list_capabilities(gpu: GpuFacts) -> tuple[str, ...]:
    """Return the compute capabilities of the locked GPUs, each once."""
    capabilities = set()
    for device in (gpu.devices or {}).values():
        capability = _accept_version(device.compute_capability)
        if capability is not None:
            capabilities.add(capability)
    return tuple(sorted(capabilities))


def _choose_platform(system: SystemFacts, requested: str | None) -> str:
    """Return the platform of an image for this system.

    Raises:
        UsageError: no image can be this system.
    """
    if system.kernel not in (None, "Linux"):
        name = _SYSTEMS.get(system.kernel, system.kernel)
        raise UsageError(
            f"the lockfile is from {name} ({system.machine or 'unknown machine'}), "
            "and images hold Linux",
            hint="capture an environment on Linux: its wheels, and so its bits, are other ones",
        )
    if system.machine is not None and system.machine not in MACHINES:
        raise UsageError(
            f"the lockfile is from a {system.machine} machine, "
            "and no base image with TensorFlow for it is known",
            hint=f"capture an environment on {' or '.join(MACHINES)}",
        )
    return requested or MACHINES.get(system.machine or "", "linux/amd64")


def _find_jetson_kernel(system: SystemFacts) -> str | None:
    """Return the kernel release of a Jetson module, such as `5.15.148-tegra`; None on other
    machines.
    """
    release = system.kernel_release or ""
    # The kernels of NVIDIA's JetPack end with `-tegra`.
    if system.machine == "aarch64" and "tegra" in release.split("-"):
        return release
    return None


def _list_wheel_pythons(facts: Facts) -> Iterator[str]:
    """Yield the Python of each package whose wheel is for that version alone."""
    for package in (facts.packages or {}).values():
        tags = package.wheel_tags or ()
        matches = [match for match in map(_WHEEL_PYTHON.fullmatch, tags) if match is not None]
        # If there is also a tag such as `py3-none-any`, any Python can install the wheel.
        if len(matches) == len(tags):
            yield from (f"{match[1]}.{match[2]}" for match in matches)


def _list_wheel_libcs(facts: Facts) -> Iterator[str]:
    """Yield the oldest glibc on which each package's wheel can be installed.

    Source: https://peps.python.org/pep-0600/#legacy-manylinux-tags, and its definition of
    `manylinux_X_Y`.
    """
    for package in (facts.packages or {}).values():
        libcs: list[str] = []
        for tag in package.wheel_tags or ():
            match = _WHEEL_LIBC.search(tag)
            if match is None:
                # A single tag without a glibc is enough for an installer.
                libcs = []
                break
            libcs.append(_LEGACY.get(match[1]) or f"{match[2]}.{match[3]}")
        if libcs:
            yield min(libcs, key=parse_release)


def _get_library_version(facts: Facts, name: str) -> str | None:
    library: CudaLibraryFacts | None = getattr(facts.cuda, name, None)
    # What is linked into TensorFlow's own wheel is installed with it, on any base.
    if library is None or library.linkage == "static":
        return None
    return _accept_version(library.version)


def _strip_library_build(version: str | None) -> str | None:
    """Return the CUDA version that a version of its runtime library belongs to."""
    # The third number of a library such as `12.5.82` is its own build number; that of a point
    # release, `12.5.1`, is below 10.
    if version is None or len(parse_release(version)) < 3 or parse_release(version)[2] < 10:
        return version
    return minor(version)


def _accept_version(version: str | None) -> str | None:
    """Return a version that begins with a number; None for any other text."""
    if version and parse_release(version):
        return version
    return None
