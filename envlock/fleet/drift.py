"""What has changed on nodes between two jobs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envlock.fleet.node_names import few
from envlock.fleet.node_sets import NAMED, SET_SHOWN
from envlock.runtime.compare import compare
from envlock.runtime.policy import Policy
from envlock.runtime.report import INFO, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.fleet.statement import Document, Statement

    Side = tuple[Sequence[Statement], Mapping[str, Document]]

NAMES = ("then", "now")


def drift(before: Side, after: Side, policy: Policy) -> tuple[list[Finding], list[str]]:
    """Return what differs on nodes that both jobs had, nodes with one change together; and notes on other nodes.

    A node stands for the lowest of its ranks.
    """
    old, new = (_by_node(statements) for statements, _ in (before, after))
    changes: dict[tuple[str, str], list[str]] = {}
    for node in sorted(set(old) & set(new)):
        if old[node] != new[node]:
            changes.setdefault((old[node], new[node]), []).append(node)
    found: list[Finding] = []
    notes: list[str] = []
    for (one, other), nodes in changes.items():
        if one not in before[1] or other not in after[1]:
            notes.append(f"changed, and the facts are missing: {few(nodes, SET_SHOWN)}")
            continue
        sides = [(each["facts"], each["unavailable"]) for each in (before[1][one], after[1][other])]
        for each in compare(sides[0], sides[1], policy, NAMES):
            if each.severity != INFO:
                each.message = f"{few(nodes, NAMED)}: {each.message}"
                found.append(each)
    lists = {"nodes that are new": set(new) - set(old), "nodes that are gone": set(old) - set(new)}
    notes += [f"{title}: {few(nodes, SET_SHOWN)}" for title, nodes in lists.items() if nodes]
    return found, notes


def _by_node(statements: Sequence[Statement]) -> dict[str, str]:
    return {each["node"]: each["root"] for each in reversed(statements) if each["root"]}
