"""Which nodes of a job compute the same bits, and which operation does not on which node. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from envlock.fleet.node_names import few
from envlock.fleet.node_sets import NAMED
from envlock.lock.numerics import Numerics
from envlock.numerics.canary.compare import compare, findings, on_cpu
from envlock.numerics.canary.run import FATAL
from envlock.runtime.policy import Policy
from envlock.runtime.report import Finding


def bits(
    found: Mapping[str, Numerics], locked: Numerics | None, policy: Policy
) -> tuple[list[Finding], str]:
    """Return what nodes compute otherwise than the lockfile's canary, or else than most nodes; and a sentence.

    Args:
        found: the canary by node.
        locked: that of the lockfile; None where it has none.
        policy: how closely to compare.
    """
    alike: dict[str, list[str]] = {}
    for node, numerics in sorted(found.items()):
        alike.setdefault(numerics.model_dump_json(), []).append(node)
    groups = sorted(alike.values(), key=lambda nodes: -len(nodes))
    base = _by_ranks(found[groups[0][0]] if locked is None else locked)
    against = "the lockfile" if locked is not None else few(groups[0], NAMED)
    differing = []
    for nodes in groups if locked is not None else groups[1:]:
        for each in findings(compare(base, _by_ranks(found[nodes[0]])), policy):
            each.message = f"{few(nodes, NAMED)}: {each.message}"
            differing.append(each)
    kinds = "the same bits on all nodes" if len(groups) == 1 else f"{len(groups)} different results"
    return differing, f"canary on {len(found)} nodes, compared with {against}: {kinds}"


def _by_ranks(numerics: Numerics) -> Numerics:
    """Return what ranks compute of a canary: on the processor, no group that can end the job, and no program."""
    groups = {
        name: group for name, group in numerics.groups.items() if on_cpu(name) and name != FATAL
    }
    return numerics.model_copy(update={"groups": groups, "program": None})
