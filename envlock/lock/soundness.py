"""What is worth a warning when a lock is made, before it hurts. Pure: a lock in, sentences out."""

from __future__ import annotations

from envlock.lock.models import Lockfile
from envlock.runtime.cuda.gpu_code import judge


def warnings(lock: Lockfile) -> list[str]:
    """Return one sentence for every visible GPU that this TensorFlow has no machine code for."""
    tensorflow, gpu = lock.facts.tensorflow, lock.facts.gpu
    if tensorflow is None or gpu is None or not tensorflow.cuda_build:
        return []
    found = []
    for index, device in (gpu.devices or {}).items():
        if device.compute_capability is None:
            continue
        verdict = judge(
            tensorflow.compute_capabilities or [],
            device.compute_capability,
            toolkit=tensorflow.built_with_cuda,
            driver_cuda=gpu.cuda_driver_version,
        )
        if verdict.kind != "native":
            found.append(f"GPU {index} ({device.name}): {verdict.sentence}")
    return found
