"""Reports of ranks that do not reach a verdict: why the attempt has failed, and what to check.
Pure.
"""

from __future__ import annotations

from envlock.fleet.problems import COMMAND, MISSING, PARTS, SOURCE, WHERE
from envlock.runtime.report import ERROR, UNKNOWN, Finding, Report

TWICE = "rank-twice"


def report_no_call(timeout: float) -> Report:
    """Return the report of a rank that rank 0 has not called."""
    why = (
        "Rank 0 collects the reports: it has ended, hangs, does not share the meeting place, "
        "or has decided before this rank came."
    )
    fix = (
        "Look for rank 0 in the launcher's log; "
        "check that all nodes share the folder, and start the job again."
    )
    return _make_report(f"no report from rank 0 within {timeout:g} s", why, fix)


def report_no_verdict(node: str, timeout: float) -> Report:
    """Return the report of a rank that has answered rank 0, and has received nothing since."""
    why = (
        "Rank 0 collects the reports: "
        "it has ended or hangs, or its node does not see the files of the others."
    )
    fix = "Look for the end of rank 0 in the launcher's log, and start the job again."
    return _make_report(f"rank 0 ({node}) gave no verdict within {timeout:g} s", why, fix)


def report_interruption(rank: int, node: str, error: BaseException) -> Report:
    """Return the report of a rank that ends while it communicates with the others."""
    if isinstance(error, KeyboardInterrupt):
        message = f"rank {rank} ({node}) was interrupted"
    else:
        message = f"rank {rank} ({node}) failed: {type(error).__name__}: {error}"
    why = "A rank that ends while ranks are compared takes no part in the job."
    return _make_report(message[:300], why, "Remove the cause, and start the job again.")


def report_lost_decision(name: str) -> Report:
    """Return the report of a rank that cannot read a decision although one was made."""
    why = "The meeting place does not answer this rank; the others may have started."
    return _make_report(
        f"the decision {name} cannot be read", why, "Check the folder and its disk on this node."
    )


def report_decided(timeout: float, said: str) -> Report:
    """Return the report of a rank that came after the decision on its job.

    Args:
        timeout: how long it has waited for another call of rank 0.
        said: the headline of that decision.
    """
    why = (
        "The ranks of this job were compared without this process: it came late, "
        "or is a second process with the number of a rank."
    )
    fix = "Start the whole job again, under a name that no other job has."
    message = (
        f"this job was decided before this rank came ({said}), "
        f"and rank 0 has not called again within {timeout:g} s"
    )
    return _make_report(message, why, fix)


def report_double(rank: int, nodes: str) -> Report:
    """Return the report on two processes with the same number."""
    fix = (
        "Give each process of the job a number of its own, "
        "and each job a name of its own (ENVLOCK_FLEET_JOB); "
        "a rank that was started again needs the whole job to be started again."
    )
    message = f"rank {rank} exists twice: {nodes}"
    finding = Finding(TWICE, ERROR, WHERE, message=message, why=PARTS, fix=fix, source=SOURCE)
    return Report([finding], command=COMMAND, headline=f"does not match: rank {rank} exists twice")


def _make_report(message: str, why: str, fix: str) -> Report:
    finding = Finding(MISSING, UNKNOWN, WHERE, message=message, why=why, fix=fix, source=SOURCE)
    return Report([finding], command=COMMAND, headline=f"cannot decide: {message}")
