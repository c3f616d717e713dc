"""Ranks of a job: their statements, the comparison of all of them, and a job that starts only if
they are alike.
"""

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
from envlock.fleet.check_settings import find_settings
from envlock.fleet.engines import AUTO, ENGINES, FILES, Launcher, find, program_of
from envlock.fleet.fleet_evidence import FleetEvidence
from envlock.fleet.jobs import choose_job
from envlock.fleet.meeting import Pause
from envlock.fleet.rank_process import write_statement as state
from envlock.fleet.reduction import reduction
from envlock.guest import launch
from envlock.lock.locks import get_subject, load_document
from envlock.lock.writer import write_atomically
from envlock.runtime.errors import FactError, OutsideError, UsageError, WriteError
from envlock.runtime.judgement import has_overrides_enabled
from envlock.runtime.report import Report, clean, count
from envlock.workflows.run import Prepared, find_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source

WAIT = 10.0  # seconds: a shared file system shows a new file only after some
PATIENCE = 30.0  # seconds until a driver is ready, such as that of Ray, which imports Ray and finds its cluster
ASK_TIMEOUT = 60.0  # seconds until another interpreter has stated its facts


def report_rank(to: str, lock: str | None = None, *, python: Path | None = None) -> None:
    """Write the statement of this rank into a folder that all nodes share.

    Raises:
        UsageError: no launcher gives the number of this rank, the job has no name, or there is no
            such interpreter.
        WriteError: the folder cannot be written.
        FactError: the interpreter failed.
    """
    if python is None:
        state(to, lock)
        return
    program = launch.build_module_arguments("rank", _make_request(to, lock))
    ended = launch.ask_python(program, python, timeout=ASK_TIMEOUT)
    if ended.code != 0:
        raise FactError(f"{python} {ended.ending}: {ended.last_words}")


def _make_request(to: str, lock: str | None, **more: object) -> dict[str, object]:
    """Return the request to the program of a rank: a statement, unless `more` names a command."""
    # The launcher may start the program in another folder.
    named = str(Path(lock).absolute()) if lock is not None else None
    return {
        "folder": str(Path(to).absolute()),
        "job": None,
        "lock": named,
        "policy": None,
        "settings": find_settings(os.environ),
        "command": None,
        "timeout": 0,
        **more,
    }


def check_fleet(
    path: str,
    lock: Source | None = None,
    policy: str | None = None,
    *,
    ranks: int | None = None,
    job: str | None = None,
    wait: float = WAIT,
) -> Report[FleetEvidence]:
    """Return whether the ranks that have reported to a folder are alike and, with a lockfile, as
    locked.

    The attachment `fleet` has the groups, and the nodes that may be used (`vetted`).

    Args:
        path: the folder that `report_rank` wrote to.
        lock: the lockfile; None compares the ranks with one another only.
        policy: how strictly to compare; the lockfile's own, or `strict` without a lockfile, when
            not given.
        ranks: how many ranks the job has; the number in their own statements if not given.
        job: the name of the job; the launcher's, or that of the only job in the folder, if not
            given.
        wait: seconds to wait for reports that are missing.

    Raises:
        FactError: no rank has reported.
        UsageError: several jobs have reported, or the number of ranks is unknown.
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
    """
    name = choose_job(folder.list_jobs(path), path, os.environ, job)
    statements, documents, size = _collect_reports(path, name, ranks, wait)
    if not size:
        raise UsageError(
            "no launcher says how many ranks there are", hint="name their number with `--ranks`"
        )
    return _judge_ranks(statements, documents, size, lock, policy)


