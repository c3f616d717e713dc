"""Packages that were installed from the wheel that a lock names, wherever the locked one came from.

A lock knows a package from a checkout, a folder or a disk by that origin. Its wheel, installed elsewhere, has another
origin and the very same files, as its RECORD shows. That is stronger evidence, so its origin then counts as the locked.
"""

from __future__ import annotations

from envlock.runtime.collectors import Snapshot
from envlock.runtime.distributions import installed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List

    from envlock.runtime.host import Host


def with_locked_origins(lock: Dict[str, Any], live: Snapshot, host: Callable[[], Host]) -> Snapshot:
    """Return a snapshot in which packages with the files of their locked wheels have their locked origins.

    Only the RECORDs of packages with another origin are read; `host`, which has them, is asked for only then.
    """
    names = _of_another_origin(lock, live)
    if not names:
        return live
    identities, locked, found = (
        lock["identity"]["packages"],
        lock["facts"]["packages"],
        installed(host()),
    )
    packages = dict(live.facts["packages"])
    for name in names:
        record = found[name].read("RECORD") if name in found else None
        if record is not None and _digest(record) in (
            identities[name]["content"],
            identities[name].get("built"),
        ):
            packages[name] = {**packages[name], "origin": locked[name].get("origin")}
    return Snapshot({**live.facts, "packages": packages}, live.unavailable, live.tooling)


def _of_another_origin(lock: Dict[str, Any], live: Snapshot) -> List[str]:
    """Return the packages whose wheel the lock names, and whose origin is not a locked one."""
    identities = (lock.get("identity") or {}).get("packages") or {}
    locked, here = lock["facts"].get("packages"), live.facts.get("packages")
    if not identities or not isinstance(locked, dict) or not isinstance(here, dict):
        return []
    return [
        name
        for name, entry in identities.items()
        if name in locked
        and name in here
        and entry.get("wheel")
        and _origin(locked, name) != _origin(here, name)
    ]


def _origin(packages: Dict[str, Any], name: str) -> Any:
    return packages[name].get("origin")


def _digest(text: str) -> str:
    """Return the digest of what a RECORD lists; that of an empty file where it is not a RECORD."""
    from envlock.runtime.errors import FactError
    from envlock.runtime.files.record import content, digest, rows

    try:
        return digest(content(rows(text)))
    except FactError:
        return ""
