"""Ranks of a job: their statements, the reduction, and a job that starts only where they are alike."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from envlock.fleet.drift import drift
from envlock.fleet.jobs import job_of
from envlock.guest import launch
from envlock.runtime.errors import FactError, UsageError
from envlock.runtime.fleet import folder
from envlock.runtime.fleet.meeting import Pause
from envlock.runtime.fleet.reduction import reduced
from envlock.runtime.fleet.report import report as state
from envlock.runtime.policy import DEFAULT, Policy
from envlock.runtime.report import Report, ranked
from envlock.runtime.verify import overrides_count, policy_of
from envlock.workflows.locks import plain, subject_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source

WAIT = 10.0  # seconds: a shared file system shows a new file after some
ASK_TIMEOUT = 60.0  # seconds for another interpreter to state what it finds


def report_rank(to: str, lock: str | None = None, *, job: str | None = None, python: Path | None = None) -> None:
    """Write the statement of this rank to a folder that all nodes share.

    Raises:
        UsageError: no launcher says which rank this is, the job has no name, or there is no such interpreter.
        WriteError: the folder cannot be written.
        FactError: the interpreter failed.
    """
    if python is None:
        state(to, lock, job)
        return
    asked = {**words(to, lock, job), "command": None, "timeout": 0}
    ended = launch.ask(launch.module("rank", asked), python, timeout=ASK_TIMEOUT)
    if ended.code != 0:
        raise FactError(f"{python} {ended.ending}: {ended.last_words}")


def words(to: str, lock: str | None, job: str | None, policy: str | None = None) -> dict[str, Any]:
    """Return what the program of a rank is asked."""
    named = None if lock is None else str(Path(lock).absolute())
    return {"folder": str(Path(to).absolute()), "job": job, "lock": named, "policy": policy}


def check_fleet(
    path: str,
    lock: Source | None = None,
    policy: str | None = None,
    *,
    ranks: int | None = None,
    job: str | None = None,
    against: str | None = None,
    wait: float = WAIT,
) -> Report:
    """Return whether the ranks that have reported to a folder are alike and, with a lock, as locked.

    The attachment `fleet` has the groups, and the nodes that may be used (`vetted`).

    Args:
        path: the folder that `report_rank` wrote to.
        lock: the lockfile; None compares the ranks with one another only.
        policy: how closely to compare; the lockfile's own, or `strict` where there is none.
        ranks: how many ranks the job has; as they say themselves if not given.
        job: whose reports; those of the launcher's job, or of the only one if not given.
        against: a folder with reports of an earlier job: what has changed on its nodes is a finding, too.
        wait: seconds to wait for reports that are missing.

    Raises:
        FactError: nobody has reported.
        UsageError: several jobs have, or the number of ranks is unknown.
        LockfileError: the lock is missing, unreadable, invalid, or newer than this envlock.
    """
    document = None if lock is None else plain(lock)[0]
    meant = job_of(folder.jobs(path), path, os.environ, job)
    pause = Pause(time.monotonic() + wait)
    while True:
        statements, documents = folder.kept(path, meant)
        size = ranks or max((each["size"] or 0 for each in statements), default=0)
        if len(statements) >= size or not pause.over():
            break
    if not size:
        raise UsageError("no launcher says how many ranks there are", hint="name their number with `--ranks`")
    report = reduced(statements, documents, size, document, policy, overrides=overrides_count())
    report.subject = subject_of(lock)
    if against is None:
        return report
    rules = Policy(policy or DEFAULT) if document is None else policy_of(document, policy, overrides=overrides_count())
    earlier = folder.kept(against, job_of(folder.jobs(against), against, {}))
    found, notes = drift(earlier, (statements, documents), rules)
    if found and report.match:
        report.headline += ", and not as before"
    report.findings = ranked([*report.findings, *found])
    report.notes += notes
    return report
