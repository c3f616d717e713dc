"""Changes on nodes between two jobs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envlock.fleet.node_names import few
from envlock.fleet.node_sets import NAMED, SET_SHOWN
from envlock.runtime.compare import compare
from envlock.runtime.policies import Policy
from envlock.runtime.report import INFO, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.fleet.statement import Document, Statement

    Side = tuple[Sequence[Statement], Mapping[str, Document]]

NAMES = ("then", "now")


def compare_jobs(before: Side, after: Side, policy: Policy) -> tuple[list[Finding], list[str]]:
    """Return the differences on nodes that both jobs used, and notes on other nodes.

    Nodes with the same change are grouped. A node is represented by the lowest of its ranks.
    """
    old, new = _get_roots(before[0]), _get_roots(after[0])
    changes: dict[tuple[str, str], list[str]] = {}
    for node in sorted(set(old) & set(new)):
        if old[node] != new[node]:
            changes.setdefault((old[node], new[node]), []).append(node)
    findings: list[Finding] = []
    notes: list[str] = []
    for (one, other), nodes in changes.items():
        if one not in before[1] or other not in after[1]:
            notes.append(f"changed, and the facts are missing: {few(nodes, SET_SHOWN)}")
            continue
        then, now = before[1][one], after[1][other]
        differences = compare(
            (then["facts"], then["unavailable"]), (now["facts"], now["unavailable"]), policy, NAMES
        )
        for finding in differences:
            if finding.severity != INFO:
                finding.message = f"{few(nodes, NAMED)}: {finding.message}"
                findings.append(finding)
    arrived, gone = set(new) - set(old), set(old) - set(new)
    if arrived:
        notes.append(f"nodes that are new: {few(arrived, SET_SHOWN)}")
    if gone:
        notes.append(f"nodes that are gone: {few(gone, SET_SHOWN)}")
    return findings, notes


def _get_roots(statements: Sequence[Statement]) -> dict[str, str]:
    """Return the root of each node: that of its lowest rank which has collected facts."""
    roots: dict[str, str] = {}
    for statement in statements:
        if statement["root"]:
            roots.setdefault(statement["node"], statement["root"])
    return roots
