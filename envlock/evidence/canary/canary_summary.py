"""What a canary has, in a few words."""

from __future__ import annotations

from envlock.evidence.conditions import SEED, describe_conditions
from envlock.runtime.report import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from envlock.lock.models import Lockfile
    from envlock.lock.numerics import Coverage, Operation


def describe_canary(lock: Lockfile) -> str:
    """Return a few words that say which canary a lockfile has."""
    numerics = lock.numerics
    results: list[Operation] = []
    crashed = []
    targets: list[str] = []
    if numerics is not None:
        for name, group in numerics.groups.items():
            results += group.operations.values()
            if group.ended is not None:
                crashed.append(f"{name} crashed: {group.ended}")
    unstable = sum(result.unstable is not None for result in results)
    if numerics is not None and numerics.program is not None:
        results += [operation.result for operation in numerics.program.operations.values()]
        targets = describe_coverage(numerics.program.targets)
        if targets:
            targets[-1] += describe_conditions(SEED)
    parts = [f"a canary of {count(len(results), 'result')}"]
    if unstable:
        parts.append(f"{unstable} of them unstable")
    return ", ".join([*parts, *targets, *crashed])


def describe_coverage(targets: Mapping[str, Coverage]) -> list[str]:
    """Return how much of each program a canary covers, as phrases."""
    phrases = []
    for name, program in targets.items():
        part = f"{program.covered} of {program.distinct}"
        phrases.append(f"covers {part} distinct operations of {name}")
    return phrases
