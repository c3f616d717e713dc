"""Two closures of requirements, according to metadata.

Tooling: the packages that only envlock requires, for its extras `cli` and `gpu`. One that another
package mentions in a requirement, in any extra, or that a user requested by name (REQUESTED) is not
tooling. They are recorded and may differ.

Required: TensorFlow, what computes beside it, and the packages that these require.

Source of REQUESTED:
https://packaging.python.org/en/latest/specifications/recording-installed-packages/
"""

from __future__ import annotations

from envlock.runtime.collectors import Snapshot
from envlock.runtime.distributions import Distribution, find_distributions, normalise
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Iterable, List, Set

    from envlock.runtime.facts import Document
    from envlock.runtime.host import Host

EXTRAS = ("cli", "gpu")


def add_tooling(lock: Document, live: Snapshot, make_host: Callable[[], Host]) -> Snapshot:
    """Return a snapshot that names tooling and required packages; if all packages are as locked, no
    metadata is read.
    """
    is_known = live.tooling or live.required
    if is_known or lock["facts"].get("packages") == live.facts.get("packages"):
        return live
    host = make_host()
    return Snapshot(live.facts, live.unavailable, find_tooling(host), find_required(host))


def find_tooling(host: Host) -> List[str]:
    """Return the normalised names of the distributions that only envlock requires, sorted."""
    distributions = find_distributions(host)
    own = host.cache.get("envlock")
    if own is None:
        return []
    extras = [_get_name(line) for line in _list_requirements(own) if _is_of_extra(line)]
    reached = _collect_closure(extras, distributions, lambda line: "extra ==" not in line)
    if not reached:
        return []
    roots = [
        name
        for name, distribution in distributions.items()
        if name not in reached or distribution.read("REQUESTED") is not None
    ]
    return sorted(reached - _collect_closure(roots, distributions, lambda line: True))


def find_required(host: Host) -> List[str]:
    """Return the normalised names of the installed distributions that a policy protects, and of all
    that they require without a condition, sorted.

    A requirement with a marker is left out: another Python or system can have made it void.
    """
    distributions = find_distributions(host)
    paths = [path.split(".") for path in table("protected")]
    protected = [path[1] for path in paths if path[0] == "packages" and len(path) > 1]
    return sorted(_collect_closure(protected, distributions, lambda line: ";" not in line))


def _is_of_extra(line: str) -> bool:
    """Return whether a requirement of envlock belongs to an extra; tools write the marker with
    either kind of quotes.
    """
    marks = [f"extra == {sign}{name}{sign}" for name in EXTRAS for sign in "'\""]
    return any(mark in line for mark in marks)


def _collect_closure(
    names: Iterable[str], distributions: Dict[str, Distribution], is_counted: Callable[[str], bool]
) -> Set[str]:
    """Return installed distributions and all that they require, by the requirements that count."""
    closure: Set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in closure or name not in distributions:
            continue
        closure.add(name)
        lines = _list_requirements(distributions[name])
        pending += [_get_name(line) for line in lines if is_counted(line)]
    return closure


def _list_requirements(distribution: Distribution) -> List[str]:
    """Return the requirements in a distribution's metadata, and those in the separate file of an
    egg.
    """
    metadata = distribution.read("METADATA") or distribution.read("PKG-INFO") or ""
    mark = "Requires-Dist:"
    headers = metadata.partition("\n\n")[0].splitlines()
    lines = [line[len(mark) :].strip() for line in headers if line.startswith(mark)]
    egg = (distribution.read("requires.txt") or "").splitlines()
    # A line in brackets begins the requirements of an extra.
    return lines + [line for line in egg if line[:1].isalnum()]


def _get_name(line: str) -> str:
    """Return the normalised name at the start of a requirement."""
    for place, sign in enumerate(line):
        if not (sign.isalnum() or sign in "-_."):
            return normalise(line[:place])
    return normalise(line)
