"""The program that a launcher starts as each rank: it writes a statement to a shared folder, or
becomes a command.

Either all ranks become the command, or none does.
"""

from __future__ import annotations

import os

from envlock.fleet.check_settings import read_policy
from envlock.fleet.fleet_assertion import ATTEMPT, gather_report, inspect_rank, place
from envlock.fleet.folder import Folder
from envlock.fleet.meeting import get_nonce
from envlock.fleet.ranks import OWN, Rank, find_rank
from envlock.fleet.refusal_end import wait_for_readers
from envlock.runtime.errors import FactError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Sequence

    from envlock.fleet.statement import Stated


def write_statement(
    to: Optional[str] = None,
    lock: Optional[str] = None,
    job: Optional[str] = None,
    policy: Optional[str] = None,
) -> None:
    """Write the statement of this process, and its facts unless another rank has written the same.

    Nothing is written if the process is not a rank.

    Args:
        to: the folder that all nodes share; as for `assert_fleet()` if not given.
        lock: the lockfile; the nearest one, if any, when not given.
        job: the name of the job; the launcher's if not given.
        policy: the one that it asks for; that of ENVLOCK_POLICY, or none, when not given.

    Raises:
        UsageError: no launcher says which rank this is, or the job has no name.
        WriteError: the folder cannot be written.
        FactError: the facts cannot be stated; the folder has the reason, too.
    """
    environ = dict(os.environ)
    if job:
        environ[OWN["job"]] = job
    rank = find_rank(environ, os.uname().nodename)
    if rank.is_aside:
        return
    folder = Folder(to, rank.job)
    statement, document = inspect_to_report(rank, lock, policy)
    folder.keep(statement, document)
    if statement.get("problem"):
        raise FactError(f"rank {rank.rank} cannot report: {statement['problem']}")


def inspect_to_report(rank: Rank, lock: Optional[str], policy: Optional[str]) -> Stated:
    """Return the statement and the document of a rank that another process compares."""
    asked = read_policy(policy, os.environ)
    return inspect_rank(rank, lock, policy=asked, does_judge=False)[1]


def become(
    command: Sequence[str],
    to: Optional[str] = None,
    lock: Optional[str] = None,
    policy: Optional[str] = None,
    timeout: float = 120.0,
    *,
    job: Optional[str] = None,
) -> int:
    """Become the command if all ranks are alike and as locked; otherwise rank 0 prints why not.

    With a `job`, ranks meet under that name.

    Returns:
        The exit code, if it has not become the command.

    Raises:
        UsageError: no launcher gives the number of this rank and of all ranks, the job has no name,
            or the command cannot be run.
        WriteError: the folder cannot be written.
    """
    environ = dict(os.environ)
    if job:
        environ[OWN["job"]] = job
    rank, board = place(to, environ)
    policy = read_policy(policy, os.environ)
    verdict = gather_report(rank, board, lock, policy, timeout)
    if verdict.exit_code:
        wait_for_readers(verdict.pause, verdict.exit_code)
        return verdict.exit_code
    if isinstance(board, Folder):
        os.environ[ATTEMPT] = get_nonce(board.peek("call"))
    try:
        os.execvp(command[0], list(command))  # noqa: S606 (the point: no shell)
    except OSError as error:
        raise UsageError(
            f"cannot run `{command[0]}`: {error.strerror}", hint="check its spelling and PATH"
        ) from None
