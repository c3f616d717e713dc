"""The packages of an environment that only envlock's own command line requires: nothing that a program computes.

By metadata: what the extras `cli` and `gpu` of envlock bring, unless another package mentions it in a requirement, in
whatever extra, or somebody asked for it by name (REQUESTED). It is recorded and may differ.

Source of REQUESTED: https://packaging.python.org/en/latest/specifications/recording-installed-packages/
"""

from __future__ import annotations

from envlock.runtime.collectors import Snapshot
from envlock.runtime.distributions import installed, normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Set

    from envlock.runtime.distributions import Distribution
    from envlock.runtime.host import Host

EXTRAS = ("cli", "gpu")


def with_tooling(lock: Dict[str, Any], live: Snapshot, host: Callable[[], Host]) -> Snapshot:
    """Return a snapshot that names such packages; where all packages are as locked, nothing is read."""
    if live.tooling or lock["facts"].get("packages") == live.facts.get("packages"):
        return live
    return Snapshot(live.facts, live.unavailable, tooling(host()))


def tooling(host: Host) -> List[str]:
    """Return the normalised names of the distributions that only envlock requires, sorted."""
    found = installed(host)
    own = host.cache.get("envlock")
    if own is None:
        return []
    lines = [
        line
        for line in _lines(own)
        if any(f"extra == {sign}{name}{sign}" in line for name in EXTRAS for sign in "'\"")
    ]
    reached = _closure([_name(line) for line in lines], found, is_extra=False)
    roots = [
        name for name in found if name not in reached or found[name].read("REQUESTED") is not None
    ]
    return sorted(reached - _closure(roots, found, is_extra=True)) if reached else []


def _closure(names: Iterable[str], found: Dict[str, Distribution], *, is_extra: bool) -> Set[str]:
    """Return installed distributions and all that they require, whatever their markers; with `is_extra`, any extra."""
    known: Set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in known and name in found:
            known.add(name)
            pending += [
                _name(line) for line in _lines(found[name]) if is_extra or "extra ==" not in line
            ]
    return known


def _lines(found: Distribution) -> List[str]:
    """Return the requirements of a distribution as its metadata states them, those of an egg's own file, too."""
    headers = (found.read("METADATA") or found.read("PKG-INFO") or "").partition("\n\n")[0]
    stated = [
        line[14:].strip() for line in headers.splitlines() if line.startswith("Requires-Dist:")
    ]
    return stated + [
        line for line in (found.read("requires.txt") or "").splitlines() if line[:1].isalnum()
    ]


def _name(line: str) -> str:
    """Return the normalised name that a requirement begins with."""
    end = next(
        (at for at, sign in enumerate(line) if not (sign.isalnum() or sign in "-_.")), len(line)
    )
    return normalise(line[:end])
