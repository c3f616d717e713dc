"""Which variables make machines of different processors compute the same bits: proposed, and judged by canaries. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from envlock.data.portable_table import Cap
from envlock.lock.numerics import Numerics
from envlock.numerics.canary.canary_comparison import Comparison, compare
from envlock.runtime.extent import Extent
from envlock.runtime.own_variables import THREADS
from envlock.runtime.report import (
    ERROR,
    INFO,
    UNKNOWN,
    Evidence,
    Finding,
    Report,
    Severity,
    clean,
    count,
)

SOURCE = "docs/concepts/evidence.md"
TITLES = {
    "no-cap": "no cap makes these machines equal",
    "other-software": "the software differs",
    "not-capped": "a machine was not locked under the cap",
    "no-canary": "a machine has no canary",
    "same-machine": "lockfiles that count as one machine",
    "other-bits": "machines compute other bits under the cap",
}
FLAGS = "XLA_FLAGS"


@dataclass(frozen=True)
class Member:
    """One machine of a team, as a lockfile has it.

    Attributes:
        name: of the lockfile, with the number of the machine where it has several.
        processor: what it calls itself.
        flags: those by which kernels are chosen.
        threads: of TensorFlow, by the name of the fact.
        variables: the lockfile's.
        versions: of what computes, by package.
        numerics: its canary; None where it has none, or where that is of another machine.
    """

    name: str
    processor: str
    flags: frozenset[str]
    threads: Mapping[str, int]
    variables: Mapping[str, str]
    versions: Mapping[str, str]
    numerics: Numerics | None


@dataclass(frozen=True)
class PortableEvidence(Evidence):
    """What `envlock portable` attaches to its report.

    Attributes:
        cap: the name of the cap; None where none fits.
        variables: what it sets.
        proven: names of the machines whose canaries, computed under the cap, are equal.
        compared: how many results of each were compared.
    """

    cap: str | None
    variables: Mapping[str, str]
    proven: tuple[str, ...] = ()
    compared: int = 0

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {
            "cap": self.cap,
            "variables": dict(self.variables),
            "proven": list(self.proven),
            "compared": self.compared,
        }


def choose_cap(members: Sequence[Member], caps: Sequence[Cap]) -> Cap | None:
    """Return the widest cap whose instructions every machine has; None if none fits."""
    common = frozenset.intersection(*(member.flags for member in members))
    for cap in caps:
        if common.issuperset(cap.needs):
            return cap
    return None


def make_variables(cap: Cap, members: Sequence[Member]) -> dict[str, str]:
    """Return what a cap sets on these machines: with the smallest number of threads, where it differs."""
    variables = dict(cap.variables)
    # What a machine's lockfile has of XLA's other flags stays.
    flags = members[0].variables.get(FLAGS, "").split()
    kept = [flag for flag in flags if flag.partition("=")[0] != variables[FLAGS].partition("=")[0]]
    variables[FLAGS] = " ".join([*kept, variables[FLAGS]])
    for name, fact in THREADS.items():
        numbers = {member.threads[fact] for member in members if fact in member.threads}
        is_set = any(name in member.variables for member in members)
        if len(numbers) > 1 or (numbers and is_set):
            variables[name] = str(min(numbers))
    return variables


def find_missing(member: Member, variables: Mapping[str, str]) -> list[str]:
    """Return which variables of a cap a machine was not locked with."""
    return [name for name, value in variables.items() if member.variables.get(name) != value]


def take_once(members: Sequence[Member]) -> tuple[list[Member], list[Finding]]:
    """Return the machines that differ in what their lockfiles say, and a finding for each that repeats one.

    A copy of a lockfile, or one that is named twice, does not show a second machine.
    """
    once: list[Member] = []
    findings = []
    for member in members:
        same = [each for each in once if replace(member, name=each.name) == each]
        if same:
            findings.append(_report_repeated(member, same[0]))
        else:
            once.append(member)
    return once, findings


def judge_portability(members: Sequence[Member], cap: Cap | None) -> Report[PortableEvidence]:
    """Return whether these machines compute the same bits under a cap, as a report."""
    members, repeated = take_once(members)
    if cap is None:
        evidence = PortableEvidence(None, {})
        findings = [_report_no_cap(members), *repeated]
        headline = f"no cap fits {count(len(members), 'machine')}"
        return _make_report(findings, evidence, headline)
    variables = make_variables(cap, members)
    findings = [*repeated, *_compare_software(members)]
    ready: list[Member] = []
    for member in members:
        problem = _find_problem(member, variables)
        if problem is None:
            ready.append(member)
        else:
            findings.append(problem)
    proven, compared = _compare_canaries(ready, findings)
    if len(members) < 2:
        findings.append(_report_alone(members[0]))
    evidence = PortableEvidence(cap.name, variables, proven, compared)
    return _make_report(findings, evidence, _write_headline(members, evidence, cap))


def _make_report(
    findings: Sequence[Finding], evidence: PortableEvidence, headline: str
) -> Report[PortableEvidence]:
    notes = [f"export {name}='{clean(value)}'" for name, value in evidence.variables.items()]
    return Report(
        findings,
        command="portable",
        headline=headline,
        titles=TITLES,
        notes=notes,
        evidence=evidence,
        extent=Extent(operations=evidence.compared),
    )


def _write_headline(members: Sequence[Member], evidence: PortableEvidence, cap: Cap) -> str:
    number = count(len(members), "machine")
    if len(evidence.proven) == len(members) > 1:
        compared = count(evidence.compared, "result")
        return f"{number} compute the same bits under the cap {cap.name}: {compared} each"
    return (
        f"{number}: the cap {cap.name} is proposed; {len(evidence.proven)} proven by their canary"
    )


def _report_no_cap(members: Sequence[Member]) -> Finding:
    least = min(members, key=lambda member: len(member.flags))
    return Finding(
        "no-cap",
        ERROR,
        "cpu.flags",
        message=f"no cap fits {clean(least.name)} ({clean(least.processor)}), which has {count(len(least.flags), 'flag')}",
        why="kernels can be made equal only by instructions that all machines have",
        fix="leave this machine out, or lock it by itself",
        source=SOURCE,
    )


def _compare_software(members: Sequence[Member]) -> Iterator[Finding]:
    first = members[0]
    for member in members[1:]:
        for package in sorted({*first.versions, *member.versions}):
            one, other = first.versions.get(package), member.versions.get(package)
            if one != other:
                yield Finding(
                    "other-software",
                    ERROR,
                    f"{package}.version",
                    message=f"{clean(package)}: {clean(first.name)} has {clean(one or 'none')}, "
                    f"{clean(member.name)} has {clean(other or 'none')}",
                    why="a cap makes processors equal, not versions",
                    fix="install the same versions first",
                    source=SOURCE,
                    expected=one,
                    actual=other,
                )


def _find_problem(member: Member, variables: Mapping[str, str]) -> Finding | None:
    """Return why a machine proves nothing; None where its canary was computed under the cap."""
    missing = find_missing(member, variables)
    fix = "there, export the variables below, and run `envlock capture --canary`"
    if missing:
        shown = ", ".join(missing)
        return _report_unproven("not-capped", member, f"locked without {shown}", fix)
    if member.numerics is None:
        return _report_unproven("no-canary", member, "no canary of this machine", fix)
    return None


def _report_unproven(rule: str, member: Member, reason: str, fix: str) -> Finding:
    return Finding(
        rule,
        UNKNOWN,
        member.name,
        message=f"{clean(member.name)} ({clean(member.processor)}): {clean(reason)}",
        why="only the canary on the machine itself shows that the cap works there",
        fix=fix,
        source=SOURCE,
    )


def _report_repeated(member: Member, earlier: Member) -> Finding:
    return Finding(
        "same-machine",
        INFO,
        member.name,
        message=f"{clean(member.name)}: the same machine as in {clean(earlier.name)}, which counts once",
        why="a lockfile equals its own copy on any machine",
        fix="name the lockfiles of machines with other processors",
        source=SOURCE,
    )


def _report_alone(member: Member) -> Finding:
    return _report_unproven(
        "not-capped",
        member,
        "it is the only machine, so nothing was compared",
        "name the lockfiles of all machines",
    )


def _compare_canaries(
    ready: Sequence[Member], findings: list[Finding]
) -> tuple[tuple[str, ...], int]:
    """Return the machines whose canaries equal that of the first, and how many results; add what differs."""
    if not ready or ready[0].numerics is None:
        return (), 0
    first, reference = ready[0], ready[0].numerics
    proven = [first.name]
    compared = sum(len(group.operations) for group in reference.groups.values())
    for member in ready[1:]:
        if member.numerics is None:
            continue
        found = compare(reference, member.numerics)
        if found.match:
            proven.append(member.name)
            compared = min(compared, len(found.equal))
        else:
            findings.append(_report_bits(first, member, found))
    if len(proven) == 1:
        # One canary by itself is equal to nothing.
        return (), 0
    return tuple(proven), compared


def _report_bits(first: Member, member: Member, found: Comparison) -> Finding:
    names = [difference.path.removeprefix("numerics.") for difference in found.differences]
    severity: Severity = ERROR if names else UNKNOWN
    what = f"other bits than {clean(first.name)} in {', '.join(names)}"
    if not names:
        what = f"not comparable with {clean(first.name)}: {found.incomparable[0].reason}"
    return Finding(
        "other-bits",
        severity,
        member.name,
        message=f"{clean(member.name)} ({clean(member.processor)}): {clean(what)}",
        why="the cap does not reach every kernel on these machines",
        fix="do without these operations, or accept them by an override of the policy",
        source=SOURCE,
    )
