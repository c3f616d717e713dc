"""Rules on the driver and the GPUs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from envlock.data.compatibility import (
    BINDING,
    find_failure,
    find_ptx_cuda,
    get_fixed_versions,
    load_compatibility_table,
)
from envlock.data.determinism import resolve_citation
from envlock.data.image_tables import find_driver_floor, find_oldest_driver, load_image_tables
from envlock.diagnosis.diagnosed_environment import Environment
from envlock.diagnosis.doctor_table import make_finding
from envlock.diagnosis.remedies import Remedy, change
from envlock.runtime.compare import STEADY
from envlock.runtime.cuda.gpu_code import NATIVE, NONE, judge
from envlock.runtime.distributions import normalise
from envlock.runtime.gpu.visible import parse
from envlock.runtime.release import parse_release
from envlock.runtime.report import Finding, Severity, count, join_first

_NO_GPU = ("gpu", "gpu.driver_version", "gpu.cuda_driver_version", "gpu.devices")
"""If one of these is unknown, TensorFlow is unlikely to get a GPU either."""

_BINDING_NEEDED = ("no-binding", "binding-too-old")
"""Codes of facts that another version of NVIDIA's binding would provide."""


def check_driver(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if the driver is too old for the CUDA runtime, or only compatible with it."""
    runtime = environment.get("cuda.cudart.version")
    version = environment.get("gpu.driver_version")
    if not isinstance(runtime, str) or not isinstance(version, str):
        return
    # A forward-compatible libcuda replaces the driver's; `check_forward_compatibility` judges it.
    if _is_forward_compatible(environment):
        return
    table = load_image_tables().cuda
    own, oldest = find_driver_floor(runtime, table), find_oldest_driver(runtime, table)
    newer = oldest if own is None else own.driver
    if oldest is not None and parse_release(version) < parse_release(oldest):
        yield make_finding(
            "driver-version", version=version, runtime=runtime, oldest=oldest, newer=newer
        )
    elif own is not None and parse_release(version) < parse_release(own.driver):
        yield make_finding(
            "driver-minor-compatibility",
            version=version,
            runtime=runtime,
            newer=newer,
            source=resolve_citation(own.source, table.evidence),
        )


def check_forward_compatibility(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if a forward-compatible libcuda is used where it does not work."""
    cuda = environment.get("cuda.cuda_driver.compat_cuda")
    branches = environment.get("cuda.cuda_driver.compat_drivers")
    version = environment.get("gpu.driver_version")
    if not _is_forward_compatible(environment) or not isinstance(version, str):
        return
    consumer_gpus = [model for model in _list_models(environment) if "GeForce" in model]
    if branches and parse_release(version)[0] not in branches:
        drivers = ", ".join(map(str, branches))
        yield make_finding("forward-compatibility", cuda=cuda, drivers=drivers, version=version)
    elif consumer_gpus:
        yield make_finding("forward-compatibility-gpu", cuda=cuda, model=consumer_gpus[0])


def _is_forward_compatible(environment: Environment) -> bool:
    """Return whether libcuda belongs to another driver than the one that is loaded.

    NVIDIA's note alone says nothing: the driver's own libcuda has it, too (seen on an H100 with driver 580.159.04).
    """
    library = environment.get("cuda.cuda_driver.version")
    if not environment.get("cuda.cuda_driver.compat_cuda") or not isinstance(library, str):
        return False
    driver: str | None = environment.get("gpu.driver_version")
    return library != driver


def check_gpu_code(environment: Environment) -> Iterator[Finding]:
    """Yield the visible GPUs for which TensorFlow has no machine code."""
    if not environment.get("tensorflow.cuda_build"):
        return
    if not environment.get("tensorflow.compute_capabilities"):
        return
    for index, gpu in environment.gpus.items():
        capability = gpu.get("compute_capability")
        if isinstance(capability, str):
            where, name = f"gpu.devices.{index}", f"GPU {index} ({gpu.get('name')})"
            yield from _check_capability(environment, capability, where, name)


def _check_capability(
    environment: Environment, capability: str, where: str, name: str
) -> Iterator[Finding]:
    """Yield the problems of TensorFlow's code for one GPU, whose name begins a message."""
    verdict = judge(
        environment.get("tensorflow.compute_capabilities"),
        capability,
        _find_ptx_cuda(environment),
        environment.get("gpu.cuda_driver_version"),
    )
    if verdict.kind == NATIVE:
        return
    if environment.tensorflow is not None and environment.stock:
        measured = find_failure(environment.tensorflow, capability)
        if measured is not None:
            yield make_finding(
                "gpu-code-measured",
                where=where,
                gpu=name,
                capability=capability,
                why=measured.why,
                works=measured.works,
                source=resolve_citation(measured.source, load_compatibility_table().evidence),
            )
            return
    fails = verdict.kind == NONE or verdict.runs is False
    row = "gpu-code" if fails else "gpu-code-compiled"
    yield make_finding(row, where=where, gpu=name, sentence=verdict.sentence.rstrip("."))


def _find_ptx_cuda(environment: Environment) -> str | None:
    """Return the CUDA version that TensorFlow's PTX needs: read, measured, or that of the build."""
    if environment.ptx_cuda:
        return environment.ptx_cuda
    if environment.tensorflow is not None and environment.stock:
        measured = find_ptx_cuda(environment.tensorflow)
        if measured:
            return measured
    built: str | None = environment.get("tensorflow.built_with_cuda")
    return built


def check_unused(environment: Environment) -> Iterator[Finding]:
    """Yield that GPUs are visible to a TensorFlow that has no CUDA."""
    if environment.tensorflow is None or environment.get("tensorflow.cuda_build") is not False:
        return
    if not environment.gpus:
        return
    number = len(environment.gpus)
    verb = "is" if number == 1 else "are"
    yield make_finding(
        "gpus-unused",
        gpus=f"{count(number, 'GPU')} {verb}",
        models=" and ".join(_list_models(environment)),
        tensorflow=environment.tensorflow,
    )


def check_visible(environment: Environment) -> Iterator[Finding]:
    """Yield that CUDA sees no GPU although a driver is loaded, unless a variable hides all of them."""
    driver = environment.get("gpu.driver_version")
    if not isinstance(driver, str) or environment.get("gpu.visible.count") != 0:
        return
    if not environment.get("tensorflow.cuda_build"):
        return
    if "CUDA_VISIBLE_DEVICES" not in environment.variables:  # its value is not known
        return
    wanted = environment.variables["CUDA_VISIBLE_DEVICES"]
    selection = parse(wanted)
    if selection.ids == [] or selection.ordinals == []:
        return
    if wanted is None:
        yield make_finding("gpus-none", driver=driver)
    else:
        yield make_finding("gpus-misnamed", driver=driver, wanted=repr(wanted))


def check_memory(environment: Environment) -> Iterator[Finding]:
    """Yield GPUs whose memory has given wrong values, or is to be repaired by a reset."""
    for gpu in environment.gpu_health:
        name = f"GPU {gpu.index} ({gpu.name})"
        if gpu.remapping_failed:
            yield make_finding("gpu-memory-failed", gpu=name)
        if gpu.uncorrected:
            errors = count(gpu.uncorrected, "uncorrectable error")
            yield make_finding("gpu-memory", gpu=name, errors=errors)
        if gpu.pending:
            yield make_finding("gpu-memory-pending", gpu=name)
        replaced = []
        if gpu.retired_pages:
            replaced.append(count(gpu.retired_pages, "retired page"))
        if gpu.remapped_rows:
            replaced.append(count(gpu.remapped_rows, "remapped row"))
        if replaced:
            yield make_finding("gpu-memory-replaced", gpu=name, parts=" and ".join(replaced))


def check_models(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if GPUs of several models are visible."""
    models = _list_models(environment)
    if len(models) > 1:
        yield make_finding(
            "gpus-mixed",
            gpus=len(environment.gpus),
            number=len(models),
            models=", ".join(models),
        )


def _list_models(environment: Environment) -> list[str]:
    """Return the names of the visible GPUs, each once."""
    return sorted({str(gpu.get("name")) for gpu in environment.gpus.values()})


def check_unavailable(environment: Environment) -> Iterator[Finding]:
    """Yield the facts that could not be collected, with the reasons that the collectors gave."""
    paths_by_reason: dict[str, list[str]] = {}
    codes: dict[str, str | None] = {}
    # Two versions, of which one is left over: the rule `remnant` names its folder.
    names = [normalise(PurePosixPath(each).name.partition("-")[0]) for each in environment.remnants]
    left_over = {f"packages.{name}.version" for name in names}
    for path, entry in environment.unavailable.items():
        codes[entry["reason"]] = entry.get("code")
        if entry.get("code") in (*STEADY, "changed-after-start"):
            continue
        if path in ("tensorflow", "tensorflow.version") or path in left_over:
            continue
        paths_by_reason.setdefault(entry["reason"], []).append(path)
    for reason, paths in paths_by_reason.items():
        sentence, _, remedy = reason.partition("; ")
        severity: Severity = "error" if any(path in _NO_GPU for path in paths) else "warning"
        if codes[reason] in _BINDING_NEEDED:
            fix = change(environment, add={BINDING: BINDING + get_fixed_versions(BINDING)})
        else:
            fix = Remedy(
                remedy.rstrip(".") or "fix the named cause, and run `envlock doctor` again"
            )
        yield make_finding(
            "fact-unknown",
            fix,
            severity=severity,
            where=paths[0],
            subject=join_first(paths, 1),
            sentence=sentence.rstrip("."),
        )
