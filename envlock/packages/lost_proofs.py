"""Packages that a result leaves out, and those whose proven wheel a renewed lock has lost. Pure."""

from __future__ import annotations

from typing import NamedTuple

from envlock.runtime.report import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from envlock.lock.models import Lockfile, PackageIdentity

OTHER_FILES = "its RECORD is not the one that was proven (`envlock hash` looks for its wheel)"


class LeftOut(NamedTuple):
    """A package that is not among the requested ones, and why."""

    name: str
    version: str | None
    reason: str

    def __str__(self) -> str:
        """Return one line, whatever the texts hold."""
        return clean(f"{self.name} {self.version or '(version unknown)'}: {self.reason}")


def get_own_name(lock: Lockfile) -> str | None:
    """Return the name of the project's own package, None where it has none."""
    if lock.project is None:
        return None
    return lock.project.name


def get_identities(lock: Lockfile) -> Mapping[str, PackageIdentity]:
    """Return what the lock proves of each package, by name."""
    if lock.identity is None:
        return {}
    return lock.identity.packages


def find_lost_proofs(earlier: Lockfile, now: Lockfile) -> list[LeftOut]:
    """Return the packages that had a proven wheel and have none in the same version now, by name."""
    present = {*(now.facts.packages or {}), get_own_name(now)}
    identities = get_identities(now)
    found = []
    for name, old in sorted(get_identities(earlier).items()):
        if old.wheel is None or name not in present:
            continue
        new = identities.get(name)
        if new is None:
            found.append(LeftOut(name, old.version, OTHER_FILES))
        elif new.wheel is None and new.version == old.version:
            found.append(LeftOut(name, old.version, new.reason or OTHER_FILES))
    return found
