"""Which nodes of a job compute the same bits, and which operations differ on which node. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from envlock.fleet.node_names import few
from envlock.fleet.node_sets import NAMED
from envlock.lock.numerics import Numerics
from envlock.numerics.canary.canary_comparison import compare, is_on_cpu, list_findings
from envlock.numerics.canary.canary_run import FATAL
from envlock.runtime.policies import Policy
from envlock.runtime.report import Finding


def compare_nodes(
    found: Mapping[str, Numerics], locked: Numerics | None, policy: Policy
) -> tuple[list[Finding], str]:
    """Return the nodes that compute different bits from the lockfile's canary, or from most nodes,
    as findings; and a sentence.

    Args:
        found: the canary by node.
        locked: that of the lockfile; None if it has none.
        policy: how strictly to compare.
    """
    alike: dict[str, list[str]] = {}
    for node, numerics in sorted(found.items()):
        alike.setdefault(numerics.model_dump_json(), []).append(node)
    groups = sorted(alike.values(), key=lambda nodes: -len(nodes))
    # If the lockfile has no canary, that of most nodes is used instead.
    base, against, others = locked, "the lockfile", groups
    if base is None:
        base, against, others = found[groups[0][0]], few(groups[0], NAMED), groups[1:]
    expected = _select_groups(base)
    differing = []
    for nodes in others:
        for finding in list_findings(compare(expected, _select_groups(found[nodes[0]])), policy):
            finding.message = f"{few(nodes, NAMED)}: {finding.message}"
            differing.append(finding)
    kinds = f"{len(groups)} different results" if len(groups) > 1 else "the same bits on all nodes"
    return differing, f"canary on {len(found)} nodes, compared with {against}: {kinds}"


def _select_groups(numerics: Numerics) -> Numerics:
    """Return the parts of a canary that ranks compute: on the processor, without the group that can
    end the job.
    """
    groups = {
        name: group for name, group in numerics.groups.items() if is_on_cpu(name) and name != FATAL
    }
    return numerics.model_copy(update={"groups": groups, "program": None})
