"""Rules on the driver and the GPUs. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from envlock.data.compatibility import BINDING, added, compatibility_table, failing, ptx_cuda
from envlock.data.determinism import cited
from envlock.data.images import image_tables
from envlock.diagnosis.environment import Environment
from envlock.diagnosis.remedies import Remedy, change
from envlock.images.drivers import driver_floor, oldest_driver
from envlock.runtime.compare import STEADY
from envlock.runtime.cuda.gpu_code import NATIVE, NONE, judge
from envlock.runtime.release import numbers
from envlock.runtime.report import Finding

_NO_GPU = ("gpu", "gpu.driver_version", "gpu.cuda_driver_version", "gpu.devices")
"""Where one of these cannot be told, TensorFlow hardly gets a GPU either."""

_BINDING_NEEDED = ("no-binding", "binding-too-old")
"""Codes of what another version of NVIDIA's binding tells."""

_COMPATIBILITY = "https://docs.nvidia.com/deploy/cuda-compatibility/"


def driver(environment: Environment) -> Iterator[Finding]:
    """Yield that the driver is too old for the CUDA runtime, or serves it by minor version compatibility only."""
    runtime, has = environment.get("cuda.cudart.version"), environment.get("gpu.driver_version")
    if (
        not isinstance(runtime, str)
        or not isinstance(has, str)
        or environment.get("cuda.cuda_driver.compat_cuda")
    ):
        return
    table = image_tables().cuda
    own, oldest = driver_floor(runtime, table), oldest_driver(runtime, table)
    if oldest is not None and numbers(has) < numbers(oldest):
        evidence = f"the driver is {has}, and CUDA {runtime} needs {oldest} or newer"
        why = "An older driver does not run this CUDA (error 35, 803 or 804), so TensorFlow computes on the CPU."
        fix = f"install driver {own.driver if own else oldest} or newer, or a TensorFlow for an older CUDA"
        yield Finding(
            "driver-version", "error", "gpu.driver_version", evidence, why, fix, _COMPATIBILITY
        )
    elif own is not None and numbers(has) < numbers(own.driver):
        evidence = f"the driver is {has}, older than {own.driver}, which came with CUDA {runtime}"
        why = "It runs by minor version compatibility, without PTX of this CUDA and features of the newer driver."
        fix = f"install driver {own.driver} or newer if the program needs them"
        source = cited(own.source, table.evidence)
        yield Finding("driver-minor", "info", "gpu.driver_version", evidence, why, fix, source)


def forward_compatibility(environment: Environment) -> Iterator[Finding]:
    """Yield that a forward-compatible libcuda is used where it does not work."""
    cuda, branches = (
        environment.get("cuda.cuda_driver.compat_cuda"),
        environment.get("cuda.cuda_driver.compat_drivers"),
    )
    has = environment.get("gpu.driver_version")
    if not cuda or not isinstance(has, str):
        return
    branch = numbers(has)[0]
    cards = sorted(
        {
            str(gpu.get("name"))
            for gpu in environment.gpus.values()
            if "GeForce" in str(gpu.get("name"))
        }
    )
    told = f"the loader finds a forward-compatible libcuda of CUDA {cuda}"
    fix = "remove the compat folder from LD_LIBRARY_PATH, or install a driver of that CUDA"
    if branches and branch not in branches:
        evidence = (
            f"{told}, made for drivers {', '.join(map(str, branches))}, and the driver is {has}"
        )
        why = "It works only with the kernel drivers of those branches; with others cuInit fails with error 803 or 804."
        yield Finding(
            "forward-compatibility", "error", "cuda.cuda_driver", evidence, why, fix, _COMPATIBILITY
        )
    elif cards:
        evidence = f"{told}, and the GPU is {cards[0]}"
        why = "Forward compatibility is for data-centre and some professional GPUs; others fail with error 804."
        yield Finding(
            "forward-compatibility", "error", "cuda.cuda_driver", evidence, why, fix, _COMPATIBILITY
        )


