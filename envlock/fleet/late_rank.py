"""`assert_late_rank()`: a rank that joins a job after its ranks were compared."""

from __future__ import annotations

import os
import time

from envlock.fleet import refusals
from envlock.fleet.check_settings import read_policy
from envlock.fleet.fleet_assertion import TIMEOUT, Verdict, enforce, get_mode, inspect_rank
from envlock.fleet.folder import FACTS, Folder
from envlock.fleet.meeting import Pause, get_nonce
from envlock.fleet.ranks import OWN, find_rank
from envlock.fleet.reduction import reduction
from envlock.fleet.statement import is_document, is_statement, root_of
from envlock.runtime import assertion
from envlock.runtime.assertion import OFF
from envlock.runtime.judgement import has_overrides_enabled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Tuple, Union

    from envlock.fleet.statement import Document, Statement
    from envlock.runtime.report import Report

    Path = Union[str, os.PathLike[str]]

    Reference = Tuple[Statement, Dict[str, Document]]
    """The statement of rank 0, and its facts by root."""


def assert_late_rank(
    path: Optional[Path] = None,
    policy: Optional[str] = None,
    *,
    job: Optional[str] = None,
    folder: Optional[Path] = None,
    node: Optional[str] = None,
    timeout: float = TIMEOUT,
) -> Optional[Report]:
    """Return the report if a process that joins a job has the environment of its ranks; else raise.

    For workers that an autoscaler adds after `assert_fleet(folder=...)` has let the others start:
    this one is compared with the lockfile, and with the statement of rank 0 there. The others do
    not learn about it. A verdict counts as long as one of the first ranks still runs: it may be
    left from an earlier job of the same name. The folder's file system must have locks (flock).

    Args:
        path, policy: as for `assert_fleet()`.
        job, folder: those that the ranks met under; else `$ENVLOCK_FLEET_JOB` or the launcher's
            job, and `$ENVLOCK_FLEET_DIR` or `.envlock-fleet`.
        node: the name of the machine.
        timeout: seconds to wait for the verdict on the ranks.

    Returns:
        The report; None if `ENVLOCK_MODE=off` switched the check off.

    Raises:
        EnvironmentMismatch: the environment differs, the job's ranks have refused, or there is no
            verdict in time. The report is on stderr.
        UsageError: the job has no name, or other users can write to its folder.
        WriteError: the folder cannot be created.
    """
    environ = {**os.environ, OWN["rank"]: "1", OWN["size"]: "2"}
    for key, value in {"job": job, "node": node}.items():
        if value is not None:
            environ[OWN[key]] = value
    where = os.fspath(folder) if folder is not None else None
    rank = find_rank(environ, os.uname().nodename)
    board = Folder(where, rank.job)
    mode = get_mode()
    policy = read_policy(policy, os.environ)
    lock, (statement, document) = inspect_rank(rank, path, mode, policy)
    found = _read_verdict(board, timeout)
    if not isinstance(found, tuple):
        return _conclude(found, mode)
    reference, documents = found
    if document is not None:
        documents[statement["root"]] = document
    report, _ = reduction(
        [{**reference, "size": 2}, statement],
        documents,
        2,
        lock,
        policy,
        overrides=has_overrides_enabled(),
    )
    return _conclude(report, mode)


def _conclude(report: Report, mode: str) -> Optional[Report]:
    """Return the report, or print it and refuse, depending on the mode."""
    if not report.match and mode != OFF:
        assertion.say(report.to_text())
    decision = {"by": 1, "enforced": mode in assertion.ENFORCING, "report": report.to_json()}
    return enforce(Verdict(decision, "this rank has printed the report"), mode, is_speaker=True)


def _read_verdict(board: Folder, timeout: float) -> Union[Report, Reference]:
    """Return the statement of rank 0 if the ranks of a job have started, else the report on why
    this rank must not start.
    """
    pause = Pause(time.monotonic() + timeout)
    has_ended = False
    while True:
        nonce = get_nonce(board.peek("call"))
        decision: Any = board.peek(f"{nonce}.decision") if nonce else None
        if isinstance(decision, dict) and "again" not in decision:
            found = _read_reference(board, nonce, decision)
            # A verdict outlives its job: only ranks that still live can be joined.
            if not isinstance(found, tuple) or board.is_held(nonce):
                return found
            has_ended = True
        if not pause.wait():
            if has_ended:
                return refusals.report_ended_job(board.path)
            return refusals.report_no_job(board.path, timeout)


def _read_reference(
    board: Folder, nonce: str, decision: Dict[str, Any]
) -> Union[Report, Reference]:
    report: Any = decision.get("report")
    if not isinstance(report, dict) or report.get("match") is not True:
        return refusals.report_refused_job(board.path)
    statement = board.peek(f"{nonce}/0")
    if not is_statement(statement):
        return refusals.report_no_job(board.path, 0)
    document = board.peek(FACTS + statement["root"])
    if not is_document(document) or root_of(document) != statement["root"]:
        return refusals.report_no_job(board.path, 0)
    return statement, {statement["root"]: document}
