"""Proofs that a machine computes the bits of a lockfile: in the user's cache, one for each lockfile
and state.

A proof is trusted only if no other user can have written it (`user_cache.py`). It contains what it
proves: for which state, and by how many results.

A proof means that the lockfile's canary gave the locked bits here, with the thread counts that it
sets itself. It is evidence for the operations and shapes of the canary, not for every program.
"""

from __future__ import annotations

import hashlib
import json

from envlock.runtime.digits import parse_digits
from envlock.runtime.report import clean
from envlock.runtime.user_cache import read_own_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import FrozenSet, Iterator, Mapping, Optional, Set

    from envlock.runtime.collectors import Snapshot
    from envlock.runtime.facts import Document, Tree

PROOFS = "proofs"
"""The part of the cache that holds them."""
NOTE = (
    "the canary gave the locked bits on this machine: evidence for its operations and shapes, "
    "not for every program (`envlock canary` lists them)"
)

SECTIONS = ("python", "tensorflow", "cuda", "numpy", "system", "environ")
"""The sections that the canary depends on, besides processor and GPUs; most packages are not among
them.
"""

COUNTS = ("intra_op_threads", "inter_op_threads", "affinity_count", "quota", "joblib_count")
"""Facts of `cpu` that the canary does not depend on: it sets its own thread counts."""


def note(lock: Document) -> str:
    """Return a sentence on what a proof means, and how much of which program the lockfile's canary
    covers.
    """
    program = lock["numerics"].get("program")
    targets: Tree = {}
    if isinstance(program, dict) and isinstance(program.get("targets"), dict):
        targets = program["targets"]
    parts = []
    for name, target in sorted(targets.items()):
        if not isinstance(target, dict):
            continue
        covered, distinct = target.get("covered"), target.get("distinct")
        # `type`, not `isinstance`: true is an int, but not a count.
        if type(covered) is int and type(distinct) is int:
            parts.append(f"{covered} of {distinct} distinct operations of {clean(name)}")
    if not parts:
        return NOTE
    return f"{NOTE}; it covers {', '.join(parts)}"


def list_results(lock: Document) -> FrozenSet[str]:
    """Return the operations of the processor for which the canary of a lockfile has exactly one
    result.

    An operation whose results varied, that failed, that ended its process or that ran on a GPU does
    not count: it was not compared, or belongs to another processor.
    """
    names: Set[str] = set()
    groups = (lock.get("numerics") or {}).get("groups")
    if isinstance(groups, dict):
        for group, content in groups.items():
            if group.startswith("gpu-") or not isinstance(content, dict):
                continue
            operations = content.get("operations")
            if isinstance(operations, dict):
                names.update(_list_computed(operations))
    return frozenset(names)


def _list_computed(operations: Tree) -> Iterator[str]:
    for name, result in operations.items():
        if isinstance(result, dict) and isinstance(result.get("sha256"), str):
            yield name


def key(lock: Document, live: Snapshot) -> Optional[str]:
    """Return the name of the proof: the SHA-256 of everything that the canary depends on.

    None if the lockfile has no canary.
    """
    numerics = lock.get("numerics")
    if not numerics:
        return None
    cpu = live.facts.get("cpu") or {}
    gpu = live.facts.get("gpu") or {}
    processor = {name: value for name, value in cpu.items() if name not in COUNTS}
    sections = [live.facts.get(name) for name in SECTIONS]
    if "loaded" in live.facts:  # where it was seen, another library needs another proof
        sections.append(live.facts["loaded"])
    state = [lock["numerics"], processor, gpu.get("devices"), sections, live.unavailable]
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode("ascii")).hexdigest()


def content(name: str, results: int) -> bytes:
    """Return the content of a proof: the state that it is for, and how many results had the locked
    bits.
    """
    return f"envlock proof 1\n{name}\n{results} results with the locked bits\n".encode("ascii")


def is_proven(lock: Document, live: Snapshot, environ: Mapping[str, str]) -> bool:
    """Return whether this machine, in this state, is proven to compute the lockfile's canary."""
    name = key(lock, live)
    if name is None:
        return False
    data = read_own_file(environ, PROOFS, name) or b""
    lines = data.split(b"\n")
    if len(lines) < 3:
        return False
    number = parse_digits(lines[2].partition(b" ")[0].decode("ascii", "replace"))
    if not number:
        return False
    # The whole file is compared: a proof for another state, or in another format, does not count.
    return data == content(name, number)
