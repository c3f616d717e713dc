"""Ranks meet by MPI, where the program itself has imported mpi4py: MPI is never started behind its back.

Messages go from each rank to rank 0 and back. No collective operation is used, as none has a time limit.
"""

from __future__ import annotations

import sys
import time

from envlock.runtime.errors import UsageError
from envlock.runtime.fleet.ranks import OWN, Rank, rank_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Dict, List, Mapping, Optional

TAG = 30211  # below the 32767 that every MPI has
LOST = 4  # the exit code of a job that has lost a rank
FIRST_END, OTHER_END = 0.5, 2.0
"""Seconds that rank 0, and each other rank, leaves all ranks to come to their ends before it aborts the job: mpirun of
Open MPI 5.0.11 can hang where one aborts while others are in MPI_Finalize."""

_inbox: Dict[str, Any] = {}
"""What this process has received: a message of the next call can overtake the end of this one."""

_sent: List[Any] = []
"""Messages on their way, which need their memory until then."""


class Mail:
    """The board: what rank 0 posts is sent to all others, and what another rank posts to rank 0."""

    is_mortal = True  # a message can be lost with the process that sends it

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        self._comm = mpi.COMM_WORLD

    def post(self, name: str, value: Any) -> None:
        """Send a value."""
        comm = self._comm
        to = range(1, comm.Get_size()) if comm.Get_rank() == 0 else [0]
        _sent[:] = [each for each in _sent if not each.test()[0]]
        _sent.extend([comm.isend((name, value), dest=rank, tag=TAG) for rank in to])

    def peek(self, name: str) -> Any:
        """Return a value; None where it has not arrived."""
        self.names()
        return _inbox.get(name)

    def names(self) -> Collection[str]:
        """Return which values have arrived."""
        while self._comm.iprobe(source=self._mpi.ANY_SOURCE, tag=TAG):
            name, value = self._comm.recv(source=self._mpi.ANY_SOURCE, tag=TAG)
            _inbox[name] = value
        return _inbox

    def give_up(self) -> None:
        """End the job when this process ends: MPI_Finalize would wait for the rank that is lost."""
        import atexit

        atexit.register(self._end)

    def _end(self) -> None:
        time.sleep(FIRST_END if self._comm.Get_rank() == 0 else OTHER_END)
        self._comm.Abort(LOST)


def world(*, required: bool) -> Optional[Any]:
    """Return mpi4py's module `MPI`, where the program has started MPI; else None.

    Raises:
        UsageError: it is required, and the program has not.
    """
    found: Any = sys.modules.get("mpi4py.MPI")
    if found is not None and found.Is_initialized() and not found.Is_finalized():
        return found
    if required:
        raise UsageError("MPI is not running in this process", hint="import mpi4py.MPI before, or use engine `files`")
    return None


def rank_in(mpi: Any, environ: Mapping[str, str], host: str) -> Rank:
    """Return which rank this process is, as MPI numbers it."""
    comm = mpi.COMM_WORLD
    return rank_of({**environ, OWN["rank"]: str(comm.Get_rank()), OWN["size"]: str(comm.Get_size())}, host)
