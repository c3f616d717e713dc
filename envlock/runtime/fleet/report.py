"""What a launcher starts as each rank: a statement for a shared folder, or a command that all ranks become or none."""

from __future__ import annotations

import os

from envlock.runtime.errors import FactError, UsageError
from envlock.runtime.fleet.assertion import gathered, looked, place
from envlock.runtime.fleet.folder import Folder
from envlock.runtime.fleet.ranks import OWN, rank_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Sequence


def report(to: Optional[str] = None, lock: Optional[str] = None, job: Optional[str] = None) -> None:
    """Write the statement of this process, and its facts unless another rank has; nothing where it is no rank.

    Args:
        to: the folder that all nodes share; as for `assert_fleet()` if not given.
        lock: the lockfile; the nearest one, if any, when not given.
        job: the name of the job; the launcher's if not given.

    Raises:
        UsageError: no launcher says which rank this is, or the job has no name.
        WriteError: the folder cannot be written.
        FactError: the facts cannot be stated; the folder has the reason, too.
    """
    rank = rank_of({**os.environ, OWN["job"]: job} if job else os.environ, os.uname().nodename)
    if rank.is_aside:
        return
    folder = Folder(to, rank.job)
    statement, document = looked(rank, lock)[1]
    folder.keep(statement, document)
    if statement.get("problem"):
        raise FactError(f"rank {rank.rank} cannot report: {statement['problem']}")


def become(
    command: Sequence[str],
    to: Optional[str] = None,
    lock: Optional[str] = None,
    policy: Optional[str] = None,
    timeout: float = 120.0,
) -> int:
    """Become the command where all ranks are alike and as locked; else rank 0 says why; return the exit code.

    Raises:
        UsageError: no launcher says which rank of how many this is, the job has no name, or the command cannot be run.
        WriteError: the folder cannot be written.
    """
    found = gathered(*place("files", to, os.environ), lock, policy, timeout)
    if found.exit_code:
        return found.exit_code
    try:
        os.execvp(command[0], list(command))  # noqa: S606 (the point: no shell)
    except OSError as error:
        raise UsageError(
            f"cannot run `{command[0]}`: {error.strerror}", hint="check its spelling and PATH"
        ) from None
