"""The live environment as a `Lockfile`."""

from __future__ import annotations

from collections.abc import Mapping

from envlock.lock.document import validate
from envlock.lock.models import SCHEMA_URL, Lockfile
from envlock.runtime.collectors import Snapshot, take_snapshot
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
