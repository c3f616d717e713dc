"""The live environment as a `Lockfile`, and what in it deserves a warning."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from envlock.data.compatibility import failing
from envlock.lock.document import validate
from envlock.lock.facts import TensorflowFacts
from envlock.lock.models import SCHEMA_URL, Lockfile
from envlock.runtime.collectors import Snapshot, snapshot
from envlock.runtime.compare import STEADY
from envlock.runtime.cuda.gpu_code import judge
from envlock.runtime.gpu.failures import of_binding
from envlock.runtime.lockfile import LOCK_VERSION
from envlock.runtime.policy import DEFAULT
from envlock.runtime.verify import without_package
from envlock.runtime.version import __version__


def capture(
    policy: str = DEFAULT,
    overrides: Mapping[str, str] | None = None,
    live: Snapshot | None = None,
    project: Mapping[str, Any] | None = None,
) -> Lockfile:
    """Return a lock of the live environment (or of `live`) under a policy.

    `project` is the section of that name: the package called so is left out.

    Raises:
        LockfileError: the policy or a rule does not exist.
    """
    found = without_package(snapshot() if live is None else live, (project or {}).get("name"))
    about = {**(project or {}), **({"tooling": list(found.tooling)} if found.tooling else {})}
    document = {
        "$schema": SCHEMA_URL,
        "lock_version": LOCK_VERSION,
        "created_by": f"envlock {__version__}",
        "facts": found.facts,
        "unavailable": found.unavailable,
        "policy": {"name": policy, "overrides": dict(overrides or {})},
    }
    return validate({**document, "project": about} if about else document, "to be written")


def warnings(lock: Lockfile) -> list[str]:
    """Return what keeps the lock from ever verifying, what ails the binding, and each GPU without machine code."""
    return _untold(lock) + _binding(lock) + _without_code(lock) + _drawn_seed(lock)


def _drawn_seed(lock: Lockfile) -> list[str]:
    """Return that the hash seed was drawn for this run only, which tox does unless its settings fix it.

    Source: https://tox.wiki/en/latest/config.html#set_env (`tox --hashseed`)
    """
    seed = (lock.facts.environ or {}).get("PYTHONHASHSEED")
    if seed is None or "TOX_ENV_NAME" not in os.environ:
        return []
    return [
        f"PYTHONHASHSEED={seed} comes from tox, which draws another for each run, and is locked; "
        "fix it in tox's settings: `set_env = PYTHONHASHSEED=0`"
    ]


def _untold(lock: Lockfile) -> list[str]:
    paths: dict[str, list[str]] = {}
    for path, entry in lock.unavailable.items():
        if entry.code not in STEADY:
            paths.setdefault(entry.reason, []).append(path)
    return [
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''} could not be collected: {reason}; "
        "`envlock verify` needs it, unless the policy ignores it"
        for reason, names in paths.items()
    ]


def _binding(lock: Lockfile) -> list[str]:
    binding = lock.facts.gpu.binding if lock.facts.gpu is not None else None
    if binding is None or binding.problem is None:
        return []
    return [of_binding(binding.problem, binding.version).reason]


def _without_code(lock: Lockfile) -> list[str]:
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
            found.append(
                f"GPU {index} ({device.name}): {_fate(tensorflow, device.compute_capability, verdict.sentence)}"
            )
    return found


def _fate(tensorflow: TensorflowFacts, capability: str, sentence: str) -> str:
    """Return what becomes of a TensorFlow on a GPU that it has no machine code for; as users report it, if they do."""
    version = tensorflow.version if tensorflow.nvidia_build is None else None
    met = failing(version, capability) if version is not None else None
    if met is None:
        return sentence
    return f"TensorFlow holds no machine code for compute capability {capability}. {met.why} What works: {met.works}."
