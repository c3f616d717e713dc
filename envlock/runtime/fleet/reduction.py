"""From the statements of all ranks to one report: which are alike, which are not, and in which facts. Pure."""

from __future__ import annotations

from envlock.runtime.collectors import Snapshot
from envlock.runtime.compare import compare
from envlock.runtime.fleet.node_names import node_list, ranges
from envlock.runtime.fleet.statement import judged
from envlock.runtime.launchers import explained
from envlock.runtime.policy import DEFAULT, Policy
from envlock.runtime.report import ERROR, INFO, LAUNCHER, UNKNOWN, Finding, Report, count, ranked
from envlock.runtime.verify import judge, policy_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

    from envlock.runtime.fleet.statement import Document, Statement

COMMAND = "fleet check"
GROUPS_SHOWN = 5
LONGEST = 40  # characters of a list of ranks; a longer one becomes a number
SOURCE = "docs/fleet.md"
WHERE = "fleet"  # what a finding is about that is not about a fact
WHY_ALIKE = "Ranks compute parts of one result: where environments differ, the bits depend on which rank computes what."
WHY_MISSING = "A rank that does not report can have any environment, or has ended."


class Group:
    """Ranks with one environment.

    Attributes:
        key: its root, and whether its machine is known to compute the lockfile's bits.
        members: their statements.
    """

    __slots__ = ("key", "members")

    def __init__(self, key: Tuple[str, bool]) -> None:
        self.key = key
        self.members: List[Statement] = []

    @property
    def place(self) -> str:
        """Nodes and ranks, as people read them."""
        return place_of(self.members)

    def to_json(self) -> Dict[str, Any]:
        """Return JSON values."""
        nodes, numbers = ({each[key] for each in self.members} for key in ("node", "rank"))
        return {"root": self.key[0], "count": len(numbers), "ranks": ranges(numbers), "nodes": node_list(nodes)}


def place_of(members: Iterable[Statement]) -> str:
    """Return nodes and ranks of statements: `n3 (ranks 4-5)`."""
    members = list(members)
    numbers = {each["rank"] for each in members}
    listed = ranges(numbers)
    if len(listed) > LONGEST:
        which = count(len(numbers), "rank")
    else:
        which = f"rank {listed}" if len(numbers) == 1 else f"ranks {listed}"
    return f"{node_list(each['node'] for each in members)} ({which})"


def grouped(statements: Iterable[Statement]) -> List[Group]:
    """Return the ranks by environment, the largest group first, then the one with the lowest rank."""
    found: Dict[Tuple[str, bool], Group] = {}
    for each in statements:
        if each["root"]:
            key = (each["root"], each["proven"])
            found.setdefault(key, Group(key)).members.append(each)
    return sorted(found.values(), key=lambda group: (-len(group.members), min(each["rank"] for each in group.members)))