def write_vetted(path: Path, nodes: Sequence[str]) -> str:
    """Write the nodes that can be used, one a line, and return a sentence that says so; if there
    are none, remove an older list.

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


@dataclass(frozen=True)
class FleetLaunch:
    """How the ranks of a job are started.

    Attributes:
        engine: `auto`, `slurm`, `mpi`, `ray`; or `files`, for a process that a launcher has started
            as a rank.
        ranks: how many ranks there are; None for the launcher's number.
        options: for the launcher, in the check and in the job.
        to: the folder that all nodes share.
        timeout: seconds to wait for all ranks.
    """

    engine: str = AUTO
    ranks: int | None = None
    options: Sequence[str] = ()
    to: str = folder.DEFAULT
    timeout: float = 120.0


AS_FOUND = FleetLaunch()


def prepare_fleet(
    command: Sequence[str],
    lock: str | None = None,
    policy: str | None = None,
    start: FleetLaunch = AS_FOUND,
    *,
    python: Path | None = None,
) -> Prepared:
    """Let a launcher start a check as each rank; return the report on the ranks, with the job to
    start next.

    The ranks of the job compare themselves once more before they become the command, because a
    launcher may start it on other nodes. With `files`, the report is empty: only they do. With
    `ray`, only the check does: the command is a driver.

    Args:
        command: the program of a rank and its arguments; for `ray`, the driver.
        lock: the lockfile; None compares the ranks with one another only.
        policy: how strictly to compare; the lockfile's own, or `strict` without a lockfile, when
            not given.
        start: how the ranks are started.
        python: the interpreter of the environment, at the same place on every node; this one when
            not given.

    Raises:
        OutsideError: the launcher is missing, or failed before any rank reported.
        UsageError: `auto` finds no launcher, or the engine cannot do this.
    """
    engine = find(start.engine, os.environ, start.ranks)
    interpreter = python or Path(sys.executable)
    if engine == FILES:
        request = _make_request(
            start.to, lock, policy=policy, command=list(command), timeout=start.timeout
        )
        words = [str(interpreter), *launch.build_module_arguments("rank", request)]
        return _make_prepared(words, Report([], headline=""))
    launcher = ENGINES[engine]
    # A name that nothing else has: the checks of two jobs that share a folder must not read each
    # other's reports.
    name = f"run-{os.urandom(6).hex()}"
    place = Path(start.to).absolute() / f"{name}.check"
    job = _Job(launcher, interpreter, start.ranks, start.options, place)
    try:
        request = _make_request(
            start.to, lock, job=place.name, policy=policy, timeout=start.timeout
        )
        report = _check_ranks(job, request, start.timeout, lock, policy)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if launcher.DRIVER:
        return _make_prepared(job.make_argv(command), report)
    # The launcher may start the job on other nodes than the check, so its ranks meet once more, and
    # become the command or not.
    request = _make_request(
        start.to, lock, job=name, policy=policy, command=list(command), timeout=start.timeout
    )
    words = [str(interpreter), *launch.build_module_arguments("rank", request)]
    return _make_prepared(job.make_argv(words), report)


def _make_prepared(words: Sequence[str], report: Report) -> Prepared:
    return Prepared(find_program(words[0]), tuple(words), os.environ, report, (), ())


@dataclass(frozen=True)
class _Job:
    """How a launcher starts ranks, and the folder that they write their results to."""

    launcher: Launcher
    python: Path
    ranks: int | None
    options: Sequence[str]
    place: Path

    def make_argv(self, command: Sequence[str]) -> list[str]:
        """Return the command line that starts a command as each rank."""
        return self.launcher.start(
            program_of(self.launcher, os.environ), command, self.ranks, self.options
        )

    def run(self, guest: str, request: Mapping[str, object], limit: float) -> tuple[bool, str]:
        """Run a program of envlock as each rank; return whether the launcher succeeded, and how it
        ended, as a sentence.
        """
        words = launch.build_module_arguments(guest, request)
        if self.launcher.DRIVER:
            # This launcher starts one process, which starts the program as each rank.
            program = launch.build_module_arguments(guest, {**request, "folder": None})
            driver = {
                "folder": request["folder"],
                "job": request["job"],
                "program": program,
                "timeout": limit,
                "nodes": self.ranks,
            }
            words = launch.build_module_arguments(self.launcher.DRIVER, driver)
            limit += PATIENCE
        argv = self.make_argv([str(self.python), *words])
        ended = launch.ask(argv[1:], Path(argv[0]), timeout=limit)
        return ended.code == 0, f"{Path(argv[0]).name} {ended.ending}: {clean(ended.last_words)}"


def _check_ranks(
    job: _Job,
    request: Mapping[str, object],
    timeout: float,
    lock: str | None,
    policy: str | None,
) -> Report[FleetEvidence]:
    """Return the report on the ranks that have answered.

    Raises:
        OutsideError: no rank has answered.
    """
    is_good, ending = job.run("rank", request, timeout)
    # After the launcher has failed, no more reports can arrive.
    wait = WAIT if is_good else 0
    statements, documents, size = _collect_reports(
        str(job.place.parent), job.place.name, job.ranks, wait
    )
    if not statements:
        raise OutsideError(
            f"no rank has reported: {ending}", hint="start a small command with the launcher itself"
        )
    report = _judge_ranks(statements, documents, size or len(statements), lock, policy)
    if not is_good:
        report.notes.append(ending)
    return report


def _judge_ranks(
    statements: Sequence[Any],
    documents: dict[str, Any],
    size: int,
    lock: Source | None,
    policy: str | None,
) -> Report[FleetEvidence]:
    report, _ = reduction(
        statements, documents, size, _load_document(lock), policy, overrides=has_overrides_enabled()
    )
    report.subject = get_subject(lock)
    return report


def _load_document(lock: Source | None) -> dict[str, Any] | None:
    """Return a lockfile as plain values; None without one, which compares the ranks only with one
    another.
    """
    if lock is None:
        return None
    document, _ = load_document(lock)
    return document


def _collect_reports(
    to: str, job: str, ranks: int | None, wait: float
) -> tuple[list[Any], dict[str, Any], int]:
    """Return the reports and the number of ranks, as soon as all have reported or `wait` seconds
    have passed.

    The number is 0 if no report gives it.
    """
    pause = Pause(time.monotonic() + wait)
    while True:
        statements, documents = folder.read_statements(to, job)
        size = ranks or max((statement.get("size") or 0 for statement in statements), default=0)
        if 0 < size <= len(statements) or not pause.wait():
            return statements, documents, size
