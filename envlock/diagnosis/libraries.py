"""Rules on the CUDA libraries that TensorFlow's loader gets. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from envlock.diagnosis.environment import Environment
from envlock.diagnosis.remedies import Remedy, change
from envlock.diagnosis.requirements import joint, joint_with_tensorflow, requirers, violated
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS
from envlock.runtime.release import numbers
from envlock.runtime.report import Finding

NOT_FOUND = "not found"
_DRIVER = "cuda_driver"
_OPTIONAL = ("tensorrt", "cupti", "nccl", "ptxas", "nvrtc")
"""Without these TensorFlow still registers the GPU."""

_WHEELS = {
    "cublasLt": "cublas",
    "cudart": "cuda_runtime",
    "cupti": "cuda_cupti",
    "nvrtc": "cuda_nvrtc",
}
"""Folder below `nvidia` of the libraries whose wheel is not called as they are."""

_SKIPPED = (
    "TensorFlow opens these libraries when it looks for GPUs; if one is missing it prints `Cannot dlopen some GPU "
    "libraries`, skips every GPU and computes on the CPU."
)
_NO_GPU = "TensorFlow computes on the CPU, which needs none of them; a GPU would be skipped."
_SKIPPED_SOURCE = (
    "TensorFlow's core/common_runtime/gpu/gpu_device.cc, and TensorFlow 2.21.0[and-cuda]"
)


def found(environment: Environment) -> Mapping[str, Mapping[str, Any]]:
    """Return the libraries that TensorFlow opens at run time, with what the loader answers."""
    cuda = environment.get("cuda") or {}
    return {
        key: each for key, each in cuda.items() if isinstance(each, Mapping) and each.get("soname")
    }


def missing(environment: Environment) -> Iterator[Finding]:
    """Yield libraries that are not found: one finding a wheel where there is a GPU, one for all where there is none.

    A CUDA build without any of these libraries, on a machine without GPU, is a CPU installation and no problem.
    """
    libraries = found(environment)
    needed = {key: each for key, each in libraries.items() if key not in (_DRIVER, *_OPTIONAL)}
    lost = [key for key, each in needed.items() if each.get("resolved_by") == NOT_FOUND]
    if not lost or not (environment.gpus or any(each.get("file") for each in needed.values())):
        return
    fix = _found_again(environment, lost)
    for keys in _by_wheel(lost) if environment.gpus else [lost]:
        evidence = f"{_named(keys, libraries, 'is', 'are')} not found by TensorFlow's loader"
        where = f"cuda.{keys[0]}"
        if environment.gpus:
            commands = fix.commands
            yield Finding(
                "library-missing",
                "error",
                where,
                evidence,
                _SKIPPED,
                fix.text,
                _SKIPPED_SOURCE,
                commands=commands,
            )
        else:
            evidence, told = (
                f"{evidence}, and no GPU is visible",
                f"not needed on a CPU; for a GPU: {fix.text}",
            )
            yield Finding(
                "library-missing", "info", where, evidence, _NO_GPU, told, _SKIPPED_SOURCE
            )


def _by_wheel(keys: Iterable[str]) -> list[list[str]]:
    """Return libraries in groups of one wheel: what is wrong with one of them is wrong with all."""
    groups: dict[str, list[str]] = {}
    for key in keys:
        groups.setdefault(_wheel(key), []).append(key)
    return list(groups.values())


def _named(
    keys: list[str], libraries: Mapping[str, Mapping[str, Any]], one: str, several: str
) -> str:
    first, more = libraries[keys[0]]["soname"], len(keys) - 1
    return f"{first} {one}" if not more else f"{first} and {more} more {several}"


def _found_again(environment: Environment, keys: Iterable[str]) -> Remedy:
    """Return what makes libraries found: their wheels, and the folders in which TensorFlow does not look for them."""
    wheels = {_wheel(key): _folder(key) for key in keys}
    lines: list[str] = []
    if not all(map(environment.installed, wheels)):
        name = next(iter(environment.get("tensorflow.distributions") or ()), "tensorflow")
        wanted = {name: f"{name}[and-cuda]=={environment.tensorflow}"}
        if not environment.stock or not environment.holds([">=2.14"]):
            return Remedy(
                "install the CUDA libraries that this TensorFlow was built with, and name their folder in "
                "LD_LIBRARY_PATH"
            )
        fix = change(environment, add=wanted)
        if not fix.commands:
            return fix
        lines += fix.commands
    for folder in [folder for wheel, folder in wheels.items() if environment.installed(wheel)]:
        asked = shlex.join(
            [environment.python, "-c", f"import nvidia.{folder} as m; print(m.__path__[0])"]
        )
        lines.append(
            f'export LD_LIBRARY_PATH="$({asked})/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
        )
    text = "; ".join(lines)
    return Remedy(text, [text])


def _folder(key: str) -> str:
    """Return the folder below `nvidia` of the wheel that holds a library."""
    return "cudnn" if key.startswith("cudnn") else _WHEELS.get(key, key.lower())


def _wheel(key: str) -> str:
    return f"nvidia-{_folder(key).replace('_', '-')}-cu12"


def unloadable(environment: Environment) -> Iterator[Finding]:
    """Yield libraries that are found and cannot be loaded."""
    driverless = (
        found(environment).get(_DRIVER, {}).get("resolved_by") == NOT_FOUND and not environment.gpus
    )
    for key, each in found(environment).items():
        problem = each.get("problem")
        if (
            problem is None
            or (driverless and "libcuda.so" in problem)
            or (key == _DRIVER and not environment.gpus)
        ):
            continue
        evidence = f"{each['soname']} cannot be loaded: {problem}"
        why = "The first operation that needs it fails, or TensorFlow skips every GPU."
        fix = "reinstall its wheel, and remove wrong folders from LD_LIBRARY_PATH"
        yield Finding(
            "library-broken",
            "error",
            f"cuda.{key}",
            evidence,
            why,
            fix,
            "the loader's own rules (ld.so(8))",
        )


def cudnn(environment: Environment) -> Iterator[Finding]:
    """Yield that the cuDNN that is loaded is older than the one that TensorFlow was compiled against."""
    built, runs = (
        environment.get("tensorflow.compiled_against_cudnn"),
        environment.get("cuda.cudnn.version"),
    )
    if not isinstance(built, str) or not isinstance(runs, str):
        return
    wants, has = (*numbers(built), 0, 0), (*numbers(runs), 0, 0)
    if wants[0] == has[0] and has[:2] >= wants[:2]:
        return
    evidence = f"cuDNN {runs} is loaded ({_place(environment)}), and TensorFlow was compiled against {built}"
    why = "TensorFlow rejects a cuDNN of another major or of a lower minor version, and the first convolution fails."
    name = (
        "nvidia-cudnn-cu12"
        if environment.installed("nvidia-cudnn-cu12")
        else f"nvidia-cudnn-cu{_cuda(environment)}"
    )
    fix = _other_cudnn(environment, name, f"{wants[0]}.{wants[1]}")
    if environment.get("cuda.cudnn.resolved_by") in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        fix = Remedy(f"remove that cuDNN from {environment.get('cuda.cudnn.resolved_by')}")
    source = "TensorFlow's stream_executor/cuda/cuda_dnn.cc: `CuDNN library needs to have matching major version`"
    where = "cuda.cudnn.version"
    yield Finding(
        "cudnn-version", "error", where, evidence, why, fix.text, source, commands=fix.commands
    )


def _other_cudnn(environment: Environment, name: str, minor: str) -> Remedy:
    """Return what installs the cuDNN that TensorFlow's own metadata names, else the newest of the minor version."""
    own = {
        each.takes
        for each in environment.requirements
        if each.name == name and each.by in DISTRIBUTIONS
    }
    exact = own.pop() if len(own) == 1 and "==" in "".join(own) else f"=={minor}.*"
    agreed = joint(environment, name, exact)
    if agreed is None:
        asking = " and ".join(requirers(environment, name))
        return Remedy(
            f"move {asking}, which requires another {name}, to another environment than TensorFlow's"
        )
    missing = {each.name for each in violated(environment) if each.by == name}
    beside = {
        each: requirement
        for each in sorted(missing)
        if (requirement := joint_with_tensorflow(environment, each)) is not None
    }
    return change(environment, add={name: agreed, **beside})


