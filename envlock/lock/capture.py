"""The live environment as a `Lockfile`."""

from __future__ import annotations

from collections.abc import Mapping

from envlock import __version__
from envlock.lock.document import validate
from envlock.lock.models import SCHEMA_URL, Lockfile
from envlock.runtime.capture import Snapshot, snapshot
from envlock.runtime.lockfile import LOCK_VERSION
from envlock.runtime.policy import DEFAULT


def capture(
    policy: str = DEFAULT, overrides: Mapping[str, str] | None = None, live: Snapshot | None = None
) -> Lockfile:
    """Return a lock of the live environment (or of `live`) under a policy.

    Raises:
        LockfileError: the policy or a rule does not exist.
    """
    found = snapshot() if live is None else live
    document = {
        "$schema": SCHEMA_URL,
        "lock_version": LOCK_VERSION,
        "created_by": f"envlock {__version__}",
        "facts": found.facts,
        "unavailable": found.unavailable,
        "policy": {"name": policy, "overrides": dict(overrides or {})},
    }
    return validate(document, "to be written")
