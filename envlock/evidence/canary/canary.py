"""Compute the canary, and compare it with that of a lockfile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from envlock.evidence.canary.canary_comparison import (
    CanaryEvidence,
    Comparison,
    compare,
    count_operations,
    list_findings,
    list_notes,
)
from envlock.evidence.canary.canary_run import LIBRARY, Canary, Settings, compute
from envlock.evidence.canary.program_operations import compute_programs, recompute_program
from envlock.guest.target import Target
from envlock.lock.live_facts import collect_live
from envlock.lock.locks import get_subject, load_lock
from envlock.lock.models import Lockfile
from envlock.lock.numerics import Numerics, parse_numerics
from envlock.packages.live_environment import LiveEnvironment
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.errors import FactError
from envlock.runtime.judgement import build_policy
from envlock.runtime.policies import Policy
from envlock.runtime.report import Report, sort_findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source


def canary(
    lock: Source | None = None,
    *,
    python: Path | None = None,
    progress: Progress = SILENT,
) -> Report[CanaryEvidence]:
    """Return the canary of this environment, and its differences from that of a lockfile, if one is
    given and has a canary.

    The attachments are `numerics` (the results), `seconds` and `cpu_seconds` (None if a group ended
    its process), and `causes` (the causes of a difference, the likeliest first).

    Args:
        lock: the lockfile to compare with; None compares with nothing.
        python: the interpreter of the environment; this one when not given.
        progress: shows what is being done.

    Raises:
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
        FactError: the canary cannot be computed.
        UsageError: there is no such interpreter.
    """
    model = None
    locked = None
    if lock is not None:
        model = load_lock(lock)
        locked = model.numerics
    environment = LiveEnvironment(python, collect_live(python))
    found = measure(get_settings(locked), environment, progress, locked)
    if model is None or locked is None:
        return Report(
            [],
            command="canary",
            headline="computed; the lockfile has no canary to compare with",
            evidence=CanaryEvidence(found),
        )
    rules = build_policy(model.to_document())
    return _make_report(compare(locked, found.numerics), rules, get_subject(lock), found)


def add_canary(
    lock: Lockfile,
    earlier: Lockfile | None,
    environment: LiveEnvironment,
    programs: Mapping[str, Target] | None,
    progress: Progress,
) -> Lockfile:
    """Return a lockfile with the canary of its environment; see `measure` for the programs.

    Raises:
        UsageError: a program cannot be run.
        FactError: the canary cannot be computed, or a program fails.
    """
    before = earlier.numerics if earlier is not None else None
    found = measure(Settings(), environment, progress, before, programs)
    return lock.model_copy(update={"numerics": found.numerics})


@dataclass(frozen=True)
class Answer:
    """The result of comparing the canary of an environment with that of a lockfile.

    Attributes:
        report: the differences, and the results that could not be compared, as the policy judges
            them.
        equal: how many results have the locked bits; 0 unless all have them, whatever a policy or a
            rule allows.
    """

    report: Report[CanaryEvidence]
    equal: int


def compare_with_lock(
    lock: Lockfile,
    name: str,
    environment: LiveEnvironment,
    policy: str | None,
    progress: Progress,
    *,
    overrides: bool = True,
) -> Answer:
    """Compute the canary with the settings of the lockfile's canary, and compare the two.

    `name` is what messages call the lockfile.

    Raises:
        FactError: the lockfile has no canary, or none can be computed here.
    """
    if lock.numerics is None:
        raise _make_missing_error(name)
    measured = measure(get_settings(lock.numerics), environment, progress, lock.numerics)
    compared = compare(lock.numerics, measured.numerics)
    rules = build_policy(lock.to_document(), policy, overrides=overrides)
    equal = len(compared.equal) if compared.match else 0
    return Answer(_make_report(compared, rules, name, None), equal)


def measure(
    settings: Settings,
    environment: LiveEnvironment,
    progress: Progress,
    earlier: Numerics | None = None,
    programs: Mapping[str, Target] | None = None,
) -> Canary:
    """Return the canary of an environment, computed on the processor and on each visible GPU.

    Args:
        settings: what the canary sets for itself.
        environment: where it is computed.
        progress: shows what is being done.
        earlier: a canary whose operations from programs are computed again, unless `programs` are
            given.
        programs: programs to run; the operations that they compute become part of the canary.

    Raises:
        UsageError: a program cannot be run.
        FactError: the canary cannot be computed, or a program fails.
    """
    python = environment.python
    gpus = environment.has_gpu_build
    own = None
    if programs:
        own = compute_programs(programs, python, settings, gpus=gpus, say=progress.say)
    elif earlier is not None and earlier.program is not None:
        own = recompute_program(earlier.program, python, settings, gpus=gpus, say=progress.say)
    progress.say("computing the canary with TensorFlow (takes seconds)")
    computed = compute(python, settings, gpus=gpus)
    if own is None:
        return computed
    numerics = computed.numerics.model_dump(mode="json", exclude_unset=True)
    return replace(computed, numerics=parse_numerics({**numerics, "program": own}))


def get_settings(locked: Numerics | None) -> Settings:
    """Return the settings that a locked canary was computed with; the defaults if there is no
    canary.
    """
    if locked is not None:
        for group in locked.groups.values():
            # NumPy's group always has one thread and no op determinism.
            if group.conditions.execution != LIBRARY:
                return Settings.of(group.conditions)
    return Settings()


def _make_report(
    compared: Comparison, rules: Policy, subject: str, canary: Canary | None
) -> Report[CanaryEvidence]:
    return Report(
        sort_findings(list_findings(compared, rules)),
        command="canary",
        policy=rules.name,
        overrides=len(rules.overrides),
        subject=subject,
        notes=list_notes(compared),
        extent=count_operations(compared),
        evidence=CanaryEvidence(canary, tuple(compared.suspects)),
    )


def _make_missing_error(name: str) -> FactError:
    return FactError(f"{name} has no canary", hint="run `envlock capture --canary` to add one")
