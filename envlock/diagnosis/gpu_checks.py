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
from envlock.data.image_tables import load_image_tables
from envlock.diagnosis.diagnosed_environment import Environment
from envlock.diagnosis.remedies import Remedy, change
from envlock.images.drivers import find_driver_floor, find_oldest_driver
from envlock.runtime.compare import STEADY
from envlock.runtime.cuda.gpu_code import NATIVE, NONE, judge
from envlock.runtime.distributions import normalise
from envlock.runtime.gpu.visible import parse
from envlock.runtime.release import parse_release
from envlock.runtime.report import Finding, Severity, count

_NO_GPU = ("gpu", "gpu.driver_version", "gpu.cuda_driver_version", "gpu.devices")
"""If one of these is unknown, TensorFlow is unlikely to get a GPU either."""

_BINDING_NEEDED = ("no-binding", "binding-too-old")
"""Codes of facts that another version of NVIDIA's binding would provide."""

_COMPATIBILITY = "https://docs.nvidia.com/deploy/cuda-compatibility/"


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
    where = "gpu.driver_version"
    if oldest is not None and parse_release(version) < parse_release(oldest):
        evidence = f"the driver is {version}, and CUDA {runtime} needs {oldest} or newer"
        why = (
            "An older driver does not run this CUDA (error 35, 803 or 804), "
            "so TensorFlow computes on the CPU."
        )
        newer = oldest if own is None else own.driver
        fix = f"install driver {newer} or newer, or a TensorFlow for an older CUDA"
        yield Finding(
            "driver-version",
            "error",
            where,
            message=evidence,
            why=why,
            fix=fix,
            source=_COMPATIBILITY,
        )
    elif own is not None and parse_release(version) < parse_release(own.driver):
        evidence = (
            f"the driver is {version}, older than {own.driver}, which came with CUDA {runtime}"
        )
        why = (
            "It runs by minor version compatibility, "
            "without PTX of this CUDA and features of the newer driver."
        )
        fix = f"install driver {own.driver} or newer if the program needs them"
        source = resolve_citation(own.source, table.evidence)
        yield Finding(
            "driver-minor-compatibility",
            "info",
            where,
            message=evidence,
            why=why,
            fix=fix,
            source=source,
        )


