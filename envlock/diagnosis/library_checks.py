"""Rules on the CUDA libraries that TensorFlow's loader finds. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import TypedDict

from envlock.diagnosis.diagnosed_environment import Environment
from envlock.diagnosis.doctor_table import make_finding
from envlock.diagnosis.remedies import Remedy, change, install_again
from envlock.diagnosis.requirements import (
    find_common_requirement,
    find_preferred_requirement,
    find_violated,
    list_requirers,
    list_tensorflow_specifiers,
)
from envlock.runtime.release import parse_release
from envlock.runtime.report import ERROR, WARNING, Finding, Severity


class Library(TypedDict, total=False):
    """Facts of a library."""

    soname: str
    file: str | None
    resolved_by: str
    wheel_version: str | None
    problem: str


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
"""Folder below `nvidia` of the libraries whose wheel has another name."""


def list_libraries(environment: Environment) -> Mapping[str, Library]:
    """Return the libraries that TensorFlow opens at run time, with the results of the loader."""
    cuda: Mapping[str, Library | list[str]] = environment.get("cuda") or {}
    return {
        key: library
        for key, library in cuda.items()
        if isinstance(library, Mapping) and library.get("soname")
    }


def check_found(environment: Environment) -> Iterator[Finding]:
    """Yield libraries that are not found: a finding for each wheel, or one for all without a GPU.

    A CUDA build without any of these libraries, on a machine without GPU, is a CPU installation and
    not a problem.
    """
    libraries = list_libraries(environment)
    missing = []
    has_any_file = False
    for key, library in libraries.items():
        if key == _DRIVER or key in _OPTIONAL:
            continue
        if library.get("resolved_by") == NOT_FOUND:
            missing.append(key)
        if library.get("file"):
            has_any_file = True
    if not missing or not (environment.gpus or has_any_file):
        return
    fix = _make_findable(environment, missing)
    if not environment.gpus:
        shown = _describe(missing, libraries, "is", "are")
        yield make_finding("library-not-needed", library=missing[0], libraries=shown, fix=fix.text)
        return
    for keys in _group_by_wheel(environment, missing):
        shown = _describe(keys, libraries, "is", "are")
        yield make_finding("library-missing", fix, library=keys[0], libraries=shown)


def _group_by_wheel(environment: Environment, keys: Iterable[str]) -> list[list[str]]:
    """Return libraries in groups with the same wheel: a problem with one of them is a problem with
    all.
    """
    groups: dict[str, list[str]] = {}
    for key in keys:
        groups.setdefault(_get_wheel(environment, key), []).append(key)
    return list(groups.values())


def _describe(keys: list[str], libraries: Mapping[str, Library], one: str, several: str) -> str:
    """Return the libraries with a verb, of which both numbers are given."""
    first, others = libraries[keys[0]]["soname"], len(keys) - 1
    if others:
        return f"{first} and {others} more {several}"
    return f"{first} {one}"


def _make_findable(environment: Environment, keys: Iterable[str]) -> Remedy:
    """Return a remedy by which libraries are found: their wheels, and their folders for the loader."""
    folders: dict[str, str] = {}
    for key in keys:
        folders[_get_wheel(environment, key)] = _get_folder(key)
    lines: list[str] = []
    if not all(map(environment.is_installed, folders)):
        if not environment.stock or not environment.has_tensorflow([">=2.14"]):
            return Remedy(
                "install the CUDA libraries that this TensorFlow was built with, and name their "
                "folder in LD_LIBRARY_PATH"
            )
        name = next(iter(environment.get("tensorflow.distributions") or ()), "tensorflow")
        requirement = f"{name}[and-cuda]=={environment.tensorflow}"
        fix = change(environment, add={name: requirement})
        if not fix.commands:
            return fix
        lines += fix.commands
    for wheel, folder in folders.items():
        if environment.is_installed(wheel):
            program = f"import nvidia.{folder} as m; print(m.__path__[0])"
            command = shlex.join([environment.python, "-c", program])
            lines.append(
                f'export LD_LIBRARY_PATH="$({command})/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
            )
    text = "; ".join(lines)
    return Remedy(text, [text])


def _get_folder(key: str) -> str:
    """Return the folder below `nvidia` in the wheel that contains a library."""
    if key.startswith("cudnn"):
        return "cudnn"
    return _WHEELS.get(key, key.lower())


def _get_wheel(environment: Environment, key: str) -> str:
    """Return the name of a library's wheel for the CUDA that TensorFlow was built with.

    Since CUDA 13 most names have no suffix, and cuDNN's and NCCL's still do.
    """
    name = f"nvidia-{_get_folder(key).replace('_', '-')}"
    suffixed = f"{name}-cu{_get_cuda_major(environment)}"
    if environment.is_installed(name) and not environment.is_installed(suffixed):
        return name
    return suffixed


def check_loadable(environment: Environment) -> Iterator[Finding]:
    """Yield libraries that are found and cannot be loaded."""
    libraries = list_libraries(environment)
    has_driver = libraries.get(_DRIVER, {}).get("resolved_by") != NOT_FOUND
    for key, library in libraries.items():
        problem = library.get("problem")
        if problem is None:
            continue
        # Without a GPU, the driver's library is not needed, and neither is what only lacks that.
        is_of_driver = key == _DRIVER or (not has_driver and "libcuda.so" in problem)
        if not environment.gpus and is_of_driver:
            continue
        fix = _make_loadable(environment, key, library)
        yield make_finding(
            "library-broken", fix, library=key, soname=library["soname"], problem=problem
        )


def _make_loadable(environment: Environment, key: str, library: Library) -> Remedy:
    """Return a remedy by which a library that is found can be loaded."""
    if library.get("resolved_by") == "LD_LIBRARY_PATH":
        return _leave_out(library.get("file"))
    wheel = _get_wheel(environment, key)
    # One that is whole and lacks another library is not helped by its own wheel.
    is_whole = ", which it needs" in library["problem"]
    if is_whole or not environment.is_installed(wheel):
        return Remedy("reinstall its wheel, and remove wrong folders from LD_LIBRARY_PATH")
    return install_again(environment, wheel, fresh=True)


def check_cudnn(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if the loaded cuDNN is older than the one that TensorFlow was compiled
    against.
    """
    built = environment.get("tensorflow.compiled_against_cudnn")
    loaded = environment.get("cuda.cudnn.version")
    if not isinstance(built, str) or not isinstance(loaded, str):
        return
    needed_parts, loaded_parts = (*parse_release(built), 0, 0), (*parse_release(loaded), 0, 0)
    if needed_parts[0] == loaded_parts[0] and loaded_parts[:2] >= needed_parts[:2]:
        return
    resolved_by = environment.get("cuda.cudnn.resolved_by")
    place = f"by {resolved_by}" if isinstance(resolved_by, str) else "from an unknown place"
    if resolved_by in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        fix = Remedy(f"remove that cuDNN from {resolved_by}")
    else:
        name = "nvidia-cudnn-cu12"
        if not environment.is_installed(name):
            name = f"nvidia-cudnn-cu{_get_cuda_major(environment)}"
        fix = _change_cudnn(environment, name, f"{needed_parts[0]}.{needed_parts[1]}")
    yield make_finding("cudnn-version", fix, loaded=loaded, place=place, built=built)


