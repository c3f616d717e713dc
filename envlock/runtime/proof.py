"""Proofs that a machine computes a lock's bits: kept in the user's cache, one for each lock and state of a machine.

A proof is believed only where nobody else can have written it, as ssh treats its keys: file and folders are this
user's, and neither their group nor others can write them. It says what it proves: for which state, by how many results.

A proof says that the lock's canary gave the locked bits here, with the thread counts that it sets itself. It is
evidence for the operations and shapes of the canary, not for every program.
"""

from __future__ import annotations

import os
import stat

from envlock.runtime.host import read_bytes
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
        if isinstance(each, dict)
        and all(type(each.get(key)) is int for key in ("covered", "distinct"))
    ]
    return NOTE + ("; it covers " + ", ".join(covered) if covered else "")


def folder(environ: Mapping[str, str]) -> Optional[str]:
    """Return where proofs are kept; None where the process has no home.

    Source: https://specifications.freedesktop.org/basedir-spec/latest/
    """
    cache = environ.get("XDG_CACHE_HOME") or (
        os.path.join(environ["HOME"], ".cache") if environ.get("HOME") else ""
    )
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


def content(name: str, results: int) -> bytes:
    """Return what the file of a proof holds: the state that it is for, and how many results had the locked bits."""
    return f"envlock proof 1\n{name}\n{results} results with the locked bits\n".encode("ascii")


def is_proven(lock: Dict[str, Any], live: Snapshot, environ: Mapping[str, str]) -> bool:
    """Return whether this machine, in this state, is known to compute the lock's canary."""
    kept, name = folder(environ), key(lock, live)
    if kept is None or name is None:
        return False
    file = os.path.join(kept, name)
    if not all(is_own(path) for path in (file, kept, os.path.dirname(kept))):
        return False
    lines = (read_bytes(file, 1000) or b"").split(b"\n")
    number = lines[2].partition(b" ")[0] if len(lines) > 2 else b""
    return number.isdigit() and int(number) > 0 and b"\n".join(lines) == content(name, int(number))


def is_own(path: str) -> bool:
    """Return whether a file or folder is this user's, is no link, and cannot be written by anybody else."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    is_plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return (
        is_plain
        and status.st_uid == os.geteuid()
        and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )
