"""Problems of the ranks themselves, independent of their facts. Pure."""

from __future__ import annotations

import re

from envlock.fleet.check_settings import iter_differences
from envlock.fleet.node_sets import find_missing, group_by, list_ranks
from envlock.runtime.assertion import ENFORCING, OFF
from envlock.runtime.report import ERROR, UNKNOWN, WARNING, Finding, Severity, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Mapping, Sequence, Tuple

    from envlock.fleet.node_sets import Members, Places
    from envlock.fleet.statement import Statement

COMMAND = "fleet check"
MISSING = "rank-missing"
SHOWN = 5
"""Kinds of failures, and of files that are not as recorded."""
SOURCE = "docs/guides/fleet/index.md"
WHERE = "fleet"
"""The place of a finding that is not about a fact."""
PARTS = (
    "Ranks compute parts of one result: "
    "where environments differ, the bits depend on which rank computes what."
)
LOST = "A rank that does not report can have any environment, or has ended."
SEVERAL = (
    "Each rank reads the lockfile where it runs; "
    "with several, ranks are held to several environments."
)
WEAKENED = "Ranks are judged together: one that asked for more than the others would start on less."
SWITCHED = "A rank that goes on whatever is found would start without those that refuse."
OF_RANKS: Dict[str, Tuple[Severity, str, str]] = {
    MISSING: (
        UNKNOWN,
        LOST,
        "Look for the end of that rank in the launcher's log, and start the job again.",
    ),
    "rank-size": (ERROR, PARTS, "Give each job a folder of its own, or the number of its ranks."),
    "rank-failed": (UNKNOWN, LOST, "Remove the cause on these nodes, and start the job again."),
    "rank-mode": (ERROR, SWITCHED, "Set ENVLOCK_MODE for all ranks, or for none."),
    "rank-lockfile": (ERROR, SEVERAL, "Put one lockfile where every node reads it."),
    "rank-policy": (
        ERROR,
        WEAKENED,
        "Set the policy (ENVLOCK_POLICY, `policy=`) and ENVLOCK_NO_OVERRIDES alike on all ranks.",
    ),
    "rank-files": (
        ERROR,
        "Each rank compares the data of the lockfile where it runs, "
        "and with ENVLOCK_MODE=deep its installed files.",
        "Run `envlock verify --deep` on these nodes, and do what it says.",
    ),
    "rank-facts-missing": (UNKNOWN, LOST, "Run the job again in an empty folder."),
    "rank-groups": (
        ERROR,
        PARTS,
        "Remove the differences above first; `--format json` lists all groups.",
    ),
}
"""Problems of ranks rather than of facts, by rule: severity, reason and remedy."""


def make_finding(rule: str, message: str) -> Finding:
    """Return a finding about ranks."""
    severity, why, fix = OF_RANKS[rule]
    return Finding(rule, severity, WHERE, message=message, why=why, fix=fix, source=SOURCE)


def iter_problems(
    statements: Sequence[Statement], size: int, judge: Mapping[str, object], places: Places
) -> Iterator[Finding]:
    """Yield the problems of the ranks themselves, independent of their facts.

    Args:
        statements: at most one for each rank.
        size: how many ranks the job has.
        judge: the settings of the process that compares them.
        places: names nodes and ranks.
    """
    missing = find_missing(statements, size)
    if missing:
        yield make_finding(MISSING, f"no report from {list_ranks(missing)}")
    beyond = [each for each in statements if is_beyond(each, size)]
    if beyond:
        job = f"a job of another size, not of {count(size, 'rank')}"
        yield make_finding("rank-size", f"{places.describe(beyond)}: belongs to {job}")
    yield from _iter_loose_ranks(statements, places)
    yield from _iter_failures(group_failures(statements), places)
    for rule, message in iter_differences(statements, judge, places):
        yield make_finding(rule, message)
    yield from _iter_files(statements, places)


