"""Ranks meet with MPI if the program itself has imported mpi4py: envlock never starts MPI itself.

Messages go from each rank to rank 0 and back. No collective operation is used, because none has a
time limit.
"""

from __future__ import annotations

import atexit
import sys
import time

from envlock.fleet.problems import COMMAND, WHERE
from envlock.fleet.ranks import OWN, Disagreement, Rank, find_rank, get_sources
from envlock.fleet.statement import canonical
from envlock.runtime import strict_json
from envlock.runtime.errors import UsageError
from envlock.runtime.report import ERROR, Finding, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

TAG = 30211
"""Below 32767, the limit that every MPI has at least."""
SOURCE = "docs/guides/fleet/mpi.md"
LOST = 4
"""The exit code of a job that has lost a rank."""
FIRST_END, OTHER_END = 0.5, 2.0
"""Seconds that rank 0, and each other rank, waits for all ranks to end before it aborts the job:
mpirun of Open MPI 5.0.11 can hang if one rank aborts while others are in MPI_Finalize.
"""

_inbox: Dict[str, object] = {}
"""Messages that this process has received: one of the next call can overtake the end of this call."""

_sent: List[Tuple[Any, bytes]] = []
"""Messages being sent, with the memory that they need until then."""


class Mail:
    """The board: a value that rank 0 posts is sent to all others, and a value that another rank
    posts is sent to rank 0.

    Messages are JSON, because unpickling can run code. Rank 0 decides which value counts, because
    no name is common to all ranks.
    """

    is_mortal = True  # a message can be lost together with the process that sends it

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        self._comm = mpi.COMM_WORLD

    def post(self, name: str, value: object) -> None:
        """Send a value."""
        ranks: Iterable[int] = [0]
        if self._comm.Get_rank() == 0:
            ranks = range(1, self._comm.Get_size())
        self._send(name, value, ranks)

    def hand(self, name: str, value: object, ranks: Sequence[int]) -> str:
        """Send a value to some ranks."""
        own = self._comm.Get_rank()
        if own in ranks:
            _inbox[name] = value
        self._send(name, value, [rank for rank in ranks if rank != own])
        return ""

    def _send(self, name: str, value: object, ranks: Iterable[int]) -> None:
        data = canonical([name, value]).encode("ascii")
        # The memory of messages that have arrived is released.
        _sent[:] = [message for message in _sent if not message[0].Test()]
        for rank in ranks:
            request = self._comm.Isend([data, self._mpi.BYTE], dest=rank, tag=TAG)
            _sent.append((request, data))

    def settle(self, name: str, value: object) -> bool:
        """Send a value unless one has arrived; return whether this one counts.

        An answer of rank 0 is for rank 0 itself.
        """
        is_leader = self._comm.Get_rank() == 0
        arrived = self.peek(name)
        if is_leader and "/" in name:
            return True
        if arrived is None:
            self.post(name, value)
            return True
        # A value that another rank has settled reached only rank 0, which passes it on to all.
        if is_leader:
            self.post(name, arrived)
        return False

    def peek(self, name: str) -> object:
        """Return a value; None if it has not arrived."""
        self._receive()
        return _inbox.get(name)

    def names(self, folder: str = "") -> Collection[str]:
        """Return the names of the values that have arrived in a folder of names."""
        self._receive()
        start = f"{folder}/" if folder else ""
        return [name[len(start) :] for name in _inbox if name.startswith(start)]

    def _receive(self) -> None:
        status = self._mpi.Status()
        while self._comm.Iprobe(source=self._mpi.ANY_SOURCE, tag=TAG, status=status):
            data = bytearray(status.Get_count(self._mpi.BYTE))
            self._comm.Recv([data, self._mpi.BYTE], source=status.Get_source(), tag=TAG)
            try:
                name, value = strict_json.parse(bytes(data))
            except (TypeError, ValueError):  # not a message of envlock
                continue
            if isinstance(name, str):
                _inbox[name] = value

    def give_up(self) -> None:
        """End the job when this process ends: MPI_Finalize would wait for the rank that is lost."""
        atexit.register(self._end)

    def _end(self) -> None:
        seconds = FIRST_END if self._comm.Get_rank() == 0 else OTHER_END
        time.sleep(seconds)
        self._comm.Abort(LOST)


def find_world(*, required: bool) -> Optional[Any]:
    """Return mpi4py's module `MPI` if the program has started MPI, else None.

    Raises:
        UsageError: it is required, and the program has not started it.
    """
    found: Any = sys.modules.get("mpi4py.MPI")
    if found is not None and found.Is_initialized() and not found.Is_finalized():
        return found
    if required:
        raise UsageError(
            "MPI is not running in this process",
            hint="import mpi4py.MPI before, or use engine `files`",
        )
    return None


def rank_in(mpi: Any, environ: Mapping[str, str], host: str) -> Rank:
    """Return the rank of this process as MPI numbers it.

    Raises:
        Disagreement: the launcher gives it another number.
        UsageError: MPI has only this process, and the launcher does not say how many it has
            started.
    """
    comm = mpi.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    sources = get_sources(environ)
    _check_numbers({"rank": rank, "size": size}, sources)
    # The launcher may have started many processes that MPI does not know of.
    if size == 1 and "rank" in sources and "size" not in sources:
        raise UsageError("cannot find how many ranks the job has", hint=f"set {OWN['size']}")
    return find_rank({**environ, OWN["rank"]: str(rank), OWN["size"]: str(size)}, host)


def _check_numbers(numbers: Mapping[str, int], sources: Mapping[str, Tuple[str, str]]) -> None:
    """Raise Disagreement if a variable of the launcher has a rank or size other than MPI's."""
    differs = False
    words = []
    for key, number in numbers.items():
        if key in sources:
            value, variable = sources[key]
            words.append(f"{variable} says {key} {value}")
            differs = differs or value != str(number)
    if differs:
        own = ", ".join([f"{key} {number}" for key, number in numbers.items()])
        message = f"MPI says {own} (COMM_WORLD); {', '.join(words)}"
        is_first = sources.get("rank", ("0", ""))[0] == "0"
        raise Disagreement(_make_report(message), is_first=is_first)


def _make_report(message: str) -> Report:
    """Return the report on different numbers: usually MPI has made each process a world of its own."""
    why = (
        "MPI and the launcher are not connected: "
        "a rank that is alone in its MPI would be compared with no other."
    )
    fix = (
        "Start the job with `srun --mpi=pmix`, or with the mpiexec of the MPI that mpi4py uses; "
        'or let ranks meet in a shared folder: `assert_fleet(engine="files")`.'
    )
    finding = Finding("rank-size", ERROR, WHERE, message=message, why=why, fix=fix, source=SOURCE)
    headline = "does not match: MPI and the launcher number the ranks differently"
    return Report([finding], command=COMMAND, headline=headline)
