"""The canary on each node of a job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envlock.fleet.bits import bits
from envlock.guest import launch
from envlock.numerics.canary.run import asked_of, heard_from
from envlock.runtime.errors import FactError
from envlock.runtime.fleet import folder
from envlock.runtime.fleet.node_names import node_list
from envlock.runtime.policy import DEFAULT, Policy
from envlock.runtime.report import Report, ranked
from envlock.runtime.verify import policy_of
from envlock.workflows.canary import settings_of
from envlock.workflows.locks import lock_of

BITS = 300.0  # seconds for TensorFlow to be imported on all nodes, and for the canary


def bits_words(place: Path, lock: str | None) -> list[str]:
    """Return the arguments that let one rank of each node compute the canary, as the lockfile's was computed.

    Args:
        place: the folder of the job, with the statements of its ranks.
        lock: the lockfile; None where there is none.

    Raises:
        LockfileError: the lock is missing, unreadable, invalid, or newer than this envlock.
    """
    statements, _ = folder.kept(str(place.parent), place.name)
    first = {each["node"]: each["rank"] for each in reversed(statements)}
    battery = asked_of(settings_of(None if lock is None else lock_of(lock).numerics))
    return launch.module("bits", {"folder": str(place.absolute()), "ranks": sorted(first.values()), "battery": battery})


def add_bits(report: Report, place: Path, lock: str | None, policy: str | None, argv: Sequence[str]) -> None:
    """Let a launcher compute the canary, and add to a report which nodes have other bits.

    Those are other bits than the lockfile's, or else than those of most nodes.

    Args:
        report: that on the facts.
        place: the folder of the job, with the results.
        lock: the lockfile; None where there is none.
        policy: how closely to compare; the lockfile's own when not given.
        argv: the command line of the launcher, with `bits_words`.

    Raises:
        FactError: a node has no result, or none that can be read.
    """
    ended = launch.ask(argv[1:], Path(argv[0]), timeout=BITS)
    model = None if lock is None else lock_of(lock)
    locked = None if model is None else model.numerics
    nodes = {each["rank"]: each["node"] for each in folder.kept(str(place.parent), place.name)[0]}
    found = {}
    for rank, node in nodes.items():
        file = place / f"bits-{rank}.txt"
        if file.exists():
            found[node] = heard_from(launch.Ended(0, file.read_bytes(), b"", 0), settings_of(locked))
    lost = set(nodes.values()) - set(found)
    if lost:
        said = f"{Path(argv[0]).name} {ended.ending}"
        raise FactError(f"the canary did not run on {node_list(lost)}: {said}", hint="run `envlock canary` there")
    rules = Policy(policy or DEFAULT) if model is None else policy_of(model.to_document(), policy)
    differing, note = bits(found, locked, rules)
    if report.match and differing:
        report.headline += ", and other bits"
    report.findings = ranked([*report.findings, *differing])
    report.notes.append(note)