def check_forward_compatibility(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if a forward-compatible libcuda is used where it does not work."""
    cuda = environment.get("cuda.cuda_driver.compat_cuda")
    branches = environment.get("cuda.cuda_driver.compat_drivers")
    version = environment.get("gpu.driver_version")
    if not _is_forward_compatible(environment) or not isinstance(version, str):
        return
    consumer_gpus = [model for model in _list_models(environment) if "GeForce" in model]
    evidence = f"the loader finds a forward-compatible libcuda of CUDA {cuda}"
    if branches and parse_release(version)[0] not in branches:
        drivers = ", ".join(map(str, branches))
        evidence += f", made for drivers {drivers}, and the driver is {version}"
        why = (
            "It works only with the kernel drivers of those branches; "
            "with others cuInit fails with error 803 or 804."
        )
    elif consumer_gpus:
        evidence += f", and the GPU is {consumer_gpus[0]}"
        why = (
            "Forward compatibility is for data-centre and some professional GPUs; "
            "others fail with error 804."
        )
    else:
        return
    where = "cuda.cuda_driver"
    fix = "remove the compat folder from LD_LIBRARY_PATH, or install a driver of that CUDA"
    yield Finding(
        "forward-compatibility",
        "error",
        where,
        message=evidence,
        why=why,
        fix=fix,
        source=_COMPATIBILITY,
    )


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
            evidence = (
                f"{name}: TensorFlow holds no machine code for compute capability {capability}"
            )
            source = resolve_citation(measured.source, load_compatibility_table().evidence)
            fix = measured.works
            yield Finding(
                "gpu-code",
                "error",
                where,
                message=evidence,
                why=measured.why,
                fix=fix,
                source=source,
            )
            return
    evidence = f"{name}: {verdict.sentence.rstrip('.')}"
    source = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#application-compatibility"
    fails = verdict.kind == NONE or verdict.runs is False
    severity: Severity = "error" if fails else "warning"
    if fails:
        why = "No TensorFlow operation runs on that GPU."
        fix = (
            "use a TensorFlow with code for it (NVIDIA's image, or a later release), "
            "or a newer driver"
        )
    else:
        why = (
            "The driver's compiler is then part of the numerics: "
            "another driver can give different bits."
        )
        fix = "lock the driver version, and expect minutes of compilation at the first start"
    yield Finding("gpu-code", severity, where, message=evidence, why=why, fix=fix, source=source)


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
    models = " and ".join(_list_models(environment))
    number = len(environment.gpus)
    verb = "is" if number == 1 else "are"
    evidence = (
        f"{count(number, 'GPU')} {verb} visible ({models}), "
        f"and TensorFlow {environment.tensorflow} is a build without CUDA"
    )
    why = "Everything runs on the CPU: slowly, and with other bits than on a GPU."
    fix = (
        "install a TensorFlow with CUDA (`tensorflow[and-cuda]`); "
        "if the CPU is meant, hide the GPUs: export CUDA_VISIBLE_DEVICES=-1"
    )
    source = "https://www.tensorflow.org/install/pip"
    yield Finding(
        "gpus-unused", "error", "gpu.devices", message=evidence, why=why, fix=fix, source=source
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
    evidence = f"driver {driver} is loaded, but CUDA sees no GPU"
    fix = (
        "`nvidia-smi -L` lists the GPUs: one in MIG mode needs slices (`nvidia-smi mig -cgi PROFILE -C`), "
        "and a container needs --gpus"
    )
    if wanted is not None:
        evidence += f": CUDA_VISIBLE_DEVICES={wanted!r} names no GPU of this machine"
        fix = "let CUDA_VISIBLE_DEVICES name a GPU or slice of `nvidia-smi -L`, or unset it"
    why = "Everything runs on the CPU: slowly, and with other bits than on a GPU."
    source = "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/"
    yield Finding(
        "gpus-none", "error", "gpu.visible.count", message=evidence, why=why, fix=fix, source=source
    )


_RETIREMENT = "https://docs.nvidia.com/deploy/dynamic-page-retirement/"
_REMAPPING = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/"


def check_memory(environment: Environment) -> Iterator[Finding]:
    """Yield GPUs whose memory has given wrong values, or is to be repaired by a reset."""
    for gpu in environment.gpu_health:
        name = f"GPU {gpu.index} ({gpu.name})"
        where = "gpu.devices"
        if gpu.remapping_failed:
            evidence = f"{name}: a row of its memory failed and could not be replaced"
            why = "Uncorrectable errors go on, and end the programs that read them."
            fix = "replace the board: its vendor's diagnosis names it"
            yield Finding(
                "gpu-memory", "error", where, message=evidence, why=why, fix=fix, source=_REMAPPING
            )
        if gpu.uncorrected:
            evidence = (
                f"{name}: {count(gpu.uncorrected, 'uncorrectable error')} of its memory "
                "since the driver was loaded"
            )
            why = "A program that read such a value computed with wrong bits, or was ended."
            fix = "do not trust results since then, and reset the GPU (`nvidia-smi --gpu-reset`)"
            yield Finding(
                "gpu-memory", "error", where, message=evidence, why=why, fix=fix, source=_REMAPPING
            )
        if gpu.pending:
            evidence = f"{name}: a failed part of its memory is replaced at the next reset"
            why = "Until then the part stays in use, and the error can come again."
            fix = "reset the GPU (`nvidia-smi --gpu-reset`), or restart the machine"
            yield Finding(
                "gpu-memory",
                "warning",
                where,
                message=evidence,
                why=why,
                fix=fix,
                source=_RETIREMENT,
            )
        replaced = []
        if gpu.retired_pages:
            replaced.append(count(gpu.retired_pages, "retired page"))
        if gpu.remapped_rows:
            replaced.append(count(gpu.remapped_rows, "remapped row"))
        if replaced:
            evidence = f"{name}: {' and '.join(replaced)} after uncorrectable errors of its memory"
            why = "These are out of use; a number that grows announces the end of the board."
            fix = "watch the number (`nvidia-smi -q -d PAGE_RETIREMENT,ROW_REMAPPER`)"
            yield Finding(
                "gpu-memory", "info", where, message=evidence, why=why, fix=fix, source=_RETIREMENT
            )


def check_models(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if GPUs of several models are visible."""
    models = _list_models(environment)
    if len(models) > 1:
        evidence = (
            f"{len(environment.gpus)} GPUs of {len(models)} models are visible: {', '.join(models)}"
        )
        why = "Another architecture or number of multiprocessors gives different bits."
        fix = (
            "export CUDA_DEVICE_ORDER=PCI_BUS_ID, and let CUDA_VISIBLE_DEVICES show one model only"
        )
        source = "https://docs.nvidia.com/deeplearning/cudnn/latest/developer/misc.html"
        yield Finding(
            "gpus-mixed",
            "warning",
            "gpu.devices",
            message=evidence,
            why=why,
            fix=fix,
            source=source,
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
        subject = f"{paths[0]} and {len(paths) - 1} more" if len(paths) > 1 else paths[0]
        sentence, _, remedy = reason.partition("; ")
        severity: Severity = "error" if any(path in _NO_GPU for path in paths) else "warning"
        fix = Remedy(remedy.rstrip(".") or "fix the named cause, and run `envlock doctor` again")
        if codes[reason] in _BINDING_NEEDED:
            fix = change(environment, add={BINDING: BINDING + get_fixed_versions(BINDING)})
        yield Finding(
            "fact-unknown",
            severity,
            paths[0],
            message=f"{subject} could not be collected: {sentence.rstrip('.')}",
            why="An unknown fact can be neither judged nor locked, and its cause is often the real "
            "problem.",
            fix=fix.text,
            source="the collectors",
            commands=fix.commands,
        )
