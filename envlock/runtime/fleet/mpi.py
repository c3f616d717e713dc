"""Ranks meet by MPI, where the program itself has imported mpi4py: MPI is never started behind its back.

Messages go from each rank to rank 0 and back. No collective operation is used, as none has a time limit.
"""

from __future__ import annotations

import sys
import time

from envlock.runtime.errors import UsageError
from envlock.runtime.fleet.meeting import MARGIN, Pause, Silence
from envlock.runtime.fleet.ranks import Rank, rank_of
from envlock.runtime.fleet.statement import is_statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Tuple

    from envlock.runtime.fleet.meeting import Decide, Verdict

CALL, ANSWER, VERDICT = 30211, 30212, 30213  # tags, below the 32767 that every MPI has
LOST = 4  # the exit code of a job that has lost a rank


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
    numbered = {"ENVLOCK_FLEET_RANK": str(comm.Get_rank()), "ENVLOCK_FLEET_SIZE": str(comm.Get_size())}
    found = rank_of({**environ, **numbered}, host)
    found.launcher = found.launcher or "MPI"
    return found


def meet(mpi: Any, mine: Tuple[Any, Any], decide: Decide, timeout: float) -> Verdict:
    """Return the verdict on all ranks, as `meeting.meet` does.

    Raises:
        Silence: rank 0 gave no verdict in time.
    """
    comm = mpi.COMM_WORLD
    deadline = time.monotonic() + timeout
    if comm.Get_rank() == 0:
        return _lead(mpi, mine, decide, deadline - min(MARGIN, timeout / 10))
    try:
        call = _received(comm, 0, CALL, deadline)
        is_other = mine[1] is not None and mine[0]["root"] != call
        sent = comm.isend((mine[0], mine[1] if is_other else None), dest=0, tag=ANSWER)
        verdict: Verdict = _received(comm, 0, VERDICT, deadline)
        sent.wait()
    except Silence:
        _end_with_the_process(mpi)
        raise
    return verdict


def _lead(mpi: Any, mine: Tuple[Any, Any], decide: Decide, deadline: float) -> Verdict:
    comm = mpi.COMM_WORLD
    size = comm.Get_size()
    sent: List[Any] = [comm.isend(mine[0]["root"], dest=rank, tag=CALL) for rank in range(1, size)]
    statements = {0: mine[0]}
    documents: Dict[str, Any] = {mine[0]["root"]: mine[1]} if mine[1] is not None else {}
    pause = Pause(deadline)
    while len(statements) < size:
        while comm.iprobe(source=mpi.ANY_SOURCE, tag=ANSWER):
            statement, document = comm.recv(source=mpi.ANY_SOURCE, tag=ANSWER)
            if is_statement(statement):
                statements[statement["rank"]] = statement
                if document is not None:
                    documents[statement["root"]] = document
        if len(statements) < size and not pause.over():
            break
    verdict = decide([statements[rank] for rank in sorted(statements)], documents)
    sent += [comm.isend(verdict, dest=rank, tag=VERDICT) for rank in range(1, size)]
    if len(statements) < size:
        _end_with_the_process(mpi, sent)
    else:
        for each in sent:
            each.wait()
    return verdict


def _received(comm: Any, source: int, tag: int, deadline: float) -> Any:
    pause = Pause(deadline)
    while not comm.iprobe(source=source, tag=tag):
        if not pause.over():
            raise Silence
    return comm.recv(source=source, tag=tag)


def _end_with_the_process(mpi: Any, unsent: Any = None) -> None:
    """End the job when this process ends: MPI_Finalize would wait for the rank that is lost.

    `unsent` are messages that need their memory until then.
    """
    import atexit

    atexit.register(lambda kept: mpi.COMM_WORLD.Abort(LOST), unsent)