def _change_cudnn(environment: Environment, name: str, minor: str) -> Remedy:
    """Return a remedy that installs the cuDNN that TensorFlow's metadata names, or one of the minor
    version.
    """
    specifiers = list_tensorflow_specifiers(environment, name)
    specifier = specifiers[0] if len(specifiers) == 1 and "==" in specifiers[0] else f"=={minor}.*"
    agreed = find_common_requirement(environment, name, specifier)
    if agreed is None:
        owners = " and ".join(list_requirers(environment, name))
        return Remedy(
            f"move {owners}, which requires another {name}, to another environment than "
            "TensorFlow's"
        )
    add = {name: agreed}
    # Missing requirements of the cuDNN wheel itself are installed in the same step.
    for missing in sorted({each.name for each in find_violated(environment) if each.by == name}):
        requirement = find_preferred_requirement(environment, missing)
        if requirement is not None:
            add[missing] = requirement
    return change(environment, add=add)


def check_shadowed(environment: Environment) -> Iterator[Finding]:
    """Yield libraries that a variable puts before those of the installed wheel."""
    libraries = list_libraries(environment)
    # If both apply, a wrong version of cuDNN is the greater problem.
    reported = {finding.where.fact.split(".")[1] for finding in check_cudnn(environment)}
    for variable in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        keys_of_wheels = []
        for key, library in libraries.items():
            if library.get("resolved_by") != variable or library.get("wheel_version"):
                continue
            if environment.is_installed(_get_wheel(environment, key)):
                keys_of_wheels.append(key)
        for keys in _group_by_wheel(environment, keys_of_wheels):
            if not reported.isdisjoint(keys):
                continue
            if variable == "LD_LIBRARY_PATH":
                fix = _leave_out(libraries[keys[0]].get("file"))
            else:
                fix = Remedy("unset LD_PRELOAD", ["unset LD_PRELOAD"])
            yield make_finding(
                "library-shadowed",
                fix,
                library=keys[0],
                libraries=_describe(keys, libraries, "comes", "come"),
                variable=variable,
                wheel=_get_wheel(environment, keys[0]),
            )


def check_stub(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if the loader finds the libcuda of NVIDIA's toolkit, made for linking only."""
    library = list_libraries(environment).get(_DRIVER)
    file = None if library is None else library.get("file")
    if library is None or file is None or "stubs" not in file.split("/")[:-1]:
        return
    if library.get("resolved_by") == "LD_LIBRARY_PATH":
        fix = _leave_out(file)
    else:
        fix = Remedy(f"remove the folder of {file} from the loader's search path")
    severity: Severity = ERROR if environment.gpus else WARNING
    yield make_finding("driver-stub", fix, severity=severity, soname=library["soname"], file=file)


def _leave_out(file: str | None) -> Remedy:
    """Return a remedy that takes the folder of a file out of LD_LIBRARY_PATH."""
    folder = (file or "").rpartition("/")[0]
    if not folder.startswith("/"):
        return Remedy("remove its folder from LD_LIBRARY_PATH")
    # The variable may name it several times, and with slashes at its end.
    named = re.sub(r"([][.*^$+?(){}|\\#])", r"\\\1", folder)
    script = shlex.quote(f":a; s#(^|:){named}/*(:|$)#:#; ta; s/^://; s/:$//")
    text = f'export LD_LIBRARY_PATH="$(echo "$LD_LIBRARY_PATH" | sed -E {script})"'
    return Remedy(text, [text])


def _get_cuda_major(environment: Environment) -> str:
    return str(environment.get("tensorflow.built_with_cuda") or "12").partition(".")[0]
