"""What has changed on nodes since earlier jobs. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from envlock.fleet.node_names import few
from envlock.fleet.node_sets import NAMED, SET_SHOWN
from envlock.fleet.problems import make_finding
from envlock.runtime.compare import compare
from envlock.runtime.policies import Policy
from envlock.runtime.report import INFO, Finding, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.fleet.statement import Document, Statement

    Side = tuple[Sequence[Statement], Mapping[str, Document]]

    Change = tuple[int, str, str]
    """The number of an earlier job, and the root of a node then and now."""

NAMES = ("then", "now")
LONGEST_HISTORY = 100
"""Earlier jobs that are read, the newest: each costs a file a rank."""


def sort_jobs(names: Sequence[str]) -> list[str]:
    """Return jobs in the order of the numbers in their names: `job-9` before `job-10`.

    Dates (`2026-11-25`) and the numbers that launchers give are in the order of time then; the
    clock of a file server is not asked.
    """
    return sorted(names, key=_make_key)


def _make_key(name: str) -> list[tuple[int, int, str]]:
    """Return the words and numbers of a name, numbers before words."""
    key: list[tuple[int, int, str]] = []
    for digits, word in re.findall(r"([0-9]+)|([^0-9]+)", name):
        if digits:
            key.append((0, int(digits), ""))
        else:
            key.append((1, 0, word))
    return key


def compare_jobs(
    before: Sequence[tuple[str, Side]], after: Side, policy: Policy
) -> tuple[list[Finding], list[str]]:
    """Return what differs on nodes of a job since each was last in an earlier one, and notes.

    Nodes with one change are together. A node stands for the lowest of its ranks.

    Args:
        before: the earlier jobs and their names, the oldest first.
        after: the job.
        policy: what counts as a difference.
    """
    past = [_get_roots(statements) for _, (statements, _) in before]
    new = _get_roots(after[0])
    changes: dict[Change, list[str]] = {}
    arrived: list[str] = []
    for node in sorted(new):
        last = _find_last(past, node)
        if last is None:
            arrived.append(node)
        elif past[last][node] != new[node]:
            changes.setdefault((last, past[last][node], new[node]), []).append(node)
    findings: list[Finding] = []
    for (last, one, other), nodes in changes.items():
        job, side = before[last]
        names = NAMES
        if len(before) > 1:
            names = (f"in job {job}", NAMES[1])
        findings += _compare_roots(nodes, (side[1].get(one), after[1].get(other)), policy, names)
    if len(arrived) == len(new):
        findings.append(
            make_finding("rank-no-earlier-job", "no node of this job was in an earlier one")
        )
    notes: list[str] = []
    if arrived:
        notes.append(f"nodes that are new: {few(arrived, SET_SHOWN)}")
    gone: set[str] = set()
    if past:
        gone = set(past[-1]) - set(new)
    if gone:
        notes.append(f"nodes that are gone: {few(gone, SET_SHOWN)}")
    return findings, [*notes, *_describe_history([name for name, _ in before], past, new)]


def _compare_roots(
    nodes: Sequence[str],
    documents: tuple[Document | None, Document | None],
    policy: Policy,
    names: tuple[str, str],
) -> list[Finding]:
    """Return what differs between the facts of two roots, as findings on nodes."""
    then, now = documents
    if then is None or now is None:
        # Roots tell that something has changed; what, and whether it matters, is lost.
        return [
            make_finding("rank-facts-missing", f"{few(nodes, NAMED)}: changed, facts are missing")
        ]
    findings = []
    differences = compare(
        (then["facts"], then["unavailable"]), (now["facts"], now["unavailable"]), policy, names
    )
    for finding in differences:
        if finding.severity != INFO:
            finding.message = f"{few(nodes, NAMED)}: {finding.message}"
            findings.append(finding)
    return findings


def _find_last(past: Sequence[Mapping[str, str]], node: str) -> int | None:
    """Return the number of the newest job that a node was in; None where it was in none."""
    for number in reversed(range(len(past))):
        if node in past[number]:
            return number
    return None


def _describe_history(
    names: Sequence[str], past: Sequence[Mapping[str, str]], new: Mapping[str, str]
) -> list[str]:
    """Return notes on nodes that changed between earlier jobs, those with one history together."""
    histories: dict[str, list[str]] = {}
    for node in sorted(new):
        jobs = [number for number in range(len(past)) if node in past[number]]
        turns: list[tuple[int, int]] = []
        for place in range(1, len(jobs)):
            earlier, later = jobs[place - 1], jobs[place]
            if past[earlier][node] != past[later][node]:
                turns.append((earlier, later))
        if not turns:
            continue
        earlier, later = turns[-1]
        times = count(len(turns), "time")
        note = f"changed {times} in {count(len(jobs), 'earlier job')}, "
        note += f"last between {names[earlier]} and {names[later]}"
        if past[jobs[-1]][node] != new[node]:
            same = [number for number in jobs if past[number][node] == new[node]]
            if same:
                note += f"; now again as in {names[same[-1]]}"
        histories.setdefault(note, []).append(node)
    return [f"{few(nodes, NAMED)}: {note}" for note, nodes in histories.items()]


def _get_roots(statements: Sequence[Statement]) -> dict[str, str]:
    """Return the root of each node: that of its lowest rank which has collected facts."""
    roots: dict[str, str] = {}
    for statement in statements:
        if statement["root"]:
            roots.setdefault(statement["node"], statement["root"])
    return roots
