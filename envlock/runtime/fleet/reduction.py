"""From the statements of all ranks to one report: which are alike, which are not, and in which facts. Pure."""

from __future__ import annotations

from envlock.runtime.assertion import ENFORCING
from envlock.runtime.collectors import Snapshot
from envlock.runtime.compare import compare
from envlock.runtime.errors import UsageError
from envlock.runtime.fleet.fleet_evidence import FleetEvidence
from envlock.runtime.fleet.node_names import node_list, ranges
from envlock.runtime.fleet.places import Places, order, together
from envlock.runtime.fleet.problems import COMMAND, failures, is_beyond, of_ranks, problems, reasons
from envlock.runtime.fleet.statement import judged
from envlock.runtime.fleet.texts import readable
from envlock.runtime.launchers import explained
from envlock.runtime.policy import DEFAULT, Policy, names
from envlock.runtime.report import ERROR, INFO, LAUNCHER, UNKNOWN, Finding, Report, count, ranked
from envlock.runtime.verify import judge, policy_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

    from envlock.runtime.fleet.fleet_evidence import GroupDocument
    from envlock.runtime.fleet.statement import Document, Statement

    Members = List[Statement]

GROUPS_SHOWN = 5
SECTIONS_SHOWN = 12  # of the facts that ranks state
BREAKING = (ERROR, UNKNOWN)


class Group:
    """Ranks with one environment, as far as the policy judges it.

    Attributes:
        root: the digest of its facts; where the policy lets some differ, that of the most ranks.
        odd: what differs and may not; empty where nothing does.
        members: their statements.
    """

    __slots__ = ("members", "odd", "root")

    def __init__(self, root: str, odd: List[Finding]) -> None:
        self.root = root
        self.odd = odd
        self.members: Members = []

    def to_json(self) -> GroupDocument:
        """Return JSON values."""
        nodes = {each["node"] for each in self.members}
        ranks = {each["rank"] for each in self.members}
        document: GroupDocument = {
            "root": self.root,
            "count": len(ranks),
            "ranks": ranges(ranks),
            "nodes": node_list(nodes),
        }
        if self.odd:
            document["differs"] = [each.message for each in self.odd]
        return document


def reduction(
    statements: Sequence[Statement],
    documents: Mapping[str, Document],
    size: int,
    lock: Optional[Dict[str, Any]] = None,
    policy: Optional[str] = None,
    *,
    overrides: bool = True,
) -> Tuple[Report[FleetEvidence], List[Group]]:
    """Return whether all ranks are alike and, where there is a lock, as locked; and their groups.

    Args:
        statements: at most one a rank, of one job.
        documents: the facts by their root.
        size: how many ranks the job has.
        lock: the lockfile; None compares ranks with one another only.
        policy: how closely to compare; the lockfile's own, or `strict` where there is none.
        overrides: whether the lockfile's own rules count.

    Raises:
        LockfileError: the lockfile names a policy or a rule that does not exist.
        UsageError: there is no such policy.
    """
    rules = rules_of(lock, policy, overrides=overrides)
    places = Places()
    compared = [each for each in statements if each["root"]]
    roots = together(compared, lambda each: (each["root"], each["proven"]))
    as_stated = (
        None if lock is None else _as_stated(lock, lock["policy"]["overrides"] if overrides else {})
    )
    groups, aside = _judged(roots, documents, as_stated, rules, overrides, places)
    odd = [group for group in groups if group.odd]
    findings = [*problems(statements, compared, size, places)]
    for group in odd[:GROUPS_SHOWN]:
        findings += [_placed(each, group.members, len(compared), places) for each in group.odd]
    if len(odd) > GROUPS_SHOWN:
        more = [each for group in odd[GROUPS_SHOWN:] for each in group.members]
        number = count(len(odd) - GROUPS_SHOWN, "more environment")
        findings.append(of_ranks("rank-groups", f"{places.of(more)}: {number} that are odd"))
    notes = _notes(groups, roots, statements, places)
    evidence = _evidence(groups, statements, size, is_locked=lock is not None)
    evidence.node_sets = places.sets
    report = Report(
        ranked([*findings, *aside]),
        command=COMMAND,
        policy=rules.name,
        overrides=len(rules.overrides),
        headline=_headline(
            findings, len(statements), size, groups, None if lock is None else rules
        ),
        notes=[*notes, *places.notes()],
        evidence=evidence,
    )
    return report, groups


def rules_of(
    lock: Optional[Dict[str, Any]], policy: Optional[str] = None, *, overrides: bool = True
) -> Policy:
    """Return the policy that judges ranks; errors as in `reduction`."""
    if lock is not None:
        return policy_of(lock, policy, overrides=overrides)
    if policy is not None and policy not in names():
        raise UsageError(f"unknown policy `{policy}`", hint=f"choose from: {', '.join(names())}")
    return Policy(policy or DEFAULT)


