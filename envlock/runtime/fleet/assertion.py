"""`assert_fleet()`: line 1 of a script of many ranks. All of them go on, or none does."""

from __future__ import annotations

import os
import sys

from envlock.runtime import assertion
from envlock.runtime.errors import EnvironmentMismatch, EnvlockError, LockfileError, UsageError
from envlock.runtime.fleet.meeting import Silence, meet
from envlock.runtime.fleet.ranks import OWN, rank_of
from envlock.runtime.fleet.reduction import COMMAND, MISSING, SOURCE, WHERE, reduced
from envlock.runtime.fleet.verdict import report_of
from envlock.runtime.report import UNKNOWN, Finding, Report
from envlock.runtime.verify import found_here, overrides_count, without_package

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

    from envlock.runtime.fleet.meeting import Board, Verdict
    from envlock.runtime.fleet.ranks import Rank

    Path = Union[str, os.PathLike[str]]

TIMEOUT = 120.0  # seconds
ENGINES = ("auto", "files", "mpi", "tf")
ALONE = {OWN["rank"]: "0", OWN["size"]: "1"}
SILENT = "cannot decide: rank 0"


def assert_fleet(
    path: Optional[Path] = None,
    policy: Optional[str] = None,
    *,
    engine: str = "auto",
    timeout: float = TIMEOUT,
    folder: Optional[Path] = None,
) -> Optional[Report]:
    """Return the report when every rank's environment is the locked one and that of the other ranks, else refuse.

    Every rank of the job must call it, as often as the others. All of them return, or all of them raise. Without a
    lockfile, ranks are compared with one another. A process that `multiprocessing` spawns, which repeats the line, is
    compared with the lockfile only.

    Args:
        path: the lockfile, as for `assert_locked()`.
        policy: how closely to compare; the lockfile's own, or `strict` without a lockfile.
        engine: how ranks meet. `mpi`: by mpi4py, which the program has imported. `tf`: by TensorFlow's coordination
            service, once there is a strategy of several workers. `files`: by a folder that all nodes share. `auto`: by
            MPI where mpi4py is imported, else by files.
        timeout: seconds that a rank waits for the others at most.
        folder: for `files`; else `$ENVLOCK_FLEET_DIR`, else `.envlock-fleet` in the current folder.

    Returns:
        The report; None when `ENVLOCK_MODE=off` kept it from looking.

    Raises:
        EnvironmentMismatch: an environment differs, or a rank did not answer in time. It is the same on every rank;
            rank 0 has printed the report to stderr. Where the program does not catch it, the process ends with the
            exit code of the error and without a traceback. With `ENVLOCK_MODE=warn`, nothing is raised.
        UsageError: there is no such engine, or no launcher says which rank this is.
        WriteError: the shared folder cannot be written.
    """
    if engine not in ENGINES:
        raise UsageError(f"unknown engine `{engine}`", hint=f"choose from: {', '.join(ENGINES)}")
    mode = assertion.mode_of_process()
    if mode == "off":
        assertion.say("warning: ENVLOCK_MODE=off, the environment is not verified")
        return None
    caller = sys._getframe(1)
    # what multiprocessing spawns repeats line 1 of the script, and is no other rank
    is_child = caller.f_globals.get("__name__") == "__mp_main__" and caller.f_code.co_name == "<module>"
    environ = ALONE if is_child else os.environ
    rank, board = place("files" if is_child else engine, None if folder is None else os.fspath(folder), environ)
    report = gathered(rank, board, path, policy or os.environ.get("ENVLOCK_POLICY"), timeout)
    if not report.match and mode in assertion.ENFORCING:
        raise _refusal(report)
    if not report.match and rank.rank == 0:
        assertion.say("warning: ENVLOCK_MODE=warn, so this does not stop the program")
    return report


def _refusal(report: Report) -> EnvironmentMismatch:
    """Return the error. Where nobody catches it, the process ends with its exit code and without a traceback.

    All has been said by then, once for all ranks; a traceback of each would bury it.
    """
    from weakref import ref

    is_said = "" if report.headline.startswith(SILENT) else " (rank 0 has printed the report)"
    error = EnvironmentMismatch(report.headline + is_said, report)
    known, before = ref(error), sys.excepthook

    def end(kind: Any, value: Any, trace: Any) -> None:
        if value is not known() or hasattr(sys, "ps1") or sys.flags.inspect:
            before(kind, value, trace)
        else:
            sys.exit(report.exit_code)

    sys.excepthook = end
    return error


