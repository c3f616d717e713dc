"""The machines of one lockfile: seen as a lock of one of them, renewed, and added to. Pure."""

from __future__ import annotations

from typing import Any

from envlock.lock.document import validate
from envlock.lock.models import Lockfile
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import EnvironmentMismatch, UsageError
from envlock.runtime.facts import same
from envlock.runtime.lockfile import MACHINE_LIMIT
from envlock.runtime.machines import profile, profiles, title, with_machine
from envlock.runtime.policy import Policy
from envlock.runtime.report import ERROR, INFO, Finding, Report, clean, count
from envlock.runtime.verify import judge

OURS = "to be written"
Profile = dict[str, Any]
"""`facts` and `unavailable` of a machine alone."""


def place_of(lock: Lockfile, live: Snapshot) -> int | None:
    """Return the place, from 0 on, of a machine in a lock: of its very facts, else of its processor and GPUs."""
    here = _profile(live)
    known = profiles(lock.to_document())
    equal = [place for place, each in enumerate(known) if same(each, here)]
    alike = [place for place, each in enumerate(known) if _hardware(each) == _hardware(here)]
    return next(iter(equal + alike), None)


def seen_from(lock: Lockfile, place: int) -> Lockfile:
    """Return the lock as if the machine at a place were its only one."""
    document = lock.to_document()
    alone = {name: value for name, value in document.items() if name != "machines"}
    return validate(with_machine(alone, profiles(document)[place]), OURS)


def folded(lock: Lockfile, renewed: Lockfile, place: int) -> Lockfile:
    """Return the renewed software and the renewed machine at a place, with the other machines of the lock."""
    new = renewed.to_document()
    known = profiles(lock.to_document())
    known[place] = profile(new)
    return validate({**with_machine(new, known[0]), "machines": known[1:]}, OURS)


def with_another(lock: Lockfile, live: Snapshot) -> tuple[Lockfile, int]:
    """Return the lock with this machine as another one, and its place from 0 on; it may have been there already.

    Raises:
        EnvironmentMismatch: the software differs from the lock's under its policy.
        UsageError: the lock has as many machines as it can.
    """
    document, here = lock.to_document(), _profile(live)
    known = profiles(document)
    report = judge(with_machine({**document, "machines": []}, here), live)
    if not report.match:
        findings = [each for each in report.findings if each.severity != INFO]
        other = Report(findings, policy=report.policy, overrides=report.overrides)
        hint = "install the locked software here, or renew the lockfile on one of its own machines; nothing was written"
        raise EnvironmentMismatch(
            f"the software is not that of the lockfile: {other.to_text()}", other, hint=hint
        )
    for place, each in enumerate(known):
        if same(each, here):
            return lock, place
    if len(known) > MACHINE_LIMIT:
        raise UsageError(
            f"the lockfile has {len(known)} machines, and can have no more",
            hint="remove one by hand",
        )
    return validate({**document, "machines": [*known[1:], here]}, OURS), len(known)


def unknown(lock: Lockfile) -> UsageError:
    """Return the error that a machine is not one that a lock of several can be renewed on."""
    names = "; ".join(title(each) for each in profiles(lock.to_document()))
    return UsageError(
        f"this machine is not one of the lockfile's {count(1 + len(lock.machines), 'machine')} ({names})",
        hint="add it with `envlock capture --add-machine`, or write another file with `--output`",
    )


def united(base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]) -> list[Profile]:
    """Return the machines beside the first of two sides of a merge: those that a side has removed are gone."""
    old, left, right = (side.get("machines", []) for side in (base, ours, theirs))
    return [each for each in left if each in right or each not in old] + [
        each for each in right if each not in left and each not in old
    ]


def differing(
    left: dict[str, Any], right: dict[str, Any], policy: Policy, names: tuple[str, str]
) -> list[Finding]:
    """Return a finding for every machine, beside the first, that only one of two locks has."""
    sides = [side.get("machines", []) for side in (left, right)]
    row = policy.row("machines")
    severity = INFO if row["rule"] == "ignore" else ERROR
    found = []
    for name, own, other in ((names[0], *sides), (names[1], *reversed(sides))):
        for machine in own:
            if not any(same(machine, each) for each in other):
                what = f"machines: only {clean(name)} has {title(machine)}"
                found.append(
                    Finding(
                        "exact", severity, "machines", what, row["why"], row["fix"], row["source"]
                    )
                )
    return found


def _profile(live: Snapshot) -> Profile:
    return profile({"facts": live.facts, "unavailable": live.unavailable})


def _hardware(machine: Profile) -> Any:
    cpu, gpu = (machine["facts"].get(name) or {} for name in ("cpu", "gpu"))
    devices = gpu.get("devices") or {}
    return [cpu.get(name) for name in ("vendor", "family", "model", "model_name")], [
        each.get("name") for each in devices.values()
    ]
