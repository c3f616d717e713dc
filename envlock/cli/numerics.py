"""What `canary`, `capture --canary`, `verify --numerics` and `diff` have in common."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from envlock.cli.output import talk
from envlock.lock.document import load, numerics_of
from envlock.lock.models import Lockfile
from envlock.lock.numerics import Numerics
from envlock.numerics.canary.compare import Comparison, compare, findings, notes
from envlock.numerics.canary.run import LIBRARY, Canary, Settings, compute
from envlock.runtime.capture import Snapshot
from envlock.runtime.errors import FactError, LockfileError
from envlock.runtime.report import Report
from envlock.runtime.verify import policy_of


def measured(settings: Settings, python: Path | None, found: Snapshot, *, quiet: bool) -> Canary:
    """Return the canary of an environment, on the processor and on each GPU that is visible."""
    watched = sys.stderr is not None and sys.stderr.isatty()
    talk("computing the canary in TensorFlow (seconds)", quiet=quiet or not watched)
    gpu, tensorflow = found.facts.get("gpu"), found.facts.get("tensorflow") or {}
    return compute(python, settings, gpus=isinstance(gpu, dict) and bool(tensorflow.get("cuda_build")))


def with_canary(lock: Lockfile, python: Path | None, found: Snapshot, settings: Settings, *, quiet: bool) -> Lockfile:
    """Return the lock with the canary of the environment that it describes."""
    return lock.model_copy(update={"numerics": measured(settings, python, found, quiet=quiet).numerics})


def settings_of(locked: Numerics | None) -> Settings:
    """Return how a locked canary was computed; the default where there is none."""
    groups = locked.groups.values() if locked is not None else []
    heads = [group.conditions for group in groups if group.conditions.execution != LIBRARY]
    return Settings.of(heads[0]) if heads else Settings()


def verified(
    report: Report, name: str, document: dict[str, Any], found: Snapshot, python: Path | None, *, quiet: bool
) -> Report:
    """Return a report with the canary's results in it, computed as the lock's was.

    Raises:
        FactError: the lock has no canary, or none can be computed here.
        LockfileError: the lock's canary is not what the format says.
    """
    locked = required(document, name)
    live = measured(settings_of(locked), python, found, quiet=quiet).numerics
    more, _ = against(document, locked, live, report.policy)
    return Report(report.findings + more.findings, report.policy, notes=more.notes)


def against(
    document: dict[str, Any], locked: Numerics, live: Numerics, policy: str | None = None
) -> tuple[Report, Comparison]:
    """Return what a canary says against the one of a lock, under the lock's policy or the one named."""
    compared, rules = compare(locked, live), policy_of(document, policy)
    return Report(findings(compared, rules), rules.name, notes=notes(compared)), compared


def summary(lock: Lockfile) -> str:
    """Return in a few words what canary a lock has."""
    groups = lock.numerics.groups if lock.numerics is not None else {}
    results = [each for group in groups.values() for each in group.operations.values()]
    unstable = sum(each.unstable is not None for each in results)
    died = [f"{name} ended by {group.ended}" for name, group in groups.items() if group.ended is not None]
    more = [f"{unstable} of them unstable"] if unstable else []
    return ", ".join([f"a canary of {len(results)} results", *more, *died])


def required(document: dict[str, Any], name: str) -> Numerics:
    """Return the canary of a lock.

    Raises:
        FactError: it has none.
        LockfileError: it is not what the format says.
    """
    locked = numerics_of(document, name)
    if locked is None:
        raise FactError(f"lockfile {name} has no canary", hint="`envlock canary --update` adds one")
    return locked


def kept(lock: Lockfile, path: Path, *, quiet: bool) -> Lockfile:
    """Return a lock made anew with the canary of the one at `path`, where not a fact differs from then."""
    try:
        earlier = load(path)
    except LockfileError:  # there is none, or nothing in it can be trusted: it is replaced
        return lock
    if earlier.numerics is None:
        return lock
    old, new = earlier.to_document(), lock.to_document()
    if old["facts"] == new["facts"] and old["unavailable"] == new["unavailable"]:
        return lock.model_copy(update={"numerics": earlier.numerics})
    talk("warning: the lock's canary was of other facts and is left out (`--canary` computes it anew)", quiet=quiet)
    return lock
