"""Ranks of a job: their statements, the reduction, and a job that starts only where they are alike."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envlock.fleet import folder
from envlock.fleet.drift import drift
from envlock.fleet.engines import AUTO, ENGINES, FILES, Launcher, find, program_of
from envlock.fleet.jobs import job_of
from envlock.fleet.meeting import Pause
from envlock.fleet.rank_process import report as state
from envlock.fleet.reduction import reduction, rules_of
from envlock.guest import launch
from envlock.lock.writer import write_atomically
from envlock.runtime.errors import FactError, OutsideError, UsageError, WriteError
from envlock.runtime.report import Report, clean, count, ranked
from envlock.runtime.verify import overrides_count
from envlock.workflows.fleet_bits import BITS, add_bits, bits_asked
from envlock.workflows.locks import plain, subject_of
from envlock.workflows.run import Prepared, located

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source

WAIT = 10.0  # seconds: a shared file system shows a new file after some
PATIENCE = 30.0  # seconds for a driver to be ready, as Ray's imports it and finds its cluster
ASK_TIMEOUT = 60.0  # seconds for another interpreter to state what it finds


def report_rank(to: str, lock: str | None = None, *, python: Path | None = None) -> None:
    """Write the statement of this rank to a folder that all nodes share.

    Raises:
        UsageError: no launcher says which rank this is, the job has no name, or there is no such interpreter.
        WriteError: the folder cannot be written.
        FactError: the interpreter failed.
    """
    if python is None:
        state(to, lock)
        return
    ended = launch.ask_python(launch.module("rank", _asked(to, lock)), python, timeout=ASK_TIMEOUT)
    if ended.code != 0:
        raise FactError(f"{python} {ended.ending}: {ended.last_words}")


def _asked(to: str, lock: str | None, **more: Any) -> dict[str, Any]:
    """Return what the program of a rank is asked: a statement, unless `more` names a command."""
    named = None if lock is None else str(Path(lock).absolute())
    where = {"folder": str(Path(to).absolute()), "job": None, "lock": named}
    return {**where, "policy": None, "command": None, "timeout": 0, **more}


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
    meant = job_of(folder.jobs(path), path, os.environ, job)
    statements, documents, size = _settled(path, meant, ranks, wait)
    if not size:
        raise UsageError(
            "no launcher says how many ranks there are", hint="name their number with `--ranks`"
        )
    report = _reduced(statements, documents, size, lock, policy)
    if against is None:
        return report
    rules = rules_of(None if lock is None else plain(lock)[0], policy, overrides=overrides_count())
    earlier = folder.kept(against, job_of(folder.jobs(against), against, {}))
    found, notes = drift(earlier, (statements, documents), rules)
    if found and report.match:
        report.headline += ", and not as before"
    report.findings = ranked([*report.findings, *found])
    report.notes += notes
    return report


def write_vetted(path: Path, nodes: Sequence[str]) -> str:
    """Write the nodes that can be used, one a line, and return a sentence on it; without one, remove an older list.

    Raises:
        WriteError: the file cannot be written or removed.
    """
    if nodes:
        write_atomically(
            path, "".join(f"{node}\n" for node in nodes).encode("ascii"), "list of nodes"
        )
        return f"wrote {path}: {count(len(nodes), 'node')}"
    if not path.is_file():
        return f"did not write {path}: no node is known to be good"
    try:
        path.unlink()
    except OSError as error:
        raise WriteError(
            f"cannot remove {path}: {error.strerror}", hint="it lists nodes of an earlier check"
        ) from None
    return f"removed {path}: no node is known to be good"


def prepare_fleet(
    command: Sequence[str],
    lock: str | None = None,
    policy: str | None = None,
    *,
    engine: str = AUTO,
    ranks: int | None = None,
    options: Sequence[str] = (),
    to: str = folder.DEFAULT,
    python: Path | None = None,
    timeout: float = 120.0,
    numerics: bool = False,
) -> Prepared:
    """Let a launcher start a check as each rank, and return the job that follows, with the report on the ranks.

    With `files`, the report is empty: the ranks compare themselves once they are started.

    Args:
        command: the program of a rank and its arguments; for `ray`, the driver.
        lock: the lockfile; None compares the ranks with one another only.
        policy: how closely to compare; the lockfile's own, or `strict` where there is none.
        engine: `auto`, `slurm`, `mpi`, `ray`; or `files`, for a process that a launcher has started as a rank.
        ranks: how many ranks there are; as the launcher says if not given.
        options: for the launcher, both times.
        to: the folder that all nodes share.
        python: the interpreter of the environment, at the same place on every node; this one when not given.
        timeout: seconds to wait for all ranks.
        numerics: also compare the bits of the canary on each node; not with `files`.

    Raises:
        OutsideError: the launcher is missing or failed, so that no rank has reported.
        UsageError: `auto` finds no launcher, or the engine cannot do this.
    """
    name, chosen = find(engine, os.environ, ranks), python or Path(sys.executable)
    if name == FILES:
        if numerics:
            raise UsageError(
                "engine `files` cannot compute the canary",
                hint=f"choose from: {', '.join(ENGINES)}",
            )
        asked = _asked(to, lock, policy=policy, command=list(command), timeout=timeout)
        words = [str(chosen), *launch.module("rank", asked)]
        return Prepared(
            located(words[0]), tuple(words), os.environ, Report([], headline=""), (), ()
        )
    started = _Job(
        ENGINES[name], chosen, ranks, options, Path(to).absolute() / f"run-{os.urandom(6).hex()}"
    )
    try:
        report = _preflight(
            started, _asked(to, lock, job=started.place.name, timeout=timeout), lock, policy
        )
        if numerics:
            ended = started.run("bits", bits_asked(started.place, lock), BITS)
            add_bits(report, started.place, lock, policy, ended[1])
    finally:
        shutil.rmtree(started.place, ignore_errors=True)
    words = started.argv(command)
    return Prepared(located(words[0]), tuple(words), os.environ, report, (), ())


@dataclass(frozen=True)
class _Job:
    """How a launcher starts ranks, and the folder in which they leave what they find."""

    launcher: Launcher
    python: Path
    ranks: int | None
    options: Sequence[str]
    place: Path

    def argv(self, command: Sequence[str]) -> list[str]:
        """Return the command line that starts a command as each rank."""
        return self.launcher.start(
            program_of(self.launcher, os.environ), command, self.ranks, self.options
        )

    def run(self, guest: str, asked: Mapping[str, Any], limit: float) -> tuple[bool, str]:
        """Run a program of ours as each rank; return whether the launcher ended well, and how, as a sentence."""
        words = launch.module(guest, asked)
        if self.launcher.DRIVER:
            program = launch.module(guest, {**asked, "folder": None})
            kept = {"folder": asked["folder"], "job": asked["job"], "is_canary": guest == "bits"}
            words = launch.module(
                self.launcher.DRIVER,
                {**kept, "program": program, "timeout": limit, "nodes": self.ranks},
            )
            limit += PATIENCE
        argv = self.argv([str(self.python), *words])
        ended = launch.ask(argv[1:], Path(argv[0]), timeout=limit)
        return ended.code == 0, f"{Path(argv[0]).name} {ended.ending}: {clean(ended.last_words)}"


def _preflight(job: _Job, asked: Mapping[str, Any], lock: str | None, policy: str | None) -> Report:
    """Return the report on the ranks that have answered."""
    is_good, said = job.run("rank", asked, asked["timeout"])
    statements, documents, size = _settled(
        asked["folder"], asked["job"], job.ranks, WAIT if is_good else 0
    )
    if not statements:
        raise OutsideError(
            f"no rank has reported: {said}", hint="start a small command with the launcher itself"
        )
    report = _reduced(statements, documents, size or len(statements), lock, policy)
    report.notes += [] if is_good else [said]
    return report


def _reduced(
    statements: Sequence[Any],
    documents: dict[str, Any],
    size: int,
    lock: Source | None,
    policy: str | None,
) -> Report:
    document = None if lock is None else plain(lock)[0]
    report = reduction(statements, documents, size, document, policy, overrides=overrides_count())[
        0
    ]
    report.subject = subject_of(lock)
    return report


def _settled(
    to: str, job: str, ranks: int | None, wait: float
) -> tuple[list[Any], dict[str, Any], int]:
    """Return what has been reported, and how many ranks there are, once that is all or `wait` seconds are over.

    The number is 0 where nobody says it.
    """
    pause = Pause(time.monotonic() + wait)
    while True:
        statements, documents = folder.kept(to, job)
        size = ranks or max((each.get("size") or 0 for each in statements), default=0)
        if 0 < size <= len(statements) or not pause.wait():
            return statements, documents, size
