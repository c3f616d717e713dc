"""The packages of an environment that only envlock's own command line requires.

By metadata: what the extras `cli` and `gpu` of envlock bring, unless another package mentions it in
a requirement, in whatever extra, or somebody asked for it by name (REQUESTED). It is recorded and
may differ.

Source of REQUESTED:
https://packaging.python.org/en/latest/specifications/recording-installed-packages/
"""

from __future__ import annotations

from envlock.runtime.collectors import Snapshot
from envlock.runtime.distributions import find_distributions, normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Iterable, List, Set

    from envlock.runtime.distributions import Distribution
    from envlock.runtime.facts import Document
    from envlock.runtime.host import Host

EXTRAS = ("cli", "gpu")


def add_tooling(lock: Document, live: Snapshot, host: Callable[[], Host]) -> Snapshot:
    """Return a snapshot that names such packages; where all packages are as locked, nothing is read."""
    if live.tooling or lock["facts"].get("packages") == live.facts.get("packages"):
        return live
    return Snapshot(live.facts, live.unavailable, find_tooling(host()))


def find_tooling(host: Host) -> List[str]:
    """Return the normalised names of the distributions that only envlock requires, sorted."""
    distributions = find_distributions(host)
    own = host.cache.get("envlock")
    if own is None:
        return []
    extras = [_get_name(line) for line in _list_requirements(own) if _is_of_extra(line)]
    reached = _collect_closure(extras, distributions, is_extra=False)
    if not reached:
        return []
    # What somebody asked for by name stays, though envlock requires it as well.
    roots = []
    for name, distribution in distributions.items():
        if name not in reached or distribution.read("REQUESTED") is not None:
            roots.append(name)
    return sorted(reached - _collect_closure(roots, distributions, is_extra=True))


def _is_of_extra(line: str) -> bool:
    """Return whether a requirement of envlock is one of an extra: tools quote the marker in both ways."""
    marks = [f"extra == {sign}{name}{sign}" for name in EXTRAS for sign in "'\""]
    return any(mark in line for mark in marks)


def _collect_closure(
    names: Iterable[str], distributions: Dict[str, Distribution], *, is_extra: bool
) -> Set[str]:
    """Return installed distributions and all that they require, whatever their markers.

    With `is_extra`, also what any extra of them requires.
    """
    closure: Set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in closure or name not in distributions:
            continue
        closure.add(name)
        lines = _list_requirements(distributions[name])
        pending += [_get_name(line) for line in lines if is_extra or "extra ==" not in line]
    return closure


def _list_requirements(distribution: Distribution) -> List[str]:
    """Return the requirements that a distribution's metadata states, those of an egg's own file, too."""
    metadata = distribution.read("METADATA") or distribution.read("PKG-INFO") or ""
    mark = "Requires-Dist:"
    headers = metadata.partition("\n\n")[0].splitlines()
    lines = [line[len(mark) :].strip() for line in headers if line.startswith(mark)]
    egg = (distribution.read("requires.txt") or "").splitlines()
    # A line in brackets begins the requirements of an extra.
    return lines + [line for line in egg if line[:1].isalnum()]


def _get_name(line: str) -> str:
    """Return the normalised name that a requirement begins with."""
    for place, sign in enumerate(line):
        if not (sign.isalnum() or sign in "-_."):
            return normalise(line[:place])
    return normalise(line)