def shadowed(environment: Environment) -> Iterator[Finding]:
    """Yield libraries that a variable puts in front of the installed wheel's."""
    libraries = found(environment)
    told = {
        finding.where.fact.split(".")[1] for finding in cudnn(environment)
    }  # that is the greater trouble of the two
    for by in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        hit = [
            key
            for key, each in libraries.items()
            if each.get("resolved_by") == by and not each.get("wheel_version")
        ]
        for keys in _by_wheel(key for key in hit if environment.installed(_wheel(key))):
            if told & {*keys}:
                continue
            evidence = f"{_named(keys, libraries, 'comes', 'come')} from {by}, not from the installed {_wheel(keys[0])}"
            why = "Another library computes than the installed wheel, and another build gives different bits."
            fix = f"remove its folder from {by}" if by == "LD_LIBRARY_PATH" else "unset LD_PRELOAD"
            source = "the loader's order (ld.so(8))"
            yield Finding(
                "library-shadowed", "warning", f"cuda.{keys[0]}", evidence, why, fix, source
            )


def _place(environment: Environment) -> str:
    by = environment.get("cuda.cudnn.resolved_by")
    return f"by {by}" if isinstance(by, str) else "from an unknown place"


def _cuda(environment: Environment) -> str:
    return str(environment.get("tensorflow.built_with_cuda") or "12").partition(".")[0]
