"""Make a `Lockfile` of the live environment, with warnings about its content."""

from __future__ import annotations

import os
from collections.abc import Mapping

from envlock.data.compatibility import find_failure
from envlock.lock.document import validate
from envlock.lock.fact_models import TensorflowFacts
from envlock.lock.models import SCHEMA_URL, Lockfile
from envlock.runtime.collectors import Snapshot, take_snapshot
from envlock.runtime.compare import STEADY
from envlock.runtime.cuda.gpu_code import judge
from envlock.runtime.gpu.nvml_failures import explain_binding
from envlock.runtime.judgement import remove_package
from envlock.runtime.lockfile import LOCK_VERSION
from envlock.runtime.policies import DEFAULT
from envlock.runtime.version import __version__


def capture(
    policy: str = DEFAULT,
    overrides: Mapping[str, str] | None = None,
    live: Snapshot | None = None,
    project: Mapping[str, object] | None = None,
) -> Lockfile:
    """Return a lockfile of the live environment under a policy.

    Args:
        policy: how strictly the facts are compared.
        overrides: the project's own rules, by path pattern.
        live: the facts; they are collected when not given.
        project: the section of that name; the package with its `name` is left out.

    Raises:
        LockfileError: the policy or a rule does not exist.
    """
    section = dict(project or {})
    own_name = section.get("name")
    if not isinstance(own_name, str):
        own_name = None
    if live is None:
        live = take_snapshot()
    found = remove_package(live, own_name)
    if found.tooling:
        section["tooling"] = list(found.tooling)
    document: dict[str, object] = {
        "$schema": SCHEMA_URL,
        "lock_version": LOCK_VERSION,
        "created_by": f"envlock {__version__}",
        "facts": found.facts,
        "unavailable": found.unavailable,
        "policy": {"name": policy, "overrides": dict(overrides or {})},
    }
    if section:
        document["project"] = section
    return validate(document, "to be written")


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
        facts = paths[0]
        if len(paths) > 1:
            facts = f"{paths[0]} and {len(paths) - 1} more"
        found.append(
            f"{facts} could not be collected: {reason}; "
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
    return found


def _describe_failure(tensorflow: TensorflowFacts, capability: str) -> str | None:
    """Return how a TensorFlow fails on a GPU for which it has no machine code, according to reports
    of users; None without reports.
    """
    # The reports are about the official wheels.
    if tensorflow.version is None or tensorflow.nvidia_build is not None:
        return None
    reported = find_failure(tensorflow.version, capability)
    if reported is None:
        return None
    return (
        f"TensorFlow holds no machine code for compute capability {capability}. {reported.why} "
        f"What works: {reported.works}."
    )
