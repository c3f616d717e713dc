"""Rules on the CUDA libraries that TensorFlow's loader gets. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from envlock.determinism.doctor.environment import Environment
from envlock.runtime.report import Finding

NOT_FOUND = "not found"
_DRIVER = "cuda_driver"
_OPTIONAL = ("tensorrt", "cupti", "nccl", "ptxas", "nvrtc")
"""Without these TensorFlow still registers the GPU."""

_WHEELS = {"cublasLt": "cublas", "cudart": "cuda_runtime", "cupti": "cuda_cupti", "nvrtc": "cuda_nvrtc"}
"""Folder below `nvidia` of the libraries whose wheel is not called as they are."""

_SKIPPED = (
    "TensorFlow opens these libraries when it looks for GPUs; where one is missing it says `Cannot dlopen some GPU "
    "libraries`, skips every GPU and computes on the CPU."
)
_SKIPPED_SOURCE = "TensorFlow's core/common_runtime/gpu/gpu_device.cc, and TensorFlow 2.21.0[and-cuda]"


def found(environment: Environment) -> Mapping[str, Mapping[str, Any]]:
    """Return the libraries that TensorFlow opens at run time, with what the loader answers."""
    cuda = environment.get("cuda") or {}
    return {key: each for key, each in cuda.items() if isinstance(each, Mapping) and each.get("soname")}


def missing(environment: Environment) -> Iterator[Finding]:
    """Yield libraries that are not found, where others are or where there is a GPU to use.

    A CUDA build without any NVIDIA library, on a machine without GPU, is a CPU installation and no problem.
    """
    libraries = found(environment)
    lost = [key for key, each in libraries.items() if each.get("resolved_by") == NOT_FOUND and key != _DRIVER]
    some = any(each.get("file") for key, each in libraries.items() if key != _DRIVER)
    if not (some or environment.gpus):
        return
    for keys in _by_wheel(key for key in lost if key not in _OPTIONAL):
        severity = "error" if environment.gpus else "warning"
        evidence = f"{_named(keys, libraries, 'is', 'are')} not found by TensorFlow's loader"
        yield Finding(
            "library-missing",
            severity,
            f"cuda.{keys[0]}",
            evidence,
            _SKIPPED,
            _fix(keys[0], environment),
            _SKIPPED_SOURCE,
        )


def _by_wheel(keys: Iterable[str]) -> list[list[str]]:
    """Return libraries in groups of one wheel: what is wrong with one of them is wrong with all."""
    groups: dict[str, list[str]] = {}
    for key in keys:
        groups.setdefault(_wheel(key), []).append(key)
    return list(groups.values())


def _named(keys: list[str], libraries: Mapping[str, Mapping[str, Any]], one: str, several: str) -> str:
    first, more = libraries[keys[0]]["soname"], len(keys) - 1
    return f"{first} {one}" if not more else f"{first} and {more} more {several}"


def _fix(key: str, environment: Environment) -> str:
    """Return what makes the library found: its wheel, or the wheel's folder where TensorFlow does not look there."""
    folder = _folder(key)
    if environment.installed(_wheel(key)):
        folder = f"$(python -c 'import nvidia.{folder} as m; print(m.__path__[0])')/lib"
        return f'export LD_LIBRARY_PATH="{folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
    return f"pip install 'tensorflow[and-cuda]=={environment.tensorflow}'"


def _folder(key: str) -> str:
    """Return the folder below `nvidia` of the wheel that holds a library."""
    return "cudnn" if key.startswith("cudnn") else _WHEELS.get(key, key.lower())


def _wheel(key: str) -> str:
    return f"nvidia-{_folder(key).replace('_', '-')}-cu12"


def unloadable(environment: Environment) -> Iterator[Finding]:
    """Yield libraries that are found and cannot be loaded."""
    driverless = found(environment).get(_DRIVER, {}).get("resolved_by") == NOT_FOUND and not environment.gpus
    for key, each in found(environment).items():
        problem = each.get("problem")
        if problem is None or (driverless and "libcuda.so" in problem) or (key == _DRIVER and not environment.gpus):
            continue
        evidence = f"{each['soname']} cannot be loaded: {problem}"
        why = "The first operation that needs it fails, or TensorFlow skips every GPU."
        fix = "reinstall the wheel that it belongs to, and take a wrong folder out of LD_LIBRARY_PATH"
        yield Finding("library-broken", "error", f"cuda.{key}", evidence, why, fix, "the loader's own rules (ld.so(8))")


def cudnn(environment: Environment) -> Iterator[Finding]:
    """Yield that the cuDNN that is loaded is older than the one that TensorFlow was compiled against."""
    built, runs = environment.get("tensorflow.compiled_against_cudnn"), environment.get("cuda.cudnn.version")
    if not isinstance(built, str) or not isinstance(runs, str):
        return
    wants, has = _numbers(built), _numbers(runs)
    if wants[0] == has[0] and has[:2] >= wants[:2]:
        return
    evidence = f"cuDNN {runs} is loaded ({_place(environment)}), and TensorFlow was compiled against {built}"
    why = "TensorFlow refuses a cuDNN of another major version or of a lower minor one: the first convolution fails."
    name = "nvidia-cudnn-cu12" if environment.installed("nvidia-cudnn-cu12") else f"nvidia-cudnn-cu{_cuda(environment)}"
    fix = f"pip install '{name}>={wants[0]}.{wants[1]},<{wants[0] + 1}'"
    if environment.get("cuda.cudnn.resolved_by") in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        fix = f"take that cuDNN out of {environment.get('cuda.cudnn.resolved_by')}"
    source = "TensorFlow's stream_executor/cuda/cuda_dnn.cc: `CuDNN library needs to have matching major version`"
    yield Finding("cudnn-version", "error", "cuda.cudnn.version", evidence, why, fix, source)


def shadowed(environment: Environment) -> Iterator[Finding]:
    """Yield libraries that a variable puts in front of the installed wheel's."""
    libraries = found(environment)
    told = {
        finding.where.fact.split(".")[1] for finding in cudnn(environment)
    }  # that is the greater trouble of the two
    for by in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        hit = [
            key for key, each in libraries.items() if each.get("resolved_by") == by and not each.get("wheel_version")
        ]
        for keys in _by_wheel(key for key in hit if environment.installed(_wheel(key))):
            if told & {*keys}:
                continue
            evidence = f"{_named(keys, libraries, 'comes', 'come')} from {by}, not from the installed {_wheel(keys[0])}"
            why = "What pip says is not what computes: another build of a library gives other bits."
            fix = f"take its folder out of {by}" if by == "LD_LIBRARY_PATH" else "unset LD_PRELOAD"
            source = "the loader's order (ld.so(8))"
            yield Finding("library-shadowed", "warning", f"cuda.{keys[0]}", evidence, why, fix, source)


def _place(environment: Environment) -> str:
    by = environment.get("cuda.cudnn.resolved_by")
    return f"by {by}" if isinstance(by, str) else "from somewhere"


def _cuda(environment: Environment) -> str:
    return str(environment.get("tensorflow.built_with_cuda") or "12").partition(".")[0]


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()] + [0, 0]