def _judged(
    roots: Sequence[Members],
    documents: Mapping[str, Document],
    lock: Optional[Dict[str, Any]],
    rules: Policy,
    overrides: bool,
    places: Places,
) -> Tuple[List[Group], List[Finding]]:
    """Return the groups, and what differs and may. Ranks in which the same is wrong, or nothing is, are one group.

    Ranks are odd where they are not as locked, or else not as the first that are.
    """
    total = sum(map(len, roots))
    groups: Dict[Tuple[str, ...], Group] = {}
    allowed: Dict[str, Tuple[Finding, Members]] = {}
    first: Members = []
    for members in roots:
        document = documents.get(members[0]["root"])
        if document is None:
            found = [of_ranks("rank-facts", "differs from other ranks, and its facts are missing")]
        else:
            found = (
                []
                if lock is None
                else _against(lock, document, members[0]["proven"], rules, overrides)
            )
            if first and not _wrong(found):
                title = "most ranks" if 2 * len(first) > total else places.of(first)
                found += _apart(first, members, documents, rules, lock, title)
            texts = {
                **(documents[first[0]["root"]].get("texts", {}) if first else {}),
                **document.get("texts", {}),
            }
            for each in found:
                each.message = readable(each.message, texts)
        wrong = _wrong(found)
        if not wrong:
            first = first or members
            for each in found:
                allowed.setdefault(each.message, (each, []))[1].extend(members)
        odd = [each for each in found if wrong and (each.severity != INFO or each.rule == LAUNCHER)]
        groups.setdefault(wrong, Group(members[0]["root"], odd)).members += members
    aside = [_placed(each, members, total, places) for each, members in allowed.values()]
    return sorted(groups.values(), key=lambda group: order(group.members)), aside


def _wrong(found: Iterable[Finding]) -> Tuple[str, ...]:
    return tuple([each.message for each in found if each.severity in BREAKING])


def _against(
    lock: Dict[str, Any], document: Document, proven: bool, rules: Policy, overrides: bool
) -> List[Finding]:
    """Return what differs from the lockfile; where a launcher explains all of it, one finding that says so."""
    live = Snapshot(document["facts"], document["unavailable"], document["tooling"])
    found = judge(lock, live, rules.name, overrides=overrides, proven=proven).findings
    causes = explained(found, document["launch"])
    wrong = [each for each in found if each.severity in BREAKING]
    named = [
        path for each in causes for path in each.message.rpartition(" explains ")[2].split(", ")
    ]
    if len(causes) == 1 and {each.where.fact for each in wrong} <= set(named):
        (cause,) = causes
        differences = "; ".join(_wrong(found))
        only = "difference" if len(wrong) == 1 else "differences"
        message = f"{cause.message}, the only {only} from the lockfile ({differences})"
        return [
            Finding(
                LAUNCHER,
                ERROR,
                cause.where,
                message,
                cause.why,
                cause.fix,
                cause.source,
                weight=100,
            )
        ]
    return [*found, *causes]


def _as_stated(lock: Dict[str, Any], rules: Mapping[str, str]) -> Dict[str, Any]:
    """Return a lockfile with the facts that documents have."""
    sides = [
        judged(each["facts"], each["unavailable"], rules)
        for each in (lock, *lock.get("machines", ()))
    ]
    own, *others = [{"facts": facts, "unavailable": unavailable} for facts, unavailable in sides]
    return {**lock, **own, "machines": others}


def _apart(
    first: Members,
    members: Members,
    documents: Mapping[str, Document],
    rules: Policy,
    lock: Optional[Dict[str, Any]],
    title: str,
) -> List[Finding]:
    """Return what ranks have other than the first; a machine that the lockfile accepts may be another one.

    With a lockfile, what may differ has been listed against that. `title` is what the first are called.
    """
    sides = [
        (each["facts"], each["unavailable"])
        for each in (documents[it[0]["root"]] for it in (first, members))
    ]
    found = compare(
        sides[0],
        sides[1],
        rules,
        (title, "here"),
        is_proven=first[0]["proven"] and members[0]["proven"],
    )
    if lock is None:
        return found
    from envlock.runtime.machines import is_machine

    accepts_others = bool(lock["machines"])
    return [
        each
        for each in found
        if each.severity != INFO and not (accepts_others and is_machine(each.where.fact))
    ]


def _placed(found: Finding, members: Sequence[Statement], total: int, places: Places) -> Finding:
    """Return a finding whose message begins with where it is."""
    place = "all ranks" if len(members) == total else places.of(members)
    words = {name: getattr(found, name) for name in Finding.__slots__}
    return Finding(**{**words, "message": f"{place}: {found.message}"})