def gpu_code(environment: Environment) -> Iterator[Finding]:
    """Yield visible GPUs for which TensorFlow has no machine code."""
    targets = environment.get("tensorflow.compute_capabilities")
    if not targets or not environment.get("tensorflow.cuda_build"):
        return
    known = (
        ptx_cuda(environment.tensorflow)
        if environment.tensorflow is not None and environment.stock
        else None
    )
    for index, gpu in environment.gpus.items():
        capability = gpu.get("compute_capability")
        if not isinstance(capability, str):
            continue
        toolkit = environment.ptx_cuda or known or environment.get("tensorflow.built_with_cuda")
        verdict = judge(targets, capability, toolkit, environment.get("gpu.cuda_driver_version"))
        if verdict.kind == NATIVE:
            continue
        met = (
            failing(environment.tensorflow, capability)
            if environment.tensorflow and environment.stock
            else None
        )
        if met is not None:
            told = f"GPU {index} ({gpu.get('name')}): TensorFlow holds no machine code for compute capability {capability}"
            source = cited(met.source, compatibility_table().evidence)
            yield Finding(
                "gpu-code", "error", f"gpu.devices.{index}", told, met.why, met.works, source
            )
            continue
        fails = verdict.kind == NONE or verdict.runs is False
        severity = "error" if fails else "warning"
        why = "The driver's compiler is then part of the numerics: another driver can give different bits."
        if fails:
            why = "No TensorFlow operation runs on that GPU."
        fix = "lock the driver version, and expect minutes of compilation at the first start"
        if fails:
            fix = "use a TensorFlow with code for it (NVIDIA's image, or a later release), or a newer driver"
        evidence = f"GPU {index} ({gpu.get('name')}): {verdict.sentence.rstrip('.')}"
        source = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#application-compatibility"
        yield Finding("gpu-code", severity, f"gpu.devices.{index}", evidence, why, fix, source)


def mixed(environment: Environment) -> Iterator[Finding]:
    """Yield that GPUs of several models are visible."""
    models = sorted({str(gpu.get("name")) for gpu in environment.gpus.values()})
    if len(models) > 1:
        evidence = (
            f"{len(environment.gpus)} GPUs of {len(models)} models are visible: {', '.join(models)}"
        )
        why = "Another architecture or number of multiprocessors gives different bits."
        fix = (
            "export CUDA_DEVICE_ORDER=PCI_BUS_ID, and let CUDA_VISIBLE_DEVICES show one model only"
        )
        source = "https://docs.nvidia.com/deeplearning/cudnn/latest/developer/misc.html"
        yield Finding("gpus-mixed", "warning", "gpu.devices", evidence, why, fix, source)


def untold(environment: Environment) -> Iterator[Finding]:
    """Yield what could not be told, with the collectors' own sentence."""
    reasons: dict[str, list[str]] = {}
    codes = {entry["reason"]: entry.get("code") for entry in environment.unavailable.values()}
    for path, entry in environment.unavailable.items():
        if entry.get("code") not in (*STEADY, "changed-after-start") and path not in (
            "tensorflow",
            "tensorflow.version",
        ):
            reasons.setdefault(entry["reason"], []).append(path)
    for reason, paths in reasons.items():
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        sentence, _, remedy = reason.partition("; ")
        severity = "error" if any(path in _NO_GPU for path in paths) else "warning"
        fix = Remedy(remedy.rstrip(".") or "fix the named cause, and run `envlock doctor` again")
        if codes[reason] in _BINDING_NEEDED:
            fix = change(environment, add={BINDING: BINDING + added(BINDING)})
        yield Finding(
            "fact-unknown",
            severity,
            paths[0],
            f"{paths[0]}{more} could not be collected: {sentence.rstrip('.')}",
            "An unknown fact can be neither judged nor locked, and its cause is often the real problem.",
            fix.text,
            "the collectors",
            commands=fix.commands,
        )
