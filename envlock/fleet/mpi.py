"""MPI, if the program itself has imported mpi4py: envlock never starts MPI itself."""

from __future__ import annotations

import atexit
import sys
import time

from envlock.fleet.ranks import OWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

LOST = 4
"""The exit code of a job that has lost a rank."""
FIRST_END, OTHER_END = 0.5, 2.0
"""Seconds that rank 0, and each other rank, waits for all ranks to end before it aborts the job:
mpirun of Open MPI 5.0.11 can hang if one rank aborts while others are in MPI_Finalize.
"""


def get_numbers() -> Dict[str, str]:
    """Return the number of this process and of all, as the variables that say so; empty where MPI
    does not connect it with others.

    `srun` without `--mpi`, or the mpiexec of another MPI, makes each process the only one of its
    MPI: then the launcher numbers them.
    """
    mpi = _find_mpi()
    if mpi is None or mpi.COMM_WORLD.Get_size() == 1:
        return {}
    rank, size = mpi.COMM_WORLD.Get_rank(), mpi.COMM_WORLD.Get_size()
    return {OWN["rank"]: str(rank), OWN["size"]: str(size)}


def abort_at_end() -> None:
    """End the job when this process ends: MPI_Finalize would wait for the rank that is lost."""
    mpi = _find_mpi()
    if mpi is not None:
        atexit.register(_abort, mpi.COMM_WORLD)


def _abort(world: Any) -> None:
    seconds = FIRST_END if world.Get_rank() == 0 else OTHER_END
    time.sleep(seconds)
    world.Abort(LOST)


def _find_mpi() -> Optional[Any]:
    """Return mpi4py's module `MPI` if the program has started MPI, else None."""
    found: Any = sys.modules.get("mpi4py.MPI")
    if found is not None and found.Is_initialized() and not found.Is_finalized():
        return found
    return None
