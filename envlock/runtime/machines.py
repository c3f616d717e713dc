"""The machines that a lock accepts: its own facts are the first; `machines` has the others, each whole. Pure.

A profile is {facts, unavailable} of the machine alone; the facts of the software are the lock's, for all of them. No
machine is pieced together from several profiles.
"""

from __future__ import annotations

from envlock.runtime.compare import compare
from envlock.runtime.facts import leaves, same
from envlock.runtime.report import INFO, clean, show
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Mapping, Tuple

    from envlock.runtime.policy import Policy

    Document = Dict[str, Any]
    Profile = Dict[str, Any]


def is_machine(path: str) -> bool:
    """Return whether a fact belongs to the machine, and not to the software."""
    return any(path == node or path.startswith(node + ".") for node in table("machine"))


def profile(document: Mapping[str, Any]) -> Profile:
    """Return what `facts` and `unavailable` of a document say of the machine."""
    facts: Document = {}
    for node in table("machine"):
        section, _, name = node.partition(".")
        value = document["facts"].get(section)
        if not name and section in document["facts"]:
            facts[section] = value
        elif name and isinstance(value, dict) and name in value:
            facts[section] = {name: value[name]}
    unavailable = {
        path: entry for path, entry in document["unavailable"].items() if is_machine(path)
    }
    return {"facts": facts, "unavailable": unavailable}


def profiles(lock: Mapping[str, Any]) -> List[Profile]:
    """Return the profile of every machine of a lock, its own first."""
    return [profile(lock), *lock.get("machines", [])]


def with_machine(document: Document, machine: Profile) -> Document:
    """Return a lock with the facts of its software, and those of this machine."""
    facts = {
        name: value for name, value in document["facts"].items() if name not in table("machine")
    }
    for node in table("machine"):
        section, _, name = node.partition(".")
        if name and isinstance(facts.get(section), dict):
            facts[section] = {key: value for key, value in facts[section].items() if key != name}
    for section, value in machine["facts"].items():
        inside = isinstance(value, dict) and isinstance(facts.get(section), dict)
        facts[section] = {**facts[section], **value} if inside else value
    software = {
        path: entry for path, entry in document["unavailable"].items() if not is_machine(path)
    }
    return {**document, "facts": facts, "unavailable": {**software, **machine["unavailable"]}}


def nearest(
    lock: Mapping[str, Any], live: Mapping[str, Any], policy: Policy, *, is_proven: bool = False
) -> Tuple[int, bool]:
    """Return the place, from 0 on, of the profile that a machine fits best, and whether it fits under the policy.

    With `is_proven`, what the rule `proven` holds may differ.
    """
    here = profile(live)
    known = profiles(lock)
    for place, each in enumerate(known):
        if same(each, here):
            return place, True
    counts = [_differences(each, here, policy, is_proven) for each in known]
    place = counts.index(min(counts))
    return place, counts[place][0] == 0


def _differences(
    machine: Profile, here: Profile, policy: Policy, is_proven: bool
) -> Tuple[int, int]:
    sides = [(each["facts"], each["unavailable"]) for each in (machine, here)]
    findings = compare(sides[0], sides[1], policy, is_proven=is_proven)
    return sum(each.severity != INFO for each in findings), len(findings)


def title(machine: Mapping[str, Any]) -> str:
    """Return what people call a machine: its processor, how many of it are visible, and its GPUs."""
    cpu, gpu = (machine["facts"].get(section) for section in ("cpu", "gpu"))
    cpu, gpu = (each if isinstance(each, dict) else {} for each in (cpu, gpu))
    name, visible = cpu.get("model_name"), cpu.get("affinity_count")
    parts = [clean(name) if isinstance(name, str) else "unknown processor"]
    if isinstance(visible, int):
        parts[0] += " ({} visible)".format(visible)
    devices = gpu.get("devices")
    found = devices.values() if isinstance(devices, dict) else []
    names = [show(each.get("name")) for each in found if isinstance(each, dict)]
    counted = {each: names.count(each) for each in names}
    return ", ".join(
        parts
        + [
            each if number == 1 else "{} x {}".format(number, each)
            for each, number in counted.items()
        ]
    )


def sentence(lock: Mapping[str, Any], place: int, fits: bool) -> str:
    """Return which of a lock's machines this is, or comes nearest to."""
    known = profiles(lock)
    which = "machine {} of {}: {}".format(place + 1, len(known), title(known[place]))
    return which if fits else "no machine of the lockfile fits; compared with the nearest, " + which


def problems(machines: Any) -> Iterator[str]:
    """Yield where profiles hold what is no fact of a machine; that they are objects is known."""
    for number, machine in enumerate(machines, 2):
        others = [path for path, _ in leaves(machine["facts"]) if not is_machine(path)]
        others += [path for path in machine["unavailable"] if not is_machine(path)]
        if others:
            yield "machine {} has `{}`, which is not a fact of a machine".format(
                number, clean(others[0][:60])
            )
