"""Compute the canary, and compare it with that of a lock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from envlock.lock.live import live
from envlock.lock.models import Lockfile
from envlock.lock.numerics import Numerics, answered
from envlock.numerics.canary.compare import (
    CanaryEvidence,
    Comparison,
    compare,
    coverage,
    findings,
    notes,
)
from envlock.numerics.canary.program import again, extended
from envlock.numerics.canary.run import LIBRARY, Canary, Settings, compute
from envlock.numerics.target import Target
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import FactError
from envlock.runtime.policy import Policy
from envlock.runtime.report import Report, count, ranked
from envlock.runtime.verify import policy_of
from envlock.workflows.hash import refuse_another_environment
from envlock.workflows.locks import lock_of, name_of, subject_of
from envlock.workflows.progress import SILENT, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source


def canary(
    lock: Source | None = None,
    *,
    python: Path | None = None,
    pinned: Settings | None = None,
    required: bool = False,
    progress: Progress = SILENT,
) -> Report[CanaryEvidence]:
    """Return the canary of this environment, and what differs from that of a lock where one is given and has it.

    The attachments are `numerics` (the results), `seconds` and `cpu_seconds` (None where a group ended its process),
    and `causes` (of a difference, the likeliest first).

    Args:
        lock: the lockfile to compare with; None compares with nothing.
        python: the interpreter of the environment; this one when not given.
        pinned: what the canary sets for itself; as the lock's was computed when not given.
        required: the lock must have a canary.
        progress: shows what is going on.

    Raises:
        LockfileError: the lock is missing, unreadable, invalid, or newer than this envlock.
        FactError: the canary cannot be computed, or the lock has none and one is required.
        UsageError: there is no such interpreter.
    """
    model = None if lock is None else lock_of(lock)
    locked = None if model is None else model.numerics
    if required and locked is None:
        raise _none(name_of(lock))
    found = measure(pinned or settings_of(locked), python, live(python), progress, locked)
    if model is None or locked is None:
        return Report(
            [],
            command="canary",
            headline="computed; the lockfile has no canary to compare with",
            evidence=CanaryEvidence(found),
        )
    compared = compare(locked, found.numerics)
    return _report(compared, policy_of(model.to_document()), subject_of(lock), found)


def update_canary(
    lock: Lockfile,
    *,
    python: Path | None = None,
    pinned: Settings | None = None,
    progress: Progress = SILENT,
) -> Lockfile:
    """Return the lock with the canary of this environment, if it is the one that the lock describes.

    The operations of a program that the lock's canary has are computed again.

    Raises:
        EnvironmentMismatch: the packages are not those of the lock.
        FactError: the canary cannot be computed.
        UsageError: there is no such interpreter.
    """
    found = live(python)
    refuse_another_environment(lock, found)
    return lock.model_copy(
        update={
            "numerics": measure(
                pinned or Settings(), python, found, progress, lock.numerics
            ).numerics
        }
    )


@dataclass(frozen=True)
class Answer:
    """What a canary says against that of a lock.

    Attributes:
        report: what differs, and what could not be compared, as the policy judges it.
        equal: how many results have the locked bits, where all have; 0 where one differs, or could not be compared.
            No policy and no rule of a lockfile makes it more.
    """

    report: Report[CanaryEvidence]
    equal: int


def against(
    lock: Lockfile,
    name: str,
    found: Snapshot,
    python: Path | None,
    policy: str | None,
    progress: Progress,
    *,
    overrides: bool = True,
) -> Answer:
    """Return what the canary of this environment says against that of the lock of this name, computed as that was.

    Raises:
        FactError: the lock has no canary, or none can be computed here.
    """
    if lock.numerics is None:
        raise _none(name)
    here = measure(settings_of(lock.numerics), python, found, progress, lock.numerics).numerics
    compared, rules = (
        compare(lock.numerics, here),
        policy_of(lock.to_document(), policy, overrides=overrides),
    )
    return Answer(
        _report(compared, rules, name, None), len(compared.equal) if compared.match else 0
    )


def measure(
    settings: Settings,
    python: Path | None,
    found: Snapshot,
    progress: Progress,
    earlier: Numerics | None = None,
    programs: Mapping[str, Target] | None = None,
) -> Canary:
    """Return the canary of an environment, on the processor and on each GPU that is visible.

    With `programs`, they are run, and what they compute is part of it; else the operations that `earlier` has are.

    Raises:
        UsageError: a program cannot be run.
        FactError: the canary cannot be computed, or a program fails.
    """
    gpu, tensorflow = found.facts.get("gpu"), found.facts.get("tensorflow") or {}
    gpus = isinstance(gpu, dict) and bool(tensorflow.get("cuda_build"))
    own = None
    if programs:
        own = extended(programs, python, settings, gpus=gpus, say=progress.say)
    elif earlier is not None and earlier.program is not None:
        own = again(earlier.program, python, settings, gpus=gpus, say=progress.say)
    progress.say("computing the canary with TensorFlow (takes seconds)")
    canary = compute(python, settings, gpus=gpus)
    if own is None:
        return canary
    numerics = canary.numerics.model_dump(mode="json", exclude_unset=True)
    return replace(canary, numerics=answered({**numerics, "program": own}))


def settings_of(locked: Numerics | None) -> Settings:
    """Return how a locked canary was computed; the default where there is none."""
    groups = locked.groups.values() if locked is not None else []
    heads = [group.conditions for group in groups if group.conditions.execution != LIBRARY]
    return Settings.of(heads[0]) if heads else Settings()


def summary(lock: Lockfile) -> str:
    """Return in a few words what canary a lock has."""
    groups = lock.numerics.groups if lock.numerics is not None else {}
    results = [each for group in groups.values() for each in group.operations.values()]
    unstable = sum(each.unstable is not None for each in results)
    crashed = [
        f"{name} crashed: {group.ended}"
        for name, group in groups.items()
        if group.ended is not None
    ]
    more = [f"{unstable} of them unstable"] if unstable else []
    if lock.numerics is not None and lock.numerics.program is not None:
        own = lock.numerics.program
        results += [each.result for each in own.operations.values()]
        more += coverage(own.targets)
    return ", ".join([f"a canary of {count(len(results), 'result')}", *more, *crashed])


def _report(
    compared: Comparison, rules: Policy, subject: str, canary: Canary | None
) -> Report[CanaryEvidence]:
    return Report(
        ranked(findings(compared, rules)),
        command="canary",
        policy=rules.name,
        overrides=len(rules.overrides),
        subject=subject,
        notes=notes(compared),
        evidence=CanaryEvidence(canary, tuple(compared.suspects)),
    )


def _none(name: str) -> FactError:
    return FactError(f"{name} has no canary", hint="run `envlock canary --update` to add one")
