"""Proofs that a machine computes a lock's bits: in the user's cache, one for each lock and state.

A proof is believed only where nobody else can have written it, as ssh treats its keys: file and
folders are this user's, and neither their group nor others can write them. It says what it proves:
for which state, by how many results.

A proof says that the lock's canary gave the locked bits here, with the thread counts that it sets
itself. It is evidence for the operations and shapes of the canary, not for every program.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat

from envlock.runtime.host import read_bytes
from envlock.runtime.report import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Optional

    from envlock.runtime.collectors import Snapshot
    from envlock.runtime.facts import Document, Tree

NOTE = (
    "the canary gave the locked bits on this machine: evidence for its operations and shapes, "
    "not for every program (`envlock canary` lists them)"
)

SECTIONS = ("python", "tensorflow", "cuda", "numpy", "system", "environ")
"""What the canary depends on, beside processor and GPUs; most packages are not part of it."""

COUNTS = ("intra_op_threads", "inter_op_threads", "affinity_count", "quota")
"""Facts of `cpu` that the canary does not depend on: it sets its own thread counts."""


def note(lock: Document) -> str:
    """Return what a proof says, with how much of which program the lock's canary covers."""
    program = lock["numerics"].get("program")
    targets: Tree = {}
    if isinstance(program, dict) and isinstance(program.get("targets"), dict):
        targets = program["targets"]
    parts = []
    for name, target in sorted(targets.items()):
        if not isinstance(target, dict):
            continue
        covered, distinct = target.get("covered"), target.get("distinct")
        # `type`, not `isinstance`: true is an int, and no count.
        if type(covered) is int and type(distinct) is int:
            parts.append(f"{covered} of {distinct} distinct operations of {clean(name)}")
    if not parts:
        return NOTE
    return f"{NOTE}; it covers {', '.join(parts)}"


def folder(environ: Mapping[str, str]) -> Optional[str]:
    """Return where proofs are kept; None where the process has no home.

    Source: https://specifications.freedesktop.org/basedir-spec/latest/
    """
    cache = environ.get("XDG_CACHE_HOME")
    if not cache and environ.get("HOME"):
        cache = os.path.join(environ["HOME"], ".cache")
    # A relative path is invalid by the same page.
    if not cache or not os.path.isabs(cache):
        return None
    return os.path.join(cache, "envlock", "proofs")


def key(lock: Document, live: Snapshot) -> Optional[str]:
    """Return the name of the proof: the SHA-256 of all that the canary depends on.

    None where the lock has no canary, or that of an emulated processor, which is an estimate.
    """
    numerics = lock.get("numerics")
    if not numerics or numerics.get("emulated") is not None:
        return None
    cpu = live.facts.get("cpu") or {}
    gpu = live.facts.get("gpu") or {}
    processor = {name: value for name, value in cpu.items() if name not in COUNTS}
    sections = [live.facts.get(name) for name in SECTIONS]
    state = [lock["numerics"], processor, gpu.get("devices"), sections, live.unavailable]
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode("ascii")).hexdigest()


def content(name: str, results: int) -> bytes:
    """Return what the file of a proof holds: the state that it is for, and how many results had the locked bits."""
    return f"envlock proof 1\n{name}\n{results} results with the locked bits\n".encode("ascii")


def is_proven(lock: Document, live: Snapshot, environ: Mapping[str, str]) -> bool:
    """Return whether this machine, in this state, is known to compute the lock's canary."""
    proofs, name = folder(environ), key(lock, live)
    if proofs is None or name is None:
        return False
    file = os.path.join(proofs, name)
    if not all(map(is_own, (file, proofs, os.path.dirname(proofs)))):
        return False
    data = read_bytes(file, 1000) or b""
    lines = data.split(b"\n")
    if len(lines) < 3:
        return False
    number = lines[2].partition(b" ")[0]
    if not number.isdigit() or int(number) == 0:
        return False
    # All of the file is compared: a proof for another state, or of another format, is none.
    return data == content(name, int(number))


def is_own(path: str) -> bool:
    """Return whether a file or folder is this user's, is no link, and nobody else can write it."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return False
    is_writable_by_others = bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    return status.st_uid == os.geteuid() and not is_writable_by_others