def _headline(
    findings: Sequence[Finding],
    reported: int,
    size: int,
    groups: Sequence[Group],
    rules: Optional[Policy],
) -> str:
    under = "" if rules is None else f" under policy {rules.name}"
    under += (
        f", with {count(len(rules.overrides), 'override')}"
        if rules is not None and rules.overrides
        else ""
    )
    missing = (
        f"{size - reported:,} of {count(size, 'rank')} did not report" if reported < size else ""
    )
    if any(each.severity == ERROR for each in findings):
        differing = sum(len(group.members) for group in groups if group.odd)
        what = (
            f"{differing:,} of {count(size, 'rank')} differ"
            if differing
            else "ranks do not belong together"
        )
        if differing and majority(groups) is None:
            what += ", and no environment has a majority"
        elif differing == reported:
            what = "no rank is as locked" if rules is not None else "ranks differ"
        return "; ".join(filter(None, (f"does not match{under}: {what}", missing)))
    if any(each.severity == UNKNOWN for each in findings):
        return f"cannot decide{under}: {missing or 'facts of ranks could not be collected'}"
    alike = f"{count(size, 'rank')} alike"
    return alike if rules is None else f"matches{under}: {alike}"


def majority(groups: Sequence[Group]) -> Optional[Group]:
    """Return the group that more than half of the ranks that reported belong to; None where there is none."""
    total = sum(len(group.members) for group in groups)
    return groups[0] if groups and 2 * len(groups[0].members) > total else None


def _notes(
    groups: Sequence[Group],
    roots: Sequence[Members],
    statements: Sequence[Statement],
    places: Places,
) -> List[str]:
    nodes = {each["node"] for each in statements}
    jobs = {each["job"] for each in statements if each["job"]}
    job = f", job {jobs.pop()}" if len(jobs) == 1 else ""
    notes = [f"{count(len(statements), 'rank')} on {count(len(nodes), 'node')}{job}"]
    if len(groups) > 1:
        listed = [
            f"{places.of(group.members)} {group.root[:12]}" for group in groups[:GROUPS_SHOWN]
        ]
        more = [f"{len(groups) - GROUPS_SHOWN} more"] if len(groups) > GROUPS_SHOWN else []
        notes.append(f"{count(len(groups), 'environment')}: {', '.join(listed + more)}")
    aside = _aside(roots)
    return (
        [
            *notes,
            f"not compared, and different between ranks: facts of {', '.join(aside[:SECTIONS_SHOWN])}",
        ]
        if aside
        else notes
    )


def _aside(roots: Sequence[Members]) -> List[str]:
    """Return the sections in which ranks of one root differ: in facts that no policy judges."""
    found = set()
    for first, *others in roots:
        for sections in (
            each["sections"] for each in others if each["sections"] != first["sections"]
        ):
            both = {*sections, *first["sections"]}
            found |= {name for name in both if sections.get(name) != first["sections"].get(name)}
    return sorted(found)


def _evidence(
    groups: Sequence[Group], statements: Sequence[Statement], size: int, *, is_locked: bool
) -> FleetEvidence:
    root, vetted = None, []
    major = majority(groups)
    if major is not None:
        root = major.root
    if is_locked or major is not None:
        vetted = _vetted(groups, statements, size)
    missing = ranges(set(range(size)) - {each["rank"] for each in statements})
    documents = [group.to_json() for group in groups]
    evidence = FleetEvidence(size, len(statements), documents, root, vetted, missing)
    for members in failures(statements):
        for reason, number in reasons(members).items():
            evidence.failed.append({"reason": reason, "count": number})
    return evidence


def _vetted(groups: Sequence[Group], statements: Sequence[Statement], size: int) -> List[str]:
    """Return the nodes of which all is known, and good; none where it is open which lockfile is the right one."""
    ranks: Dict[str, Set[int]] = {}
    for each in statements:
        ranks.setdefault(each["node"], set()).add(each["rank"])
    locks = together([each for each in statements if each["root"]], lambda each: each["lock"])
    if not locks or 2 * len(locks[0]) <= sum(map(len, locks)):
        return []
    good = locks[0][0]["lock"]
    wrong = {each["node"] for group in groups if group.odd for each in group.members}
    wrong |= {
        each["node"]
        for each in statements
        if each["lock"] != good or not each["root"] or is_beyond(each, size)
    }
    if any(each["mode"] in ENFORCING for each in statements):
        wrong |= {each["node"] for each in statements if each["mode"] not in ENFORCING}
    if (
        sum(map(len, ranks.values())) < size
    ):  # who is missing has said no node: one that has fewer ranks has lost one
        most = max(map(len, ranks.values()))
        wrong |= {node for node, numbers in ranks.items() if len(numbers) < most}
    return sorted(set(ranks) - wrong)
