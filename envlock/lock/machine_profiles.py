"""The machines of one lockfile: selected, renewed and added. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from envlock.lock.document import validate
from envlock.lock.models import Lockfile
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import EnvironmentMismatch, UsageError
from envlock.runtime.facts import is_same
from envlock.runtime.judgement import judge
from envlock.runtime.lockfile import MACHINE_LIMIT
from envlock.runtime.machines import describe_machine, get_profile, list_profiles, replace_machine
from envlock.runtime.policies import Policy
from envlock.runtime.report import ERROR, INFO, Finding, Report, Severity, clean, count

OURS = "to be written"
TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.runtime.machines import Profile


def find_place(lock: Lockfile, live: Snapshot) -> int | None:
    """Return the index of the live machine in a lockfile; None if the lockfile does not have it."""
    live_machine = _get_profile(live)
    known = list_profiles(lock.to_document())
    for place, machine in enumerate(known):
        if is_same(machine, live_machine):
            return place
    # Its driver or its kernel may be newer than the locked one: then the hardware decides.
    for place, machine in enumerate(known):
        if _describe_hardware(machine) == _describe_hardware(live_machine):
            return place
    return None


def select_machine(lock: Lockfile, place: int) -> Lockfile:
    """Return the lockfile as if the machine with this index were its only one."""
    document = lock.to_document()
    machine = list_profiles(document)[place]
    document.pop("machines", None)
    return validate(replace_machine(document, machine), OURS)


def update_machine(lock: Lockfile, renewed: Lockfile, place: int) -> Lockfile:
    """Return the renewed lockfile, with its machine at this index among the other machines of the
    lockfile.
    """
    new = renewed.to_document()
    known = list_profiles(lock.to_document())
    known[place] = get_profile(new)
    return validate({**replace_machine(new, known[0]), "machines": known[1:]}, OURS)


def add_live_machine(lock: Lockfile, live: Snapshot) -> tuple[Lockfile, int]:
    """Return the lockfile with the live machine among its machines, and the index of that.

    Raises:
        EnvironmentMismatch: the software differs from the lockfile's under its policy.
        UsageError: the lockfile already has the most machines that it can.
    """
    document = lock.to_document()
    live_machine = _get_profile(live)
    known = list_profiles(document)
    report = judge(replace_machine({**document, "machines": []}, live_machine), live)
    if not report.match:
        findings = [finding for finding in report.findings if finding.severity != INFO]
        other = Report(
            findings, policy=report.policy, overrides=report.overrides, extent=report.extent
        )
        raise EnvironmentMismatch(
            f"the software is not that of the lockfile: {other.to_text()}",
            other,
            hint="install the locked software here, or renew the lockfile on one of its own "
            "machines; nothing was written",
        )
    for place, machine in enumerate(known):
        if is_same(machine, live_machine):
            return lock, place
    if len(known) > MACHINE_LIMIT:
        raise UsageError(
            f"the lockfile has {len(known)} machines, and can have no more",
            hint="remove one by hand",
        )
    return validate({**document, "machines": [*known[1:], live_machine]}, OURS), len(known)


def make_unknown_error(lock: Lockfile) -> UsageError:
    """Return the error that the live machine is not one of a lockfile's, so that it cannot be
    renewed.
    """
    names = "; ".join(map(describe_machine, list_profiles(lock.to_document())))
    number = count(1 + len(lock.machines), "machine")
    return UsageError(
        f"this machine is not one of the lockfile's {number} ({names})",
        hint="add it with `envlock capture --add-machine`, or write another file with `--output`",
    )


def compare_machines(
    left: Mapping[str, object],
    right: Mapping[str, object],
    policy: Policy,
    names: tuple[str, str],
) -> list[Finding]:
    """Return a finding for every machine, except the first, that only one of two lockfiles has."""
    left_machines, right_machines = _list_others(left), _list_others(right)
    only_left = _subtract(left_machines, right_machines)
    only_right = _subtract(right_machines, left_machines)
    row = policy.row("machines")
    severity: Severity = INFO if row["rule"] == "ignore" else ERROR
    found = []
    for name, machines in ((names[0], only_left), (names[1], only_right)):
        for machine in machines:
            message = f"machines: only {clean(name)} has {describe_machine(machine)}"
            found.append(
                Finding(
                    "exact",
                    severity,
                    "machines",
                    message=message,
                    why=row["why"],
                    fix=row["fix"],
                    source=row["source"],
                )
            )
    return found


def _list_others(document: Mapping[str, object]) -> list[Profile]:
    """Return the machines of a lockfile except the first."""
    machines = document.get("machines", [])
    if not isinstance(machines, list):
        return []
    return machines


def _subtract(machines: list[Profile], others: list[Profile]) -> list[Profile]:
    return [each for each in machines if not any(is_same(each, other) for other in others)]


def _get_profile(live: Snapshot) -> Profile:
    return get_profile({"facts": live.facts, "unavailable": live.unavailable})


def _describe_hardware(machine: Profile) -> list[object]:
    """Return the model of the processor, and the names of the GPUs."""
    facts = machine["facts"]
    if not isinstance(facts, dict):
        return []
    cpu = facts.get("cpu") or {}
    devices = (facts.get("gpu") or {}).get("devices") or {}
    hardware = [cpu.get(name) for name in ("vendor", "family", "model", "model_name")]
    return [*hardware, [device.get("name") for device in devices.values()]]
