"""A rank of the jobs of fleet_skew.py: it comes late, can be odd or absent, and writes how it ended.

Any interpreter runs it, with envlock on its path. The variable FLEET_PLAN describes the job.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import envlock

PLAN = "FLEET_PLAN"
NUMBERS = ("ENVLOCK_FLEET_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK")
LOST = 1
"""The rank that never calls where one is absent."""


@dataclass(frozen=True)
class Plan:
    """A job.

    Attributes:
        name: the name of the job.
        folder: where its ranks meet, and write how they ended.
        engine: `mpi` if its ranks import mpi4py.
        size: how many there are.
        skew: seconds between the first and the last call.
        timeout: that of each call.
        kind: `alike`, `odd` (the last rank has another variable) or `absent`.
    """

    name: str
    folder: str
    engine: str
    size: int
    skew: float
    timeout: float
    kind: str


def read_plan() -> Plan:
    """Return the job of this process."""
    return Plan(**json.loads(os.environ[PLAN]))


def find_delay(plan: Plan, rank: int) -> float:
    """Return after how many seconds a rank calls: rank 0 in the middle, the rank before it last."""
    place = (rank + plan.size // 2) % plan.size
    return plan.skew * place / (plan.size - 1)


def take_part(plan: Plan, rank: int, *, is_numbered: bool) -> int:
    """Call `assert_fleet()` as a rank, write how that ended, and return the exit code.

    Args:
        plan: the job.
        rank: the number of this rank.
        is_numbered: whether a launcher's variables say which rank of which job this is.
    """
    time.sleep(find_delay(plan, rank))
    if plan.kind == "absent" and rank == LOST:
        time.sleep(10 * plan.timeout)
        os._exit(0)
    if plan.kind == "odd" and rank == plan.size - 1:
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    folder = f"{plan.folder}/fleet"
    start = time.monotonic()
    end, code = "trained", 0
    try:
        if is_numbered:
            envlock.assert_fleet(timeout=plan.timeout, folder=folder)
        else:
            envlock.assert_fleet(
                timeout=plan.timeout, folder=folder, rank=rank, size=plan.size, job=plan.name
            )
    except envlock.EnvironmentMismatch as error:
        end, code = "refused", error.exit_code
    draft = Path(plan.folder, f".end-{rank}")  # a launcher may kill a rank while it writes
    draft.write_text(f"{end} {code} {time.monotonic() - start:.2f}", encoding="ascii")
    draft.rename(draft.with_name(f"end-{rank}"))
    return code


def main() -> None:
    """Be the rank that a launcher has numbered."""
    plan = read_plan()
    if plan.engine == "mpi":
        import_module("mpi4py.MPI")
    rank = next(int(os.environ[name]) for name in NUMBERS if name in os.environ)
    sys.exit(take_part(plan, rank, is_numbered=True))


if __name__ == "__main__":
    main()
