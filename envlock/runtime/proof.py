"""Proofs that a machine computes a lock's bits: kept in the user's cache, one for each lock and state of a machine.

A proof says that the lock's canary gave the locked bits here, with the thread counts that it sets itself. It is
evidence for the operations and shapes of the canary, not for every program.
"""

from __future__ import annotations

import os

from envlock.runtime.report import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional

    from envlock.runtime.collectors import Snapshot

NOTE = (
    "the canary gave the locked bits on this machine: evidence for its operations and shapes, not for every program "
    "(`envlock canary` lists them)"
)

SECTIONS = ("python", "tensorflow", "cuda", "numpy", "system", "environ")
"""What the canary depends on, beside processor and GPUs; most packages are not part of it."""

COUNTS = ("intra_op_threads", "inter_op_threads", "affinity_count", "quota")
"""Facts of `cpu` that the canary does not depend on: it sets its own thread counts."""


def note(lock: Dict[str, Any]) -> str:
    """Return what a proof says, with how much of which program the lock's canary covers."""
    program = lock["numerics"].get("program")
    targets = program.get("targets") if isinstance(program, dict) else None
    covered = [
        "{} of {} distinct operations of {}".format(each["covered"], each["distinct"], clean(name))
        for name, each in sorted((targets if isinstance(targets, dict) else {}).items())
        if isinstance(each, dict) and all(type(each.get(key)) is int for key in ("covered", "distinct"))
    ]
    return NOTE + ("; it covers " + ", ".join(covered) if covered else "")


def folder(environ: Mapping[str, str]) -> Optional[str]:
    """Return where proofs are kept; None where the process has no home.

    Source: https://specifications.freedesktop.org/basedir-spec/latest/
    """
    cache = environ.get("XDG_CACHE_HOME") or (os.path.join(environ["HOME"], ".cache") if environ.get("HOME") else "")
    return os.path.join(cache, "envlock", "proofs") if os.path.isabs(cache) else None


def key(lock: Dict[str, Any], live: Snapshot) -> Optional[str]:
    """Return the name of the proof: the SHA-256 of all that the canary depends on; None where the lock has none."""
    if not lock.get("numerics"):
        return None
    import hashlib
    import json

    cpu, gpu = (live.facts.get(name) or {} for name in ("cpu", "gpu"))
    processor = {name: value for name, value in cpu.items() if name not in COUNTS}
    sections = [live.facts.get(name) for name in SECTIONS]
    state = [lock["numerics"], processor, gpu.get("devices"), sections, live.unavailable]
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode("ascii")).hexdigest()


def is_proven(lock: Dict[str, Any], live: Snapshot, environ: Mapping[str, str]) -> bool:
    """Return whether this machine, in this state, is known to compute the lock's canary."""
    kept, name = folder(environ), key(lock, live)
    return kept is not None and name is not None and os.path.isfile(os.path.join(kept, name))
