"""`assert_fleet()`: line 1 of a script of many ranks. All of them go on, or none does."""

from __future__ import annotations

import os

from envlock.runtime import assertion
from envlock.runtime.errors import EnvironmentMismatch, EnvlockError, LockfileError, UsageError
from envlock.runtime.fleet.meeting import Silence
from envlock.runtime.fleet.ranks import Rank, rank_of
from envlock.runtime.fleet.verdict import report_of
from envlock.runtime.report import UNKNOWN, Finding, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional, Sequence, Tuple, Union

    from envlock.runtime.fleet.meeting import Verdict

    Path = Union[str, os.PathLike[str]]

TIMEOUT = 120.0  # seconds
ENGINES = ("auto", "files", "mpi", "tf")


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
    lockfile, ranks are compared with one another.

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
            rank 0 has printed the report to stderr. With `ENVLOCK_MODE=warn`, nothing is raised.
        UsageError: there is no such engine, or no launcher says which rank this is.
        WriteError: the shared folder cannot be written.
    """
    if engine not in ENGINES:
        raise UsageError(f"unknown engine `{engine}`", hint=f"choose from: {', '.join(ENGINES)}")
    mode = assertion.mode_of_process()
    if mode == "off":
        assertion.say("warning: ENVLOCK_MODE=off, the environment is not verified")
        return None
    rank, meet = _engine(engine, folder)
    report = gathered(rank, meet, path, policy or os.environ.get("ENVLOCK_POLICY") or None, timeout)
    if not report.match and mode in assertion.ENFORCING:
        has_report = "" if report.headline.startswith(SILENT) else " (rank 0 has printed the report)"
        raise EnvironmentMismatch(report.headline + has_report, report)
    if not report.match and rank.rank == 0:
        assertion.say("warning: ENVLOCK_MODE=warn, so this does not stop the program")
    return report


SILENT = "cannot decide: rank 0"


def gathered(
    rank: Rank, meet: Callable[..., Verdict], path: Optional[Path], policy: Optional[str], timeout: float
) -> Report:
    """Return the report on all ranks, which is the same on each; where they do not match, rank 0 prints it.

    It does so before the others hear of it: a launcher may end the whole job once the first of them has ended.
    """
    lock, mine = looked(rank, path)

    def decide(statements: Sequence[Any], documents: Dict[str, Any]) -> Verdict:
        from envlock.runtime.fleet.reduction import reduced
        from envlock.runtime.verify import overrides_count

        found = reduced(statements, documents, rank.size or 1, lock, policy, overrides=overrides_count())
        if not found.match:
            assertion.say(found.to_text())
        return found.to_json()

    try:
        return report_of(meet(mine, decide, timeout))
    except Silence:
        message = f"{SILENT} gave no verdict within {timeout:g} s"
        why = "Rank 0 collects the reports; it has ended, hangs, or does not share the meeting place of this rank."
        fix = "Look for rank 0 in the launcher's log; check that all nodes share the folder."
        finding = Finding("rank-missing", UNKNOWN, "fleet", message.partition(": ")[2], why, fix, "docs/fleet.md")
        return Report([finding], command="fleet check", headline=message)
    except ValueError:
        raise UsageError("the verdict of rank 0 is not one", hint="install one version of envlock everywhere") from None


def looked(rank: Rank, path: Optional[Path]) -> Tuple[Optional[Dict[str, Any]], Tuple[Any, Any]]:
    """Return the lockfile, the statement and the document of this rank; one that fails states why.

    A lockfile is needed only where one is named.
    """
    from envlock.runtime.collectors import snapshot
    from envlock.runtime.fleet.statement import failed, stated
    from envlock.runtime.launchers import traces
    from envlock.runtime.proof import is_proven
    from envlock.runtime.verify import found_here, overrides_count, without_package

    try:
        found = _lockfile(path)
        if found is None:
            return None, stated(rank, snapshot(), traces(os.environ))
        lock, digest = found
        live = without_package(found_here(lock), lock.get("project", {}).get("name"))
        proven = bool(lock.get("numerics")) and is_proven(lock, live, os.environ)
        rules = lock["policy"]["overrides"] if overrides_count() else {}
        return lock, stated(rank, live, traces(os.environ), digest, rules, proven=proven)
    except EnvlockError as error:
        return None, (failed(rank, error.message), None)


def _lockfile(path: Optional[Path]) -> Optional[Tuple[Dict[str, Any], str]]:
    """Return the lockfile and its digest; None where none is named and none is near."""
    from hashlib import sha256

    from envlock.runtime.fleet.statement import canonical
    from envlock.runtime.lockfile import read_file

    try:
        named = assertion.locate(path)
    except LockfileError:
        return None
    lock = read_file(named)
    return lock, sha256(canonical(lock).encode("ascii")).hexdigest()[:32]


def _engine(engine: str, folder: Optional[Path]) -> Tuple[Rank, Callable[..., Verdict]]:
    """Return which rank this is, and how it meets the others."""
    host = os.uname().nodename
    if engine in ("auto", "mpi"):
        from envlock.runtime.fleet import mpi

        world = mpi.world(required=engine == "mpi")
        if world is not None:
            return mpi.rank_in(world, os.environ, host), lambda *words: mpi.meet(world, *words)
    rank = rank_of(os.environ, host)
    if rank.size is None:
        raise UsageError("cannot find how many ranks the job has", hint="set ENVLOCK_FLEET_SIZE")
    if rank.size == 1:
        return rank, lambda mine, decide, timeout: decide([mine[0]], {mine[0]["root"]: mine[1]} if mine[1] else {})
    from envlock.runtime.fleet.meeting import meet

    if engine == "tf":
        from envlock.runtime.fleet import tf

        board: Any = tf.board()
    else:
        from envlock.runtime.fleet.folder import Folder, chosen

        board = Folder(chosen(os.environ, None if folder is None else os.fspath(folder)), rank.job)
    return rank, lambda mine, decide, timeout: meet(board, rank.rank, rank.size or 1, mine, decide, timeout)
