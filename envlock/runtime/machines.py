"""The machines that a lockfile accepts: its own facts are the first; `machines` has the others,
each complete. Pure.

A profile is {facts, unavailable} of the machine alone; the facts of the software are the
lockfile's, for all machines. No machine is composed from several profiles.
"""

from __future__ import annotations

from envlock.runtime.compare import compare
from envlock.runtime.facts import is_same, iter_leaves
from envlock.runtime.report import INFO, clean, show
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

    from envlock.runtime.facts import Document, Tree
    from envlock.runtime.policies import Policy

    Profile = Dict[str, Tree]
    """One machine without its software: its facts, and those that were unavailable."""


def is_machine(path: str) -> bool:
    """Return whether a fact belongs to the machine rather than to the software."""
    return any(path == node or path.startswith(node + ".") for node in table("machine"))


def get_profile(document: Mapping[str, Tree]) -> Profile:
    """Return the facts of the machine, and its unavailable ones, of a document."""
    facts: Tree = {}
    for node in table("machine"):
        section, _, name = node.partition(".")
        value = document["facts"].get(section)
        if not name and section in document["facts"]:
            facts[section] = value
        elif name and isinstance(value, dict) and name in value:
            facts[section] = {name: value[name]}
    stated = document["unavailable"]
    return {
        "facts": facts,
        "unavailable": {path: stated[path] for path in filter(is_machine, stated)},
    }


def list_profiles(lock: Mapping[str, Any]) -> List[Profile]:
    """Return the profile of every machine of a lockfile, its own first."""
    return [get_profile(lock), *lock.get("machines", [])]


def replace_machine(document: Document, machine: Profile) -> Document:
    """Return a lockfile with the facts of its software, and those of this machine."""
    facts = dict(document["facts"])
    for node in table("machine"):
        section, _, name = node.partition(".")
        if not name:
            facts.pop(section, None)
        elif isinstance(facts.get(section), dict):
            facts[section] = dict(facts[section])
            facts[section].pop(name, None)
    for section, value in machine["facts"].items():
        # In a section that software and machine share, such as `python`, the facts of the software
        # are kept.
        if isinstance(value, dict) and isinstance(facts.get(section), dict):
            value = {**facts[section], **value}
        facts[section] = value
    unavailable = dict(document["unavailable"])
    for path in filter(is_machine, document["unavailable"]):
        del unavailable[path]
    unavailable.update(machine["unavailable"])
    return {**document, "facts": facts, "unavailable": unavailable}


def find_nearest(
    lock: Document,
    live: Mapping[str, Tree],
    policy: Policy,
    *,
    proof: Optional[Collection[str]] = None,
) -> Tuple[int, bool]:
    """Return the index of the profile that fits a machine best, and whether it matches.

    With a `proof`, what the rule `proven` holds may differ; see `compare`.
    """
    here = get_profile(live)
    known = list_profiles(lock)
    # First without the policy, so that the locked machine itself reads no table of rows.
    for place, machine in enumerate(known):
        if is_same(machine, here):
            return place, True
    counts = [_count_differences(machine, here, policy, proof) for machine in known]
    place = counts.index(min(counts))
    return place, counts[place][0] == 0


def _count_differences(
    machine: Profile, here: Profile, policy: Policy, proof: Optional[Collection[str]]
) -> Tuple[int, int]:
    """Return how many facts differ that may not, and how many differ in all; the profile with the
    fewest is the nearest.
    """
    locked = (machine["facts"], machine["unavailable"])
    live = (here["facts"], here["unavailable"])
    findings = compare(locked, live, policy, proof=proof)
    return sum(finding.severity != INFO for finding in findings), len(findings)


def describe_machine(machine: Mapping[str, Tree]) -> str:
    """Return a description of a machine: its processor, how many CPUs are visible, and its GPUs."""
    cpu = _get_section(machine["facts"], "cpu")
    processor = (
        clean(cpu["model_name"]) if isinstance(cpu.get("model_name"), str) else "unknown processor"
    )
    if isinstance(cpu.get("affinity_count"), int):
        processor += f" ({cpu['affinity_count']} visible)"
    counts: Dict[str, int] = {}
    for device in _get_section(_get_section(machine["facts"], "gpu"), "devices").values():
        if isinstance(device, dict):
            name = show(device.get("name"))
            counts[name] = counts.get(name, 0) + 1
    parts = [processor]
    for name, number in counts.items():
        if number > 1:
            name = f"{number} x {name}"
        parts.append(name)
    return ", ".join(parts)


def _get_section(facts: Tree, name: str) -> Tree:
    """Return a section of facts; empty if it does not exist."""
    section = facts.get(name)
    if isinstance(section, dict):
        return section
    return {}


def describe_choice(lock: Document, place: int, fits: bool) -> str:
    """Return which of the machines of a lockfile this one is, or is nearest to."""
    known = list_profiles(lock)
    which = f"machine {place + 1} of {len(known)}: {describe_machine(known[place])}"
    if fits:
        return which
    return f"no machine of the lockfile fits; compared with the nearest, {which}"


def iter_problems(machines: Sequence[Profile]) -> Iterator[str]:
    """Yield where profiles have values that are not facts of a machine; that they are objects was
    checked before.
    """
    for number, machine in enumerate(machines, 2):
        paths = [path for path, _ in iter_leaves(machine["facts"])] + list(machine["unavailable"])
        for path in paths:
            if not is_machine(path):
                shown = clean(path[:60])
                yield f"machine {number} has `{shown}`, which is not a fact of a machine"
                break