def _iter_files(statements: Sequence[Statement], places: Places) -> Iterator[Finding]:
    """Yield what ranks have found in files that only they can read."""
    for severity in (ERROR, UNKNOWN, WARNING):
        kinds: Dict[str, List[Statement]] = {}
        for statement in statements:
            found = statement.get("files", {}).get(severity)
            if found:
                kinds.setdefault(found, []).append(statement)
        rest: List[Statement] = []
        for number, (found, members) in enumerate(kinds.items()):
            if number < SHOWN:
                yield _make_file_finding(severity, f"{places.describe(members)}: {found}")
            else:
                rest += members
        if rest:
            message = f"{places.describe(rest)}: other files are not as recorded"
            yield _make_file_finding(severity, message)


def _make_file_finding(severity: Severity, message: str) -> Finding:
    finding = make_finding("rank-files", message)
    finding.severity = severity
    return finding


def has_wrong_files(statement: Statement) -> bool:
    """Return whether a rank has found files that are not as recorded, or could not read them."""
    return not {ERROR, UNKNOWN}.isdisjoint(statement.get("files", {}))


def is_beyond(statement: Statement, size: int) -> bool:
    """Return whether a rank belongs to a job of another size."""
    return bool(statement["rank"] >= size or statement.get("size") not in (None, size))


def _iter_loose_ranks(statements: Sequence[Statement], places: Places) -> Iterator[Finding]:
    """Yield findings on ranks that continue in any case while others do not, or on a job in which
    no rank checks anything.
    """
    loose = [each for each in statements if each["mode"] not in ENFORCING]
    if len(loose) < len(statements):
        for members in group_by(loose, lambda each: each["mode"]):
            mode = f"ENVLOCK_MODE={members[0]['mode']}"
            message = f"{places.describe(members)}: {mode}, while other ranks enforce"
            yield make_finding("rank-mode", message)
    elif loose and not any(each["root"] for each in statements):
        finding = make_finding("rank-mode", "ENVLOCK_MODE=off on all ranks: nothing is compared")
        finding.severity = UNKNOWN
        yield finding


def group_failures(statements: Sequence[Statement]) -> List[Members]:
    """Return the ranks that could not collect their facts, grouped by cause."""
    failed = [each for each in statements if _has_failed(each)]
    return group_by(failed, _get_cause)


def _has_failed(statement: Statement) -> bool:
    if statement["root"]:
        return False
    # A rank with the mode `off` has collected no facts, which does not count as a failure unless it
    # says so.
    return statement["mode"] != OFF or bool(statement.get("problem"))


def _get_cause(statement: Statement) -> str:
    """Return why a rank has failed, without what is specific to it: its node, paths, and numbers."""
    text = str(statement.get("problem")).replace(statement["node"], "NODE")
    text = re.sub(r"[^\s'\"`]*/[^\s'\"`:]*", "PATH", text)
    return re.sub("0x[0-9a-f]+|[0-9]+", "NUMBER", text)


def count_reasons(members: Members) -> Dict[str, int]:
    """Return the number of ranks for each reason, in their own words; that of the lowest rank
    first.
    """
    numbers: Dict[str, int] = {}
    for member in sorted(members, key=_get_rank):
        reason = member.get("problem") or "no reason given"
        numbers[reason] = numbers.get(reason, 0) + 1
    return numbers


def _get_rank(statement: Statement) -> int:
    return int(statement["rank"])


def _iter_failures(causes: Sequence[Members], places: Places) -> Iterator[Finding]:
    """Yield a finding for each of the first causes, with the words of its lowest rank, and one for
    all others.
    """
    for members in causes[:SHOWN]:
        reason, *others = count_reasons(members)
        if others:
            reason += f" (and {count(len(others), 'similar reason')})"
        message = f"{places.describe(members)}: cannot report: {reason}"
        yield make_finding("rank-failed", message)
    rest: Members = []
    for members in causes[SHOWN:]:
        rest += members
    if rest:
        number = count(len(causes) - SHOWN, "other reason")
        yield make_finding("rank-failed", f"{places.describe(rest)}: cannot report: {number}")
