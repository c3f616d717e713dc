"""Which programs a lockfile has, in a few words."""

from __future__ import annotations

from envlock.runtime.report import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile


def describe_programs(lock: Lockfile) -> list[str]:
    """Return a line for each program that a lockfile has."""
    if lock.program is None:
        return []
    lines = []
    for name, target in lock.program.targets.items():
        number = sum(part.operations for part in target.parts.values())
        parts = ", ".join(f"{part} ({found.kind})" for part, found in target.parts.items())
        lines.append(f"program of {name}: {count(number, 'operation')} in {parts}")
    return lines