def gathered(rank: Rank, board: Optional[Board], path: Optional[Path], policy: Optional[str], timeout: float) -> Report:
    """Return the report on all ranks, which is the same on each; where they do not match, rank 0 prints it.

    It does so before the others hear of it: a launcher may end the whole job once the first of them has ended.
    """
    lock, mine = looked(rank, path)
    size = rank.size or 1

    def decide(statements: Sequence[Any], documents: Dict[str, Any]) -> Verdict:
        found = reduced(statements, documents, size, lock, policy or None, overrides=overrides_count())
        if not found.match:
            assertion.say(found.to_text())
        return found.to_json()

    if board is None:
        return report_of(decide([mine[0]], {mine[0]["root"]: mine[1]}))
    try:
        report = report_of(meet(board, rank.rank, size, mine, decide, timeout))
        if any(each.rule == MISSING for each in report.findings):
            board.give_up()
        return report
    except Silence:
        board.give_up()
        message = f"{SILENT} gave no verdict within {timeout:g} s"
        why = "Rank 0 collects the reports; it has ended, hangs, or does not share the meeting place of this rank."
        fix = "Look for rank 0 in the launcher's log; check that all nodes share the folder."
        finding = Finding(MISSING, UNKNOWN, WHERE, message.partition(": ")[2], why, fix, SOURCE)
        assertion.say(message)
        return Report([finding], command=COMMAND, headline=message)
    except ValueError:
        raise UsageError("the verdict of rank 0 is not one", hint="install one version of envlock everywhere") from None


def looked(rank: Rank, path: Optional[Path]) -> Tuple[Optional[Dict[str, Any]], Tuple[Any, Any]]:
    """Return the lockfile, the statement and the document of this rank; one that fails states why.

    A lockfile is needed only where one is named.
    """
    from hashlib import sha256

    from envlock.runtime.collectors import snapshot
    from envlock.runtime.fleet.statement import canonical, failed, stated
    from envlock.runtime.launchers import traces
    from envlock.runtime.lockfile import read_file
    from envlock.runtime.proof import is_proven

    try:
        named = _named(path)
        if named is None:
            return None, stated(rank, snapshot(), traces(os.environ))
        lock = read_file(named)
        digest = sha256(canonical(lock).encode("ascii")).hexdigest()[:32]
        live = without_package(found_here(lock), lock.get("project", {}).get("name"))
        proven = bool(lock.get("numerics")) and is_proven(lock, live, os.environ)
        rules = lock["policy"]["overrides"] if overrides_count() else {}
        return lock, stated(rank, live, traces(os.environ), digest, rules, proven=proven)
    except EnvlockError as error:
        return None, (failed(rank, error.message), None)


def _named(path: Optional[Path]) -> Optional[str]:
    """Return the file of the lockfile; None where none is named and none is near."""
    try:
        return assertion.locate(path)
    except LockfileError:
        return None


def place(engine: str, folder: Optional[str], environ: Mapping[str, str]) -> Tuple[Rank, Optional[Board]]:
    """Return which rank this is, and where it meets the others; None for a rank that is alone.

    Raises:
        UsageError: no launcher says which rank of how many this is, or the engine cannot be had.
        WriteError: the shared folder cannot be written.
    """
    host = os.uname().nodename
    if engine in ("auto", "mpi"):
        from envlock.runtime.fleet import mpi

        world = mpi.world(required=engine == "mpi")
        if world is not None:
            return mpi.rank_in(world, environ, host), mpi.Mail(world)
    rank = rank_of(environ, host)
    if rank.size is None:
        raise UsageError("cannot find how many ranks the job has", hint=f"set {OWN['size']}")
    if rank.size == 1:
        return rank, None
    if engine == "tf":
        from envlock.runtime.fleet import tf

        return rank, tf.board()
    from envlock.runtime.fleet.folder import Folder

    return rank, Folder(folder, rank.job)
