"""Ranks of a job: their statements, the reduction, and a job that starts only where they are alike."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envlock.fleet.drift import drift
from envlock.fleet.engines import AUTO, FILES, find, launcher, program_of
from envlock.fleet.jobs import job_of
from envlock.guest import launch
from envlock.runtime.errors import FactError, OutsideError, UsageError
from envlock.runtime.fleet import folder
from envlock.runtime.fleet.meeting import Pause
from envlock.runtime.fleet.reduction import reduced
from envlock.runtime.fleet.report import STDOUT
from envlock.runtime.fleet.report import report as state
from envlock.runtime.policy import DEFAULT, Policy
from envlock.runtime.report import Report, clean, ranked
from envlock.runtime.verify import overrides_count, policy_of
from envlock.workflows.fleet_bits import add_bits, bits_words
from envlock.workflows.locks import plain, subject_of
from envlock.workflows.run import Prepared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source

WAIT = 10.0  # seconds: a shared file system shows a new file after some
ASK_TIMEOUT = 60.0  # seconds for another interpreter to state what it finds
WITH_BITS = ("slurm", "mpi")


def report_rank(to: str, lock: str | None = None, *, job: str | None = None, python: Path | None = None) -> str:
    """Write the statement of this rank to a folder that all nodes share; return it where `to` is `-`, as JSON.

    Raises:
        UsageError: no launcher says which rank this is, the job has no name, or there is no such interpreter.
        WriteError: the folder cannot be written.
        FactError: the interpreter failed.
    """
    if python is None:
        return state(to, lock, job)
    ended = launch.ask(launch.module("rank", words(to, lock, job)), python, timeout=ASK_TIMEOUT)
    if ended.code != 0:
        raise FactError(f"{python} {ended.ending}: {ended.last_words}")
    return ended.output.decode("ascii").strip()


def words(to: str, lock: str | None, job: str | None, **more: Any) -> dict[str, Any]:
    """Return what the program of a rank is asked: a statement, unless `more` names a command."""
    named = None if lock is None else str(Path(lock).absolute())
    place = to if to == STDOUT else str(Path(to).absolute())
    return {"folder": place, "job": job, "lock": named, "policy": None, "command": None, "timeout": 0, **more}


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
    statements, documents = _settled(path, meant, ranks, wait)
    size = _size(statements, ranks)
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


@dataclass(frozen=True)
class PreparedFleet:
    """A job as it is to be started.

    Attributes:
        report: what the ranks have; None where they compare themselves once they are started.
        start: the command line, which takes the place of this process.
    """

    report: Report | None
    start: Prepared


def prepare_fleet(
    command: Sequence[str],
    lock: str | None = None,
    policy: str | None = None,
    *,
    engine: str = AUTO,
    ranks: int | None = None,
    options: Sequence[str] = (),
    to: str = folder.DEFAULT,
    job: str | None = None,
    python: Path | None = None,
    timeout: float = 120.0,
    numerics: bool = False,
) -> PreparedFleet:
    """Let a launcher start a check as each rank, and return the job that is to follow with the report.

    Args:
        command: the program of a rank and its arguments; for `ray`, the driver.
        lock: the lockfile; None compares the ranks with one another only.
        policy: how closely to compare; the lockfile's own, or `strict` where there is none.
        engine: `auto`, `slurm`, `mpi`, `ray`; or `files`, for a process that a launcher has started as a rank.
        ranks: how many ranks there are; as the launcher says if not given.
        options: for the launcher, both times.
        to: the folder that all nodes share.
        job: for `files`: the name of the job; the launcher's if not given.
        python: the interpreter of the environment, at the same place on every node; this one when not given.
        timeout: seconds to wait for all ranks.
        numerics: also compare the bits of the canary on each node; only with `slurm` and `mpi`.

    Raises:
        OutsideError: the launcher is missing or failed, so that no rank has reported.
        UsageError: `auto` finds no launcher, or the engine cannot do this.
    """
    name, chosen = _engine(engine, ranks, numerics), python or Path(sys.executable)
    if name == FILES:
        asked = words(to, lock, job, policy=policy, command=list(command), timeout=timeout)
        return PreparedFleet(None, _started([str(chosen), *launch.module("rank", asked)]))
    program, module = program_of(name, os.environ), launcher(name)
    own = f"run-{os.urandom(6).hex()}"
    check = launch.module(module.CHECK, words(to, lock, own, timeout=timeout, nodes=ranks))
    argv = module.start(program, [str(chosen), *check], ranks, options)
    try:
        report = _preflight(argv, to, own, timeout + module.PATIENCE, ranks, lock, policy)
        if numerics:
            argv = module.start(program, [str(chosen), *bits_words(Path(to) / own, lock)], ranks, options)
            add_bits(report, Path(to) / own, lock, policy, argv)
    finally:
        shutil.rmtree(Path(to) / own, ignore_errors=True)
    return PreparedFleet(report, _started(module.start(program, command, ranks, options)))


def _engine(named: str, ranks: int | None, numerics: bool) -> str:
    name = find(named, os.environ, ranks)
    if numerics and name not in WITH_BITS:
        raise UsageError(f"engine `{name}` cannot compute the canary", hint=f"choose from: {', '.join(WITH_BITS)}")
    return name


def _preflight(
    argv: Sequence[str], to: str, job: str, limit: float, ranks: int | None, lock: str | None, policy: str | None
) -> Report:
    """Let a launcher start the check of each rank; return the report on those that have answered."""
    document = None if lock is None else plain(lock)[0]
    ended = launch.ask(argv[1:], Path(argv[0]), timeout=limit)
    statements, documents = _settled(to, job, ranks, WAIT if ended.code == 0 else 0)
    said = f"{Path(argv[0]).name} {ended.ending}: {clean(ended.last_words)}"
    if not statements:
        raise OutsideError(f"no rank has reported: {said}", hint="start a small command with the launcher itself")
    size = _size(statements, ranks) or len(statements)
    report = reduced(statements, documents, size, document, policy, overrides=overrides_count())
    report.notes += [said] if ended.code != 0 else []
    report.subject = subject_of(lock)
    return report


def _started(argv: Sequence[str]) -> Prepared:
    program = shutil.which(argv[0])
    if program is None:
        raise UsageError(f"command not found: {argv[0]}", hint="check its spelling and PATH")
    return Prepared(program, tuple(argv), dict(os.environ), Report([]), (), ())


def _settled(to: str, job: str, ranks: int | None, wait: float) -> tuple[list[Any], dict[str, Any]]:
    """Return what has been reported, once it is all there or `wait` seconds are over."""
    pause = Pause(time.monotonic() + wait)
    while True:
        statements, documents = folder.kept(to, job)
        if 0 < _size(statements, ranks) <= len(statements) or not pause.over():
            return statements, documents


def _size(statements: Sequence[Any], ranks: int | None) -> int:
    """Return how many ranks there are, as somebody says; 0 where nobody does."""
    return ranks or max((each.get("size") or 0 for each in statements), default=0)
