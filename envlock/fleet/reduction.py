"""Reduce the statements of all ranks to one report: which ranks are alike, which differ, and in
which facts. Pure.
"""

from __future__ import annotations

from envlock.fleet.check_settings import get_asked
from envlock.fleet.fleet_evidence import FleetEvidence
from envlock.fleet.node_names import format_nodes
from envlock.fleet.node_sets import Places, find_missing, group_by, order
from envlock.fleet.problems import (
    COMMAND,
    count_reasons,
    group_failures,
    has_wrong_files,
    is_beyond,
    iter_problems,
    make_finding,
)
from envlock.fleet.statement import drop_unjudged, has_looked
from envlock.fleet.texts import restore_texts
from envlock.runtime.assertion import ENFORCING
from envlock.runtime.collectors import Snapshot
from envlock.runtime.compare import compare
from envlock.runtime.device_ranges import format_ranges
from envlock.runtime.errors import make_choice_error
from envlock.runtime.exemptions import Exemption, describe_judge, list_exemptions
from envlock.runtime.extent import Extent
from envlock.runtime.judgement import build_policy, judge
from envlock.runtime.launchers import explain_differences
from envlock.runtime.machine_proof import list_results
from envlock.runtime.machines import is_machine
from envlock.runtime.policies import DEFAULT, Policy, names
from envlock.runtime.report import (
    ERROR,
    INFO,
    LAUNCHER,
    UNKNOWN,
    Finding,
    Report,
    count,
    sort_findings,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

    from envlock.fleet.fleet_evidence import GroupDocument
    from envlock.fleet.statement import Document, Statement
    from envlock.runtime.facts import Document as Lock

    Members = List[Statement]

# So that a report on 10,000 ranks stays below 200 lines.
GROUPS_SHOWN = 5
SECTIONS_SHOWN = 12
"""Sections of the facts that ranks state and a report lists."""
BREAKING = (ERROR, UNKNOWN)


class Group:
    """Ranks with one environment, as far as the policy compares it.

    Attributes:
        root: the digest of its facts; if the policy lets some differ, the digest that most ranks
            have.
        odd: the differences that are not allowed; empty if there are none.
        members: their statements.
    """

    __slots__ = ("members", "odd", "root")

    def __init__(self, root: str, odd: List[Finding]) -> None:
        self.root = root
        self.odd = odd
        self.members: Members = []

    def to_json(self) -> GroupDocument:
        """Return it as JSON values."""
        ranks, nodes = set(), set()
        for member in self.members:
            ranks.add(member["rank"])
            nodes.add(member["node"])
        values: GroupDocument = {
            "root": self.root,
            "count": len(ranks),
            "ranks": format_ranges(ranks),
            "nodes": format_nodes(nodes),
        }
        if self.odd:
            values["differs"] = [finding.message for finding in self.odd]
        return values


class Standard:
    """What ranks are compared with.

    Attributes:
        lock: the lockfile, with the facts that documents have; None compares ranks with one another
            only.
        rules: how strictly to compare.
        overrides: whether the lockfile's own rules apply.
    """

    __slots__ = ("exempt", "lock", "overrides", "rules")

    def __init__(self, lock: Optional[Lock], policy: Optional[str], *, overrides: bool) -> None:
        self.rules = choose_policy(lock, policy, overrides=overrides)
        self.overrides = overrides
        self.exempt: Dict[str, int] = {}
        self.lock: Optional[Lock] = None
        if lock is not None:
            own_rules: Mapping[str, str] = lock["policy"]["overrides"] if overrides else {}
            self.lock = _as_stated(lock, own_rules)

    def note_exempt(self, exempt: Sequence[Exemption]) -> None:
        """Note what passes on some ranks; of each owner the most counts, because ranks share packages."""
        for each in exempt:
            self.exempt[each.owner] = max(each.count, self.exempt.get(each.owner, 0))


class Standards:
    """What each rank is compared with: the policy and the rules that it has asked for itself.

    If ranks have not asked for the same, that is a finding (check_settings.py); none of them is
    judged by the request of another one, which would name the wrong ranks.

    Attributes:
        judge: that of the process that compares, which also holds for ranks that ask for nothing.
    """

    def __init__(self, lock: Optional[Lock], policy: Optional[str], *, overrides: bool) -> None:
        self._lock = lock
        self._policy = policy
        self.judge = Standard(lock, policy, overrides=overrides)
        self._others: Dict[Tuple[Optional[str], bool], Standard] = {}

    def find(self, statement: Statement) -> Standard:
        """Return the standard of a rank."""
        key = (statement["policy"] or self._policy, statement["overrides"])
        if (key[0] or self.judge.rules.name, key[1]) == self._get_judge_key():
            return self.judge
        if key not in self._others:
            self._others[key] = Standard(self._lock, key[0], overrides=key[1])
            self._others[key].exempt = self.judge.exempt
        return self._others[key]

    def _get_judge_key(self) -> Tuple[str, bool]:
        return self.judge.rules.name, self.judge.overrides


def reduction(
    statements: Sequence[Statement],
    documents: Mapping[str, Document],
    size: int,
    lock: Optional[Lock] = None,
    policy: Optional[str] = None,
    *,
    overrides: bool = True,
) -> Tuple[Report[FleetEvidence], List[Group]]:
    """Return a report on whether all ranks are alike and, with a lockfile, as locked; and their
    groups.

    Args:
        statements: at most one for each rank of one job.
        documents: the facts by their root.
        size: how many ranks the job has.
        lock: the lockfile; None compares ranks with one another only.
        policy: how strictly to compare; the lockfile's own, or `strict` without a lockfile, when
            not given.
        overrides: whether the lockfile's own rules apply.

    Raises:
        LockfileError: the lockfile names a policy or a rule that does not exist.
        UsageError: there is no such policy.
    """
    standards = Standards(lock, policy, overrides=overrides)
    standard = standards.judge
    places = Places()
    compared = list(filter(has_looked, statements))
    # Ranks with one root have one environment, which is compared once; a proof holds for one
    # machine.
    roots = group_by(compared, lambda each: (each["root"], each["proven"], get_asked(each)))
    groups, allowed = _compare_roots(roots, documents, standards, places)
    odd = list(filter(_is_odd, groups))
    asked = {"policy": standard.rules.name, "overrides": overrides}
    findings = list(iter_problems(statements, size, asked, places))
    for group in odd[:GROUPS_SHOWN]:
        members = group.members
        findings += [_add_place(each, members, len(compared), places) for each in group.odd]
    if len(odd) > GROUPS_SHOWN:
        rest: Members = []
        for group in odd[GROUPS_SHOWN:]:
            rest += group.members
        number = count(len(odd) - GROUPS_SHOWN, "more environment")
        findings.append(
            make_finding("rank-groups", f"{places.describe(rest)}: {number} that are odd")
        )
    notes = _list_notes(groups, roots, statements, places)
    evidence = _make_evidence(groups, statements, size, is_locked=lock is not None)
    # All sentences are complete now, so all node sets that they mention are known.
    evidence.node_sets = places.sets
    report = Report(
        sort_findings([*findings, *allowed]),
        command=COMMAND,
        policy=standard.rules.name,
        overrides=len(standard.rules.overrides),
        exempt=list_exemptions(standard.exempt),
        headline=_make_headline(findings, groups, len(statements), size, standard),
        notes=[*notes, *places.notes()],
        evidence=evidence,
        extent=Extent(ranks=len(compared)),
    )
    return report, groups


def choose_policy(
    lock: Optional[Lock], policy: Optional[str] = None, *, overrides: bool = True
) -> Policy:
    """Return the policy by which ranks are compared; raises the errors of `reduction`."""
    if lock is not None:
        return build_policy(lock, policy, overrides=overrides)
    if policy is not None and policy not in names():
        raise make_choice_error("policy", policy, names())
    return Policy(policy or DEFAULT)


def _compare_roots(
    roots: Sequence[Members],
    documents: Mapping[str, Document],
    standards: Standards,
    places: Places,
) -> Tuple[List[Group], List[Finding]]:
    """Return the groups, and the differences that are allowed.

    Ranks with the same differences, or with none, are one group. Ranks are odd if they differ from
    the lockfile or, if they do not, from the first ranks that do not either.
    """
    total = sum(map(len, roots))
    groups: Dict[Tuple[str, ...], Group] = {}
    allowed: Dict[str, Tuple[Finding, Members]] = {}
    first: Members = []
    # The environment of most ranks comes first, so that a minority is compared with it.
    for members in roots:
        root = members[0]["root"]
        standard = standards.find(members[0])
        # Facts that were left out by other rules are no difference.
        same: Members = first if first and first[0]["overrides"] == members[0]["overrides"] else []
        findings = _compare_root(members, same, documents, standard, places, total)
        wrong = _list_wrong(findings)
        odd: List[Finding] = []
        if wrong:
            odd = [each for each in findings if each.severity != INFO or each.rule == LAUNCHER]
        else:
            if not first:
                first = members
            for finding in findings:
                _, where = allowed.setdefault(finding.message, (finding, []))
                where.extend(members)
        groups.setdefault(wrong, Group(root, odd)).members += members
    placed = [_add_place(each, where, total, places) for each, where in allowed.values()]
    return sorted(groups.values(), key=lambda group: order(group.members)), placed


def _compare_root(
    members: Members,
    first: Members,
    documents: Mapping[str, Document],
    standard: Standard,
    places: Places,
    total: int,
) -> List[Finding]:
    """Return the differences of ranks with one root: from the lockfile or, if there are none, from
    the first ranks.
    """
    document = documents.get(members[0]["root"])
    if document is None:
        return [
            make_finding(
                "rank-facts-missing", "differs from other ranks, and its facts are missing"
            )
        ]
    findings: List[Finding] = (
        _compare_with_lock(document, standard.lock, members[0]["proven"], standard)
        if standard.lock is not None
        else []
    )
    texts: Dict[str, str] = {}
    if first:
        texts.update(documents[first[0]["root"]].get("texts", {}))
        if not _list_wrong(findings):
            title = places.describe(first) if 2 * len(first) <= total else "most ranks"
            findings += _compare_with_first(first, members, documents, standard, title)
    texts.update(document.get("texts", {}))
    for finding in findings:
        finding.message = restore_texts(finding.message, texts)
    return findings


def _list_wrong(findings: Iterable[Finding]) -> Tuple[str, ...]:
    return tuple([finding.message for finding in findings if finding.severity in BREAKING])


def _compare_with_lock(
    document: Document, lock: Lock, proven: bool, standard: Standard
) -> List[Finding]:
    """Return the differences from the lockfile; a single finding if a launcher explains all of
    them.
    """
    required = document.get("required", [])
    live = Snapshot(document["facts"], document["unavailable"], document["tooling"], required)
    proof = list_results(lock) if proven else None
    report = judge(lock, live, standard.rules.name, overrides=standard.overrides, proof=proof)
    standard.note_exempt(report.exempt)
    causes = explain_differences(report.findings, document["launch"])
    if len(causes) == 1:
        ((cause, facts),) = causes
        wrong = [each for each in report.findings if each.severity in BREAKING]
        if {each.where.fact for each in wrong} <= set(facts):
            return [_make_launcher_finding(cause, wrong)]
    return [*report.findings, *(cause for cause, _ in causes)]


def _make_launcher_finding(cause: Finding, wrong: Sequence[Finding]) -> Finding:
    """Return the finding that a launcher explains all differences from the lockfile."""
    only = "difference" if len(wrong) == 1 else "differences"
    differences = "; ".join(_list_wrong(wrong))
    message = f"{cause.message}, the only {only} from the lockfile ({differences})"
    return Finding(
        LAUNCHER,
        ERROR,
        cause.where,
        message=message,
        why=cause.why,
        fix=cause.fix,
        source=cause.source,
        weight=100,
    )


def _as_stated(lock: Lock, rules: Mapping[str, str]) -> Lock:
    """Return a lockfile with the facts that documents have."""
    profiles = []
    for profile in (lock, *lock.get("machines", ())):
        facts, unavailable = drop_unjudged(profile["facts"], profile["unavailable"], rules)
        profiles.append({"facts": facts, "unavailable": unavailable})
    own, *others = profiles
    return {**lock, **own, "machines": others}


def _compare_with_first(
    first: Members,
    members: Members,
    documents: Mapping[str, Document],
    standard: Standard,
    title: str,
) -> List[Finding]:
    """Return the differences from the first ranks, which messages call `title`."""
    before = documents[first[0]["root"]]
    here = documents[members[0]["root"]]
    proof = (
        list_results(standard.lock)
        if standard.lock is not None and first[0]["proven"] and members[0]["proven"]
        else None
    )
    findings = compare(
        (before["facts"], before["unavailable"]),
        (here["facts"], here["unavailable"]),
        standard.rules,
        (title, "here"),
        proof=proof,
    )
    if standard.lock is None:
        return findings
    odd = []
    for finding in findings:
        # With a lockfile, allowed differences have been listed already.
        if finding.severity == INFO:
            continue
        # A machine that the lockfile accepts may differ from the first one.
        if standard.lock["machines"] and is_machine(finding.where.fact):
            continue
        odd.append(finding)
    return odd


def _add_place(
    finding: Finding, members: Sequence[Statement], total: int, places: Places
) -> Finding:
    """Return a finding whose message begins with the ranks that it applies to."""
    place = places.describe(members) if len(members) != total else "all ranks"
    return Finding(
        finding.rule,
        finding.severity,
        finding.where,
        message=f"{place}: {finding.message}",
        why=finding.why,
        fix=finding.fix,
        source=finding.source,
        expected=finding.expected,
        actual=finding.actual,
        weight=finding.weight,
        commands=finding.commands,
    )


def _make_headline(
    findings: Sequence[Finding],
    groups: Sequence[Group],
    reported: int,
    size: int,
    standard: Standard,
) -> str:
    """Return whether the ranks match, and the number of each kind of difference."""
    under = ""
    if standard.lock is not None:
        exempt = list_exemptions(standard.exempt)
        under = describe_judge(standard.rules.name, len(standard.rules.overrides), exempt)
    missing = (
        f"{size - reported:,} of {count(size, 'rank')} did not report" if reported < size else ""
    )
    severities = {finding.severity for finding in findings}
    if ERROR in severities:
        what = _describe_odd_ranks(groups, reported, size, is_locked=standard.lock is not None)
        return "; ".join(filter(None, (f"does not match{under}: {what}", missing)))
    if UNKNOWN in severities:
        return f"cannot decide{under}: {missing or 'facts of ranks could not be collected'}"
    alike = f"{count(size, 'rank')} alike"
    if standard.lock is None:
        return alike
    return f"matches{under}: {alike}"


def _describe_odd_ranks(
    groups: Sequence[Group], reported: int, size: int, *, is_locked: bool
) -> str:
    odd = _count_ranks(filter(_is_odd, groups))
    what = f"{odd:,} of {count(size, 'rank')} differ" if odd else "ranks do not belong together"
    if odd and majority(groups) is None:
        return f"{what}, and no environment has a majority"
    if odd != reported:
        return what
    if is_locked:
        return "no rank is as locked"
    return "ranks differ"


def _is_odd(group: Group) -> bool:
    return bool(group.odd)


def _count_ranks(groups: Iterable[Group]) -> int:
    return sum([len(group.members) for group in groups])


def majority(groups: Sequence[Group]) -> Optional[Group]:
    """Return the group with more than half of the ranks that reported; None if there is no such
    group.
    """
    if not groups or 2 * len(groups[0].members) <= _count_ranks(groups):
        return None
    return groups[0]


def _list_notes(
    groups: Sequence[Group],
    roots: Sequence[Members],
    statements: Sequence[Statement],
    places: Places,
) -> List[str]:
    nodes, jobs = set(), set()
    for statement in statements:
        nodes.add(statement["node"])
        jobs.add(statement["job"])
    jobs.discard("")
    where = f"{count(len(statements), 'rank')} on {count(len(nodes), 'node')}"
    if len(jobs) == 1:
        where += f", job {jobs.pop()}"
    notes = [where]
    if len(groups) > 1:
        shown_groups = groups[:GROUPS_SHOWN]
        words = [f"{places.describe(each.members)} {each.root[:12]}" for each in shown_groups]
        if len(groups) > GROUPS_SHOWN:
            words.append(f"{len(groups) - GROUPS_SHOWN} more")
        notes.append(f"{count(len(groups), 'environment')}: {', '.join(words)}")
    sections = _list_unjudged_sections(roots)
    if sections:
        shown = ", ".join(sections[:SECTIONS_SHOWN])
        notes.append(f"not compared, and different between ranks: facts of {shown}")
    return notes


def _list_unjudged_sections(roots: Sequence[Members]) -> List[str]:
    """Return the sections in which ranks with one root differ: in facts that no policy compares."""
    names: Set[str] = set()
    for first, *others in roots:
        digests = first["sections"]
        for member in others:
            sections = member["sections"]
            if sections == digests:
                continue
            for name in {*sections, *digests}:
                if sections.get(name) != digests.get(name):
                    names.add(name)
    return sorted(names)


def _make_evidence(
    groups: Sequence[Group], statements: Sequence[Statement], size: int, *, is_locked: bool
) -> FleetEvidence:
    major = majority(groups)
    root = major.root if major is not None else None
    # Without a lockfile, it takes a majority to decide which ranks are good.
    vetted: List[str] = (
        _list_vetted_nodes(groups, statements, size) if is_locked or major is not None else []
    )
    missing = format_ranges(find_missing(statements, size))
    documents = [group.to_json() for group in groups]
    evidence = FleetEvidence(size, len(statements), documents, root, vetted, missing)
    for members in group_failures(statements):
        for reason, number in count_reasons(members).items():
            evidence.failed.append({"reason": reason, "count": number})
    return evidence


def _get_node(statement: Statement) -> str:
    return str(statement["node"])


def _get_standard(statement: Statement) -> Tuple[object, ...]:
    return (statement["lock"], *get_asked(statement))


def _list_vetted_nodes(
    groups: Sequence[Group], statements: Sequence[Statement], size: int
) -> List[str]:
    """Return the nodes whose ranks have all reported and match; none if it is open which lockfile
    or setting is the right one.
    """
    compared = list(filter(has_looked, statements))
    kinds = group_by(compared, _get_standard)
    if not kinds or 2 * len(kinds[0]) <= len(compared):
        return []
    good = _get_standard(kinds[0][0])
    wrong: Set[str] = set()
    for group in filter(_is_odd, groups):
        wrong.update(map(_get_node, group.members))
    does_enforce = any(statement["mode"] in ENFORCING for statement in statements)
    ranks: Dict[str, Set[int]] = {}
    for statement in statements:
        node = statement["node"]
        ranks.setdefault(node, set()).add(statement["rank"])
        if _get_standard(statement) != good or not statement["root"] or is_beyond(statement, size):
            wrong.add(node)
        if does_enforce and statement["mode"] not in ENFORCING:
            wrong.add(node)
        if has_wrong_files(statement):
            wrong.add(node)
    # A missing rank has not stated its node, but a node with fewer ranks than the others has lost
    # one.
    if sum(map(len, ranks.values())) < size:
        most = max(map(len, ranks.values()))
        for node, numbers in ranks.items():
            if len(numbers) < most:
                wrong.add(node)
    return sorted(set(ranks) - wrong)
