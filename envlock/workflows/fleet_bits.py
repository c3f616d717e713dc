"""The canary on each node of a job."""

from __future__ import annotations

from pathlib import Path

from envlock.fleet import folder
from envlock.fleet.node_names import few
from envlock.fleet.node_sets import NAMED
from envlock.fleet.reduction import choose_policy
from envlock.guest import launch
from envlock.numerics.canary.canary_run import make_request, read_answers
from envlock.numerics.canary.node_bits import compare_nodes
from envlock.runtime.errors import FactError
from envlock.runtime.report import Report, sort_findings
from envlock.workflows.canary import get_settings
from envlock.workflows.locks import load_lock

BITS = 300.0  # seconds for TensorFlow to be imported on all nodes, and for the canary


def make_bits_request(place: Path, lock: str | None) -> dict[str, object]:
    """Return the request that makes one rank of each node compute the canary, as the lockfile's was
    computed.

    Args:
        place: the folder of the job, with the statements of its ranks.
        lock: the lockfile; None without one.

    Raises:
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
    """
    locked = load_lock(lock).numerics if lock is not None else None
    battery = make_request(get_settings(locked))
    return {
        "folder": str(place.parent),
        "job": place.name,
        "ranks": sorted(_find_lowest_ranks(place).values()),
        "battery": battery,
    }


def _find_lowest_ranks(place: Path) -> dict[str, int]:
    """Return the lowest rank of each node, which computes the canary for the node."""
    statements, _ = folder.read_statements(str(place.parent), place.name)
    lowest: dict[str, int] = {}
    for statement in statements:
        lowest.setdefault(statement["node"], statement["rank"])
    return lowest


def add_bits(
    report: Report, place: Path, lock: str | None, policy: str | None, ending: str
) -> None:
    """Add to a report the nodes whose bits differ from the lockfile's or, without a lockfile, from
    those of most nodes.

    Args:
        report: the report on the facts.
        place: the folder of the job, with the results.
        lock: the lockfile; None without one.
        policy: how strictly to compare; the lockfile's own when not given.
        ending: how the launcher of the canary ended.

    Raises:
        FactError: a node has no result, or an unreadable one.
    """
    document = None
    locked = None
    if lock is not None:
        model = load_lock(lock)
        document = model.to_document()
        locked = model.numerics
    files = {node: place / f"bits-{rank}.txt" for node, rank in _find_lowest_ranks(place).items()}
    lost = [node for node, file in files.items() if not file.exists()]
    if lost:
        raise FactError(
            f"the canary did not run on {few(lost, NAMED)}: {ending}",
            hint="run `envlock canary` there",
        )
    found = {}
    for node, file in files.items():
        # A rank writes what a child of this process would print, so that one reader checks both.
        answer = launch.Ended(0, file.read_bytes(), b"", 0)
        found[node] = read_answers(answer, get_settings(locked))
    differing, note = compare_nodes(found, locked, choose_policy(document, policy))
    if report.match and differing:
        report.headline += ", and other bits"
    report.findings = sort_findings([*report.findings, *differing])
    report.notes.append(note)
