"""The canary on each node of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envlock.fleet import folder
from envlock.fleet.node_names import few
from envlock.fleet.node_sets import NAMED
from envlock.fleet.reduction import rules_of
from envlock.guest import launch
from envlock.numerics.canary.node_bits import compare_nodes
from envlock.numerics.canary.run import asked_of, heard_from
from envlock.runtime.errors import FactError
from envlock.runtime.report import Report, ranked
from envlock.workflows.canary import settings_of
from envlock.workflows.locks import lock_of

BITS = 300.0  # seconds for TensorFlow to be imported on all nodes, and for the canary


def bits_asked(place: Path, lock: str | None) -> dict[str, Any]:
    """Return what lets one rank of each node compute the canary, as the lockfile's was computed.

    Args:
        place: the folder of the job, with the statements of its ranks.
        lock: the lockfile; None where there is none.

    Raises:
        LockfileError: the lock is missing, unreadable, invalid, or newer than this envlock.
    """
    battery = asked_of(settings_of(None if lock is None else lock_of(lock).numerics))
    return {
        "folder": str(place.parent),
        "job": place.name,
        "ranks": sorted(_ranks(place).values()),
        "battery": battery,
    }


def _ranks(place: Path) -> dict[str, int]:
    """Return the lowest rank of each node."""
    statements, _ = folder.kept(str(place.parent), place.name)
    return {each["node"]: each["rank"] for each in reversed(statements)}


def add_bits(report: Report, place: Path, lock: str | None, policy: str | None, said: str) -> None:
    """Add to a report which nodes have other bits than the lockfile's, or else than those of most nodes.

    Args:
        report: that on the facts.
        place: the folder of the job, with the results.
        lock: the lockfile; None where there is none.
        policy: how closely to compare; the lockfile's own when not given.
        said: how the launcher of the canary has ended.

    Raises:
        FactError: a node has no result, or none that can be read.
    """
    model = None if lock is None else lock_of(lock)
    locked = None if model is None else model.numerics
    files = {node: place / f"bits-{rank}.txt" for node, rank in _ranks(place).items()}
    lost = [node for node, file in files.items() if not file.exists()]
    if lost:
        raise FactError(
            f"the canary did not run on {few(lost, NAMED)}: {said}",
            hint="run `envlock canary` there",
        )
    answers = {node: launch.Ended(0, file.read_bytes(), b"", 0) for node, file in files.items()}
    found = {node: heard_from(answer, settings_of(locked)) for node, answer in answers.items()}
    differing, note = compare_nodes(
        found, locked, rules_of(None if model is None else model.to_document(), policy)
    )
    if report.match and differing:
        report.headline += ", and other bits"
    report.findings = ranked([*report.findings, *differing])
    report.notes.append(note)
