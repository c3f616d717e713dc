"""What one event changes is one cause: another machine, or another version of a package with what
comes with it. Pure.

A cause has a name, which `--only`, `ignore` and `explain` take, and the facts that it can change.
"""

from __future__ import annotations

from envlock.runtime.facts import matches
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Mapping, Sequence, Tuple

    Patterns = Tuple[str, ...]

MACHINE = "machine"
CUDA = "cuda"
BACKEND = "backend"
PACKAGES = "packages."
_SYSTEM = ("loaded.ld", "loaded.libc", "loaded.libm", "loaded.libgcc", "loaded.libstdcxx")
"""What a process has loaded of the operating system."""
_PYTHON = ("python.version", "python.implementation", "python.abi", "python.compiler")
_TENSORFLOW = tuple(
    [
        f"{start}**"
        for start in table("protected")
        if "tensorflow" in start or ".tf-nightly" in start
    ]
)
_DRIVER = (
    "gpu.driver_version",
    "gpu.cuda_driver_version",
    "gpu.kernel_module.**",
    "gpu.nvml.**",
    "cuda.cuda_driver.**",
)
_THREADS = ("cpu.affinity_count", "cpu.intra_op_threads", "cpu.inter_op_threads")
_VERSIONS = ("system.os", "system.os_version", "system.libc_version")
_HARDWARE = (
    "system.machine",
    "cpu.flags",
    "cpu.vendor",
    "cpu.family",
    "cpu.model",
    "gpu",
    "gpu.devices",
    "gpu.devices.*",
    "gpu.devices.*.name",
)

MOVED: Dict[str, Patterns] = {
    MACHINE: (*[f"{node}.**" for node in table("machine")], *_SYSTEM),
    "driver": _DRIVER,
    "system": ("system.**", *_SYSTEM),
    "cpus": _THREADS,
    "python": (*_PYTHON, "packages.*.wheel_tags", "loaded.interpreter.**", "loaded.standard.**"),
    "tensorflow": (*_TENSORFLOW, "loaded.framework"),
    "keras": ("keras.version", "keras.legacy_version", "packages.keras.**", "packages.tf-keras.**"),
    "numpy": ("numpy.**", "packages.numpy.**", "loaded.blas"),
    BACKEND: ("keras.config.backend", "environ.KERAS_BACKEND", "jax", "torch"),
    "jax": ("jax.version", "jax.jaxlib", "packages.jax.**", "packages.jaxlib.**"),
    "torch": (
        "torch.version",
        "torch.cuda",
        "torch.git_version",
        "torch.hip",
        "packages.torch.**",
    ),
    "cuda": ("cuda.**", "loaded.cuda"),
}
"""The facts that each cause can change; a fact of several belongs to the first one that is seen."""
_WHEELS, _BINDING = f"{PACKAGES}nvidia-", f"{PACKAGES}nvidia-ml-py"
"""How the packages of CUDA's libraries begin; the one that only asks about GPUs does not count."""
_SIGNS: Dict[str, Patterns] = {
    MACHINE: _HARDWARE,
    "system": ("system.**",),
    "python": _PYTHON,
    "tensorflow": _TENSORFLOW,
    "numpy": ("numpy.**", "packages.numpy.**"),
    "cuda": ("cuda.**",),
    BACKEND: ("keras.config.backend",),
}
"""The facts of which one has to differ for a cause to be seen, where these are not all."""
_SAID: Dict[str, Tuple[str, Patterns]] = {
    MACHINE: ("another machine", ("cpu.model_name", "gpu.devices.*.name", *_VERSIONS)),
    "driver": ("another driver", ("gpu.driver_version", "cuda.cuda_driver.version")),
    "system": ("another system", _VERSIONS),
    "cpus": ("other CPUs", _THREADS),
    "python": ("another Python", _PYTHON),
    "tensorflow": (
        "another TensorFlow",
        ("tensorflow.version", "tensorflow.nvidia_build", "tensorflow.distributions"),
    ),
    BACKEND: ("another Keras backend", ("keras.config.backend",)),
    "cuda": ("another CUDA", ("cuda.cudnn.version", "cuda.*.version")),
}
"""What a finding calls a cause that is more than a package, and the facts that say what changed."""


