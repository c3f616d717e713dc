"""What a launcher starts as each rank: a statement for a shared folder, or a command that all ranks become or none."""

from __future__ import annotations

import os

from envlock.runtime.assertion import say
from envlock.runtime.errors import FactError, UsageError
from envlock.runtime.fleet.folder import Folder
from envlock.runtime.fleet.ranks import OWN, Rank, rank_of
from envlock.runtime.fleet.statement import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Sequence

STDOUT = "-"


def report(to: str, lock: Optional[str] = None, job: Optional[str] = None) -> str:
    """Write the statement of this process, and its facts unless another rank has; return it as JSON.

    Args:
        to: the folder that all nodes share; `-` writes to no folder.
        lock: the lockfile; the nearest one, if any, when not given.
        job: the name of the job; the launcher's if not given.

    Raises:
        UsageError: no launcher says which rank this is, or the job has no name.
        WriteError: the folder cannot be written.
        FactError: the facts cannot be stated; the folder has the reason, too.
    """
    from envlock.runtime.fleet.assertion import looked

    rank = _this_rank(job)
    folder = None if to == STDOUT else Folder(to, rank.job)
    statement, document = looked(rank, lock)[1]
    if folder is not None:
        folder.keep(statement, document)
    if statement.get("problem"):
        raise FactError(f"rank {rank.rank} cannot report: {statement['problem']}")
    return canonical(statement)


def become(
    command: Sequence[str],
    to: str,
    lock: Optional[str] = None,
    policy: Optional[str] = None,
    job: Optional[str] = None,
    timeout: float = 120.0,
) -> int:
    """Become the command where all ranks are alike and as locked; else rank 0 says why; return the exit code.

    Raises:
        UsageError: no launcher says which rank of how many this is, the job has no name, or the command cannot be run.
        WriteError: the folder cannot be written.
    """
    from envlock.runtime.fleet.assertion import SILENT, gathered
    from envlock.runtime.fleet.meeting import meet

    rank = _this_rank(job)
    if rank.size is None:
        raise UsageError("cannot find how many ranks the job has", hint=f"set {OWN['size']}")
    size, board = rank.size, Folder(to, rank.job)
    found = gathered(
        rank, lambda mine, decide, limit: meet(board, rank.rank, size, mine, decide, limit), lock, policy, timeout
    )
    if not found.match:
        if found.headline.startswith(SILENT):
            say(found.headline)
        return found.exit_code
    try:
        os.execvp(command[0], list(command))  # noqa: S606 (the point: no shell)
    except OSError as error:
        raise UsageError(f"cannot run `{command[0]}`: {error.strerror}", hint="check its spelling and PATH") from None


def _this_rank(job: Optional[str]) -> Rank:
    return rank_of({**os.environ, OWN["job"]: job} if job else os.environ, os.uname().nodename)
