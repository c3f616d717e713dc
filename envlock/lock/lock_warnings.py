"""Warnings about the content of a lockfile: facts that will not verify later, and hardware on which
TensorFlow will fail.
"""

from __future__ import annotations

import os

from envlock.runtime.compare import STEADY
from envlock.runtime.cuda.gpu_code import judge
from envlock.runtime.device_ranges import merge_devices
from envlock.runtime.gpu.nvml_failures import explain_binding
from envlock.runtime.report import count, join_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.fact_models import TensorflowFacts
    from envlock.lock.models import Lockfile

MAIN = ("Python", "TensorFlow")


def list_warnings(lock: Lockfile) -> list[str]:
    """Return warnings about facts that will keep the lockfile from verifying later, or that make
    TensorFlow fail on a GPU.
    """
    return (
        _warn_of_unavailable(lock)
        + _warn_of_binding(lock)
        + _warn_of_gpus(lock)
        + _warn_of_hash_seed(lock)
    )


def describe_replaced(earlier: Lockfile, lock: Lockfile) -> list[str]:
    """Return a warning if a lockfile replaces that of another environment: of another Python or
    TensorFlow, or with a third of the packages in other versions.
    """
    old, new = _list_versions(earlier), _list_versions(lock)
    other = [name for name in old if old[name] != new.get(name)]
    main = [f"{name} {old[name]} -> {new.get(name)}" for name in MAIN if name in other]
    if not main and 3 * len(other) <= len(old):
        return []
    packages = count(len(set(other) - set(MAIN)), "package")
    parts = ", ".join([*main, f"{packages} with other versions"])
    return [
        f"this replaces the lockfile of another environment ({parts}); if it is the team's, restore it "
        "from version control, and `envlock sync` installs what it holds"
    ]


def _list_versions(lock: Lockfile) -> dict[str, str | None]:
    facts = lock.facts
    versions = {name: fact.version for name, fact in (facts.packages or {}).items()}
    for name, section in zip(MAIN, (facts.python, facts.tensorflow), strict=True):
        if section is not None:
            versions[name] = section.version
    return versions


def _warn_of_hash_seed(lock: Lockfile) -> list[str]:
    """Return a warning if the hash seed was chosen at random for this run only.

    tox does that unless its settings fix the seed. Source:
    https://tox.wiki/en/latest/config.html#set_env (`tox --hashseed`)
    """
    seed = (lock.facts.environ or {}).get("PYTHONHASHSEED")
    if seed is None or "TOX_ENV_NAME" not in os.environ:
        return []
    return [
        f"PYTHONHASHSEED={seed} comes from tox, which draws another for each run, and is locked; "
        "fix it in tox's settings: `set_env = PYTHONHASHSEED=0`"
    ]


def _warn_of_unavailable(lock: Lockfile) -> list[str]:
    paths_by_reason: dict[str, list[str]] = {}
    for path, entry in lock.unavailable.items():
        if entry.code not in STEADY:
            paths_by_reason.setdefault(entry.reason, []).append(path)
    found = []
    for reason, paths in paths_by_reason.items():
        found.append(
            f"{join_first(paths, 1)} could not be collected: {reason}; "
            "`envlock verify` needs it, unless the policy ignores it"
        )
    return found


def _warn_of_binding(lock: Lockfile) -> list[str]:
    if lock.facts.gpu is None or lock.facts.gpu.binding is None:
        return []
    binding = lock.facts.gpu.binding
    if binding.problem is None:
        return []
    return [explain_binding(binding.problem, binding.version).reason]


def _warn_of_gpus(lock: Lockfile) -> list[str]:
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
            sentence = _describe_failure(tensorflow, device.compute_capability) or verdict.sentence
            found.append(f"GPU {index} ({device.name}): {sentence}")
    return merge_devices(found)


def _describe_failure(tensorflow: TensorflowFacts, capability: str) -> str | None:
    """Return how a TensorFlow fails on a GPU for which it has no machine code, according to reports
    of users; None without reports.
    """
    # The reports are about the official wheels.
    if tensorflow.version is None or tensorflow.nvidia_build is not None:
        return None
    # Start-up time: the table takes 5 ms, and is needed only for a GPU without machine code.
    from envlock.data.compatibility import find_failure

    reported = find_failure(tensorflow.version, capability)
    if reported is None:
        return None
    return (
        f"TensorFlow holds no machine code for compute capability {capability}. {reported.why} "
        f"What works: {reported.works}."
    )