def find_causes(paths: Sequence[str]) -> List[Tuple[str, List[str]]]:
    """Return facts that differ by the name of their cause, in order; a fact of none is its own."""
    seen = [
        name
        for name in MOVED
        if any(_matches_any(path, _SIGNS.get(name, MOVED[name])) for path in paths)
    ]
    causes: Dict[str, List[str]] = {}
    for path in paths:
        causes.setdefault(_name_cause(path, seen), []).append(path)
    return list(causes.items())


def describe(name: str, parts: Sequence[str], changes: Mapping[str, str]) -> str:
    """Return what a finding calls a cause: `numpy 1.26.4 -> 1.25.2, with its BLAS`.

    Args:
        name: of the cause.
        parts: the facts that it has changed.
        changes: both values of each fact that differs, also of those that may.
    """
    if name in _SAID:
        said, patterns = _SAID[name]
        # The name of a processor may differ, and tells a person most.
        path, change = _find_change(patterns, changes)
        if name == CUDA and path:
            # Which of the libraries tells more than CUDA does.
            change = f"{path.split('.')[1]} {change}"
        return f"{said}: {change}" if path else said
    moved = {path: changes[path] for path in parts}
    versions = (f"packages.{name}.version", f"packages.{name}", f"{name}.version")
    path, change = _find_change(versions, moved)
    if not path:
        # Its twin alone, such as tf-keras of keras.
        path, change = _find_change(("packages.*.version", "packages.*"), moved)
        name = path.split(".")[1] if path else name
    has_blas = any(matches("numpy.blas.**", path) for path in parts)
    return f"{name} {change or 'of another build'}{', with its BLAS' if has_blas else ''}"


def list_patterns(name: str, packages: Iterable[str]) -> List[str]:
    """Return the patterns of the facts that a cause can change; empty if none has this name.

    Args:
        name: as a finding says it: `numpy`, `another machine` or `machine`; or a package's path.
        packages: the names of packages, each of which is a cause.
    """
    called = {said.lower(): known for known, (said, _) in _SAID.items()}
    short = called.get(name.lower(), name.lower())
    if short in MOVED:
        wheels = [f"{PACKAGES}{package}" for package in packages if short == CUDA]
        return [*MOVED[short], *(f"{path}.**" for path in wheels if _is_wheel(path))]
    package = name[len(PACKAGES) :] if name.startswith(PACKAGES) else name
    whole = f"{PACKAGES}{package}.**"
    for patterns in MOVED.values():
        if whole in patterns:
            return list(patterns)
    return [whole] if package in packages else []


def _is_wheel(path: str) -> bool:
    """Return whether a path is about a package that has a library of CUDA."""
    return path.startswith(_WHEELS) and not f"{path}.".startswith(f"{_BINDING}.")


def _matches_any(path: str, patterns: Iterable[str]) -> bool:
    return any(matches(pattern, path) for pattern in patterns)


def _name_cause(path: str, seen: Iterable[str]) -> str:
    for name in seen:
        if _matches_any(path, MOVED[name]) or (name == CUDA and _is_wheel(path)):
            return name
    section, _, rest = path.partition(".")
    package = rest.partition(".")[0]
    # A package may be called as a cause is; then its path is its name.
    if section != "packages" or package in MOVED:
        return path
    return package


def _find_change(patterns: Iterable[str], changes: Mapping[str, str]) -> Tuple[str, str]:
    """Return the first fact that differs, in the order of the patterns, and both of its values; or
    nothing.
    """
    for pattern in patterns:
        for path, change in changes.items():
            if matches(pattern, path):
                return path, change
    return "", ""
