"""A lock made anew keeps what was proven, as long as it is about the very files that are installed now."""

from __future__ import annotations

from envlock.identity.environment import Environment, by_name
from envlock.identity.prove import Installed, installed
from envlock.identity.record import digest
from envlock.lock.identity import Identity, PackageIdentity
from envlock.lock.models import Lockfile


def everything_installed(lock: Lockfile, place: Environment) -> list[Installed]:
    """Return what is known here of every package of a lock.

    Raises:
        FactError: the environment cannot be read.
    """
    found = by_name(place)
    facts = lock.to_document()["facts"].get("packages") or {}
    return [installed(name, package, found.get(name)) for name, package in facts.items()]


def with_identity(lock: Lockfile, identity: Identity | None) -> Lockfile:
    """Return the lock with this section; without one where there is nothing in it."""
    return lock if identity is None or not identity.packages else lock.model_copy(update={"identity": identity})


def kept(earlier: Identity | None, packages: list[Installed]) -> Identity | None:
    """Return what still holds of an earlier lock's answers."""
    if earlier is None:
        return None
    entries = {each.name: earlier.packages.get(each.name) for each in packages}
    still = {each.name: entries[each.name] for each in packages if _same(each, entries[each.name])}
    return Identity(packages={name: entry for name, entry in still.items() if entry is not None})


def _same(each: Installed, entry: PackageIdentity | None) -> bool:
    content = None if each.common is None else digest(each.common)
    return entry is not None and (entry.version, entry.content) == (each.version, content)
