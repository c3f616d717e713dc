"""Statements of ranks for tests: snapshots with a few facts, each change said."""

from __future__ import annotations

from typing import Any

from envlock.fleet.ranks import Rank
from envlock.fleet.statement import make_statement
from envlock.runtime.collectors import Snapshot
from tests.locks import document

Made = tuple[Any, Any]


def facts(**environ: str | None) -> dict[str, Any]:
    """Return the facts of a machine, with variables."""
    return {
        "python": {"version": "3.11.7"},
        "packages": {"numpy": {"version": "1.26.4"}},
        "cpu": {"affinity_count": 2, "intra_op_threads": 2, "inter_op_threads": 2},
        "environ": {"TF_ENABLE_ONEDNN_OPTS": None, "CUDA_VISIBLE_DEVICES": None, **environ},
    }


def rank(number: int, size: int = 8, *, per_node: int = 2, job: str = "7.0", **changes: Any) -> Made:
    """Return the statement and the document of a rank."""
    lock, launch, proven, rules = (changes.pop(name, None) for name in ("lock", "launch", "proven", "rules"))
    policy, overrides = changes.pop("policy", ""), changes.pop("overrides", True)
    found = changes.pop("facts", None) or facts(**changes)
    who = Rank(number, size, f"n{number // per_node + 1}", job)
    made: Made = make_statement(
        who,
        Snapshot(found, {}),
        launch or {},
        lock or "",
        rules,
        policy=policy,
        overrides=overrides,
        proven=bool(proven),
    )
    return made


def lockfile(**changes: Any) -> dict[str, Any]:
    """Return a lockfile with the facts of the ranks."""
    return document(**{"facts": facts(), "unavailable": {}, **changes})