def reduced(
    statements: Sequence[Statement],
    documents: Mapping[str, Document],
    size: int,
    lock: Optional[Dict[str, Any]] = None,
    policy: Optional[str] = None,
    *,
    overrides: bool = True,
) -> Report:
    """Return whether all ranks are alike and, where there is a lock, as locked.

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
    groups = grouped(statements)
    rules = Policy(policy or DEFAULT) if lock is None else policy_of(lock, policy, overrides=overrides)
    findings = [*_absent(statements, size), *_failed(statements), *_other_lockfiles(statements)]
    odd, aside = _judged(groups, documents, lock, rules, policy, overrides)
    differing = sum(len(group.members) for group, _ in odd)
    for group, found in odd[:GROUPS_SHOWN]:
        findings += _placed(found, group, alone=len(groups) == 1)
    if len(odd) > GROUPS_SHOWN:
        findings.append(_more([group for group, _ in odd[GROUPS_SHOWN:]]))
    major = majority(groups)
    head = _headline(findings, len(statements), size, differing, major is not None, None if lock is None else rules)
    return Report(
        ranked([*findings, *aside]),
        command=COMMAND,
        policy=rules.name,
        overrides=len(rules.overrides),
        headline=head,
        notes=_notes(groups, statements),
        attachments={"fleet": _attachment(groups, statements, size, [group for group, _ in odd])},
    )


def majority(groups: Sequence[Group]) -> Optional[Group]:
    """Return the group that more than half of the ranks that reported belong to; None where there is none."""
    total = sum(len(group.members) for group in groups)
    return groups[0] if groups and 2 * len(groups[0].members) > total else None


def _judged(
    groups: Sequence[Group],
    documents: Mapping[str, Document],
    lock: Optional[Dict[str, Any]],
    rules: Policy,
    policy: Optional[str],
    overrides: bool,
) -> Tuple[List[Tuple[Group, List[Finding]]], List[Finding]]:
    """Return the groups that are odd, each with what differs, and what differs and may.

    A group is odd where it is not as locked, or else not as the first group that is.
    """
    odd: List[Tuple[Group, List[Finding]]] = []
    aside: List[Finding] = []
    first: Optional[Group] = None
    for group in groups:
        document = documents.get(group.key[0])
        if document is None:
            odd.append((group, [_no_facts()]))
            continue
        found = [] if lock is None else _against(lock, document, policy, overrides, group.key[1])
        if not _breaks(found) and first is not None:
            found += _apart(first, group, documents, rules, lock, is_major=first is majority(groups))
        if _breaks(found):
            odd.append((group, [each for each in found if each.severity != INFO or each.rule == LAUNCHER]))
            continue
        first = first or group
        aside += _placed(found, group, alone=len(groups) == 1)
    return odd, aside


def _breaks(found: Iterable[Finding]) -> bool:
    return any(each.severity in (ERROR, UNKNOWN) for each in found)


def _against(
    lock: Dict[str, Any], document: Document, policy: Optional[str], overrides: bool, proven: bool
) -> List[Finding]:
    """Return what differs from the lockfile; where a launcher explains all of it, one finding that says so."""
    live = Snapshot(document["facts"], document["unavailable"], document["tooling"])
    same_form = _as_stated(lock, lock["policy"]["overrides"] if overrides else {})
    found = judge(same_form, live, policy, overrides=overrides, proven=proven).findings
    causes = explained(found, document["launch"])
    wrong = [each for each in found if each.severity in (ERROR, UNKNOWN)]
    named = {path for each in causes for path in _paths(each)}
    if len(causes) == 1 and {each.where.fact for each in wrong} <= named:
        (cause,) = causes
        differences = "; ".join([each.message for each in wrong])
        message = f"{cause.message}, the only {_differences(wrong)} from the lockfile ({differences})"
        return [Finding(LAUNCHER, ERROR, cause.where, message, cause.why, cause.fix, cause.source, weight=100)]
    return [*found, *causes]


def _as_stated(lock: Dict[str, Any], rules: Mapping[str, str]) -> Dict[str, Any]:
    """Return a lockfile with the facts that documents have."""
    sides = [judged(each["facts"], each["unavailable"], rules) for each in (lock, *lock.get("machines", ()))]
    own, *others = [{"facts": facts, "unavailable": unavailable} for facts, unavailable in sides]
    return {**lock, **own, "machines": others}


def _paths(cause: Finding) -> List[str]:
    return cause.message.rpartition(" explains ")[2].split(", ")


def _differences(found: Sequence[Finding]) -> str:
    return "difference" if len(found) == 1 else "differences"


def _apart(
    first: Group,
    group: Group,
    documents: Mapping[str, Document],
    rules: Policy,
    lock: Optional[Dict[str, Any]],
    *,
    is_major: bool,
) -> List[Finding]:
    """Return what a group has other than the first; a machine that the lockfile accepts may be another one."""
    old, new = documents[first.key[0]], documents[group.key[0]]
    names = ("most ranks", "here") if is_major else (first.place, "here")
    sides = [(each["facts"], each["unavailable"]) for each in (old, new)]
    found = compare(sides[0], sides[1], rules, names, is_proven=first.key[1] and group.key[1])
    if lock is None or not lock.get("machines"):
        return found
    from envlock.runtime.machines import is_machine

    return [each for each in found if not is_machine(each.where.fact)]


def _placed(found: List[Finding], group: Group, *, alone: bool) -> List[Finding]:
    """Let the messages of findings begin with where they are, and return them."""
    place = "all ranks" if alone else group.place
    for each in found:
        each.message = f"{place}: {each.message}"
    return found


def _absent(statements: Sequence[Statement], size: int) -> List[Finding]:
    missing = set(range(size)) - {each["rank"] for each in statements}
    found = []
    if missing:
        ranks = f"rank {ranges(missing)}" if len(missing) == 1 else f"ranks {ranges(missing)}"
        fix = "Look for the end of that rank in the launcher's log, and start the job again."
        found.append(Finding("rank-missing", UNKNOWN, WHERE, f"no report from {ranks}", WHY_MISSING, fix, SOURCE))
    beyond = [each for each in statements if each["rank"] >= size or each.get("size") not in (None, size)]
    if beyond:
        message = f"{place_of(beyond)}: belongs to a job of another size, not of {count(size, 'rank')}"
        fix = "Give each job a folder of its own, or the number of its ranks."
        found.append(Finding("rank-size", ERROR, WHERE, message, WHY_ALIKE, fix, SOURCE))
    return found


def _failed(statements: Sequence[Statement]) -> List[Finding]:
    """Return why ranks could not look at their environments, ranks with one reason together."""
    reasons: Dict[str, List[Statement]] = {}
    for each in statements:
        if not each["root"]:
            reasons.setdefault(str(each.get("problem") or "no reason given"), []).append(each)
    fix = "Remove the cause on these nodes, and start the job again."
    return [
        Finding("rank-failed", UNKNOWN, WHERE, f"{place_of(which)}: cannot report: {reason}", WHY_MISSING, fix, SOURCE)
        for reason, which in sorted(reasons.items())
    ]


def _other_lockfiles(statements: Sequence[Statement]) -> List[Finding]:
    kinds: Dict[str, List[Statement]] = {}
    for each in statements:
        if each["root"]:
            kinds.setdefault(each["lock"], []).append(each)
    if len(kinds) < 2:
        return []
    parts = [
        f"{place_of(which)} {'sha256:' + digest[:12] if digest else 'none'}"
        for digest, which in sorted(kinds.items(), key=lambda item: -len(item[1]))
    ]
    why = "Each rank reads the lockfile where it runs; with several, ranks are held to several environments."
    fix = "Put one lockfile where every node reads it."
    return [
        Finding("rank-lockfile", ERROR, WHERE, f"ranks have different lockfiles: {', '.join(parts)}", why, fix, SOURCE)
    ]


def _no_facts() -> Finding:
    message = "differs from other ranks, and its facts are missing"
    return Finding("rank-facts", UNKNOWN, WHERE, message, WHY_MISSING, "Run the job again in an empty folder.", SOURCE)


def _more(groups: Sequence[Group]) -> Finding:
    members = [each for group in groups for each in group.members]
    message = f"{place_of(members)}: {count(len(groups), 'more environment')} that are odd"
    fix = "Remove the differences above first; `--format json` lists all groups."
    return Finding("rank-groups", ERROR, WHERE, message, WHY_ALIKE, fix, SOURCE)


def _headline(
    findings: Sequence[Finding], reported: int, size: int, differing: int, has_majority: bool, rules: Optional[Policy]
) -> str:
    under = "" if rules is None else f" under policy {rules.name}"
    besides = f", with {count(len(rules.overrides), 'override')}" if rules is not None and rules.overrides else ""
    missing = f"{size - reported} of {count(size, 'rank')} did not report" if reported < size else ""
    if any(each.severity == ERROR for each in findings):
        if differing == reported and has_majority:
            what = "no rank is as locked" if rules is not None else "ranks differ"
        elif differing and not has_majority:
            what = f"{differing} of {count(size, 'rank')} differ, and no environment has a majority"
        else:
            what = f"{differing} of {count(size, 'rank')} differ" if differing else "ranks do not belong together"
        return "; ".join([each for each in (f"does not match{under}{besides}: {what}", missing) if each])
    if any(each.severity == UNKNOWN for each in findings):
        return f"cannot decide{under}{besides}: {missing or 'facts of ranks could not be collected'}"
    alike = f"{count(size, 'rank')} alike"
    return f"matches{under}{besides}: {alike}" if rules is not None else alike


def _notes(groups: Sequence[Group], statements: Sequence[Statement]) -> List[str]:
    nodes = {each["node"] for each in statements}
    jobs = sorted({each["job"] for each in statements if each["job"]})
    job = f", job {jobs[0]}" if len(jobs) == 1 else ""
    notes = [f"{count(len(statements), 'rank')} on {count(len(nodes), 'node')}{job}"]
    if len(groups) > 1:
        listed = [f"{group.place} {group.key[0][:12]}" for group in groups[:GROUPS_SHOWN]]
        more = [f"{len(groups) - GROUPS_SHOWN} more"] if len(groups) > GROUPS_SHOWN else []
        notes.append(f"{count(len(groups), 'environment')}: {', '.join(listed + more)}")
    aside = _aside(groups)
    return [*notes, f"not compared, and different between ranks: facts of {', '.join(aside)}"] if aside else notes


def _aside(groups: Sequence[Group]) -> List[str]:
    """Return the sections in which ranks of one environment differ: in facts that no policy judges."""
    found = set()
    for group in groups:
        first = group.members[0]["sections"]
        for each in group.members:
            if each["sections"] != first:
                found |= {name for name in {*each["sections"], *first} if each["sections"].get(name) != first.get(name)}
    return sorted(found)


def _attachment(
    groups: Sequence[Group], statements: Sequence[Statement], size: int, odd: Sequence[Group]
) -> Dict[str, Any]:
    major = majority(groups)
    wrong = {each["node"] for group in odd for each in group.members}
    wrong |= {each["node"] for each in statements if not each["root"]}
    return {
        "size": size,
        "reported": len(statements),
        "groups": [group.to_json() for group in groups],
        "majority": None if major is None else major.key[0],
        "vetted": sorted({each["node"] for each in statements} - wrong),
        "missing": ranges(set(range(size)) - {each["rank"] for each in statements}),
    }
