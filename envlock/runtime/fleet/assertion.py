"""`assert_fleet()`: line 1 of a script of many ranks. All of them go on, or none does."""

from __future__ import annotations

import os
import sys

from envlock.runtime import assertion
from envlock.runtime.assertion import OFF
from envlock.runtime.errors import (
    EnvironmentMismatch,
    EnvlockError,
    FactError,
    LockfileError,
    UsageError,
    WriteError,
)
from envlock.runtime.fleet.digest import digest, parts
from envlock.runtime.fleet.meeting import meet
from envlock.runtime.fleet.problems import MISSING
from envlock.runtime.fleet.ranks import OWN, Disagreement, rank_of
from envlock.runtime.fleet.reduction import reduction
from envlock.runtime.fleet.verdict import report_of
from envlock.runtime.report import Report
from envlock.runtime.verify import found_here, overrides_count, without_package

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Dict, Mapping, Optional, Sequence, Set, Tuple, Union

    from envlock.runtime.collectors import Snapshot
    from envlock.runtime.fleet.meeting import Board, Decision
    from envlock.runtime.fleet.ranks import Rank

    Path = Union[str, os.PathLike[str]]

TIMEOUT = 120.0  # seconds
ENGINES = ("auto", "files", "mpi", "tf")
ALONE = {"rank": 0, "size": 1, "node": None, "job": None}
WARNED = "warning: ENVLOCK_MODE=warn, so this does not stop the program"
SAID = "rank {} has printed the report"
SAID_ELSEWHERE = "another rank has printed the report"
ERRORS = {kind.__name__: kind for kind in (UsageError, LockfileError, FactError)}


def assert_fleet(
    path: Optional[Path] = None,
    policy: Optional[str] = None,
    *,
    engine: str = "auto",
    timeout: float = TIMEOUT,
    folder: Optional[Path] = None,
    rank: Optional[int] = None,
    size: Optional[int] = None,
    node: Optional[str] = None,
    job: Optional[str] = None,
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
        timeout: seconds that a rank waits for rank 0 to come, and that rank 0 waits for the others.
        folder: for `files`; else `$ENVLOCK_FLEET_DIR`, else `.envlock-fleet` in the current folder.
        rank, size, node, job: the number of this process, of how many, on which machine, and a word that no other job
            has; else `$ENVLOCK_FLEET_RANK` and so on, else as the launcher says.

    Returns:
        The report; None when `ENVLOCK_MODE=off` kept it from looking.

    Raises:
        EnvironmentMismatch: an environment differs, or a rank did not answer in time. It is the same on every rank;
            one of them has printed the report to stderr. Where the program does not catch it, the process ends with the
            exit code of the error and without a traceback. With `ENVLOCK_MODE=warn` on all ranks, nothing is raised.
        UsageError: there is no such engine or policy, or no launcher says which rank this is.
        LockfileError: the lockfile of rank 0 names a policy or a rule that does not exist.
        WriteError: the shared folder cannot be written.
    """
    if engine not in ENGINES:
        raise UsageError(f"unknown engine `{engine}`", hint=f"choose from: {', '.join(ENGINES)}")
    where = None if folder is None else os.fspath(folder)
    given: Dict[str, Any] = {"rank": rank, "size": size, "node": node, "job": job}
    if _is_spawned(sys._getframe(1)):
        engine, given = "files", ALONE
    own = {OWN[key]: str(value) for key, value in given.items() if value is not None}
    return _met(engine, where, {**os.environ, **own}, path, policy, timeout)


def _is_spawned(caller: FrameType) -> bool:
    """Return whether a line is line 1 of a script that multiprocessing repeats in what it spawns: no other rank."""
    return caller.f_globals.get("__name__") == "__mp_main__" and caller.f_code.co_name == "<module>"


def _met(
    engine: str,
    folder: Optional[str],
    environ: Mapping[str, str],
    path: Optional[Path],
    policy: Optional[str],
    timeout: float,
) -> Optional[Report]:
    """Return the report to a process with these variables, or refuse."""
    mode = _mode()
    try:
        rank, board = place(engine, folder, environ)
        found = gathered(
            rank, board, path, policy or os.environ.get("ENVLOCK_POLICY"), timeout, mode
        )
    except Disagreement as error:
        return _alone(error, mode)
    except (UsageError, WriteError):
        if mode != OFF:
            raise
        return _gone_on(None, mode)
    return _answered(found, mode, is_speaker=rank.rank == 0)


def _mode() -> str:
    """Return what ENVLOCK_MODE says; where there is no such mode, this rank enforces, and its statement says so."""
    try:
        return assertion.mode_of_process()
    except UsageError:
        return assertion.ENFORCING[0]


def _answered(found: Gathered, mode: str, *, is_speaker: bool) -> Optional[Report]:
    """Return the report to a rank that goes on, or refuse: where one of the ranks enforces, all of them do."""
    is_enforced = found.is_enforced or mode in assertion.ENFORCING
    if found.error is not None and (is_enforced or mode != OFF):
        raise _quiet(found.error)
    if found.report is not None and not found.report.match and is_enforced:
        raise _quiet(EnvironmentMismatch(f"{found.report.headline} ({found.said})", found.report))
    return _gone_on(found.report, mode, is_speaker=is_speaker)


def _gone_on(report: Optional[Report], mode: str, *, is_speaker: bool = True) -> Optional[Report]:
    if mode == OFF:
        assertion.say("warning: ENVLOCK_MODE=off, the environment is not verified")
        return None
    if is_speaker and report is not None and not report.match:
        assertion.say(WARNED)
    return report


def _alone(error: Disagreement, mode: str) -> Optional[Report]:
    """Refuse a process that cannot meet the others. Each says so, as none knows which one ends the job first."""
    report = error.report
    if mode != OFF:
        assertion.say(report.to_text() if error.is_first else report.headline)
    if mode in assertion.ENFORCING:
        raise _quiet(EnvironmentMismatch(report.headline, report))
    return _gone_on(report, mode)


def _quiet(error: EnvlockError) -> EnvlockError:
    """Return the error. Where nobody catches it, the process ends with its exit code and without a traceback.

    All has been said by then, once for all ranks; a traceback of each would bury it.
    """
    from weakref import ref

    known, before, code = ref(error), sys.excepthook, error.exit_code

    def end(kind: Any, value: Any, trace: Any) -> None:
        if value is not known() or hasattr(sys, "ps1") or sys.flags.inspect:
            before(kind, value, trace)
        else:
            sys.exit(code)

    sys.excepthook = end
    return error


class Gathered:
    """What ranks have decided together.

    Attributes:
        report: on all ranks; None where rank 0 has failed.
        error: how it has; None where it has not.
        is_enforced: whether one of them refuses what does not match.
        said: who has printed it, as a clause.
    """

    __slots__ = ("error", "is_enforced", "report", "said")

    def __init__(self, decision: Decision, said: str) -> None:
        """Read a decision.

        Raises:
            UsageError: another version of envlock has made it.
        """
        self.report: Optional[Report] = None
        self.error: Optional[EnvlockError] = None
        self.is_enforced = decision.get("enforced") is True
        self.said = said
        error = decision.get("error")
        try:
            if error is None:
                self.report = report_of(decision["report"])
                own = decision.get("own") or {"differs": []}  # a file server can be late to show it
                self.report.notes += [f"this rank: {each}" for each in own["differs"]]
            else:
                hint = None if error["hint"] is None else str(error["hint"])
                self.error = ERRORS[error["kind"]](str(error["message"]), hint=hint)
        except (KeyError, TypeError, ValueError):
            hint = "install the same version of envlock on all nodes"
            raise UsageError("cannot read what rank 0 has decided", hint=hint) from None

    @property
    def exit_code(self) -> int:
        """Of a process that starts only where all match."""
        answer = self.error or self.report
        return 0 if answer is None else answer.exit_code


def gathered(
    rank: Rank,
    board: Optional[Board],
    path: Optional[Path],
    policy: Optional[str],
    timeout: float,
    mode: str = assertion.ENFORCING[0],
) -> Gathered:
    """Return what all ranks have decided, which is the same on each; where they do not match, one of them prints it.

    It does so before the others hear of it: a launcher may end the whole job once the first of them has ended.
    """
    lock, mine = looked(rank, path, mode)
    size = rank.size or 1

    def decide(statements: Sequence[Any], documents: Dict[str, Any]) -> Decision:
        modes = {each["mode"] for each in statements}
        head = {"by": 0, "enforced": not modes.isdisjoint(assertion.ENFORCING)}
        try:
            whole, groups = reduction(
                statements, documents, size, lock, policy or None, overrides=overrides_count()
            )
        except EnvlockError as error:
            _tell(f"cannot decide: {error}", modes)
            kind = type(error).__name__
            return {**head, "error": {"kind": kind, "message": error.message, "hint": error.hint}}
        found = digest(whole)
        more: Decision = {}
        if board is not None and found is not whole:
            found = digest(whole, board.hand(f"report.{os.urandom(8).hex()}", whole.to_json(), ()))
            more = {"parts": parts(groups)}
        if not found.match:
            _tell(found.to_text(), modes)
        return {**head, "report": found.to_json(), **more}

    if board is None:
        return Gathered(decide([mine[0]], {mine[0]["root"]: mine[1]}), SAID.format(0))
    decision, is_mine = meet(board, rank.rank, size, mine, decide, timeout)
    by = decision.get("by")
    found = Gathered(
        decision, SAID.format(by) if by != rank.rank or is_mine or by == 0 else SAID_ELSEWHERE
    )
    if is_mine and found.report is not None:
        _tell(found.report.to_text(), {mode})
    if found.report is not None and any(each.rule == MISSING for each in found.report.findings):
        board.give_up()
    return found


def _tell(text: str, modes: Set[str]) -> None:
    """Print for all ranks, unless none of them is to look."""
    if modes != {OFF}:
        assertion.say(text)


def looked(
    rank: Rank, path: Optional[Path], mode: str = assertion.ENFORCING[0]
) -> Tuple[Optional[Dict[str, Any]], Tuple[Any, Any]]:
    """Return the lockfile, the statement and the document of this rank; one that fails states why.

    A lockfile is needed only where one is named. A rank of the mode `off` does not look, and states the mode.
    """
    from hashlib import sha256

    from envlock.runtime.collectors import snapshot
    from envlock.runtime.fleet.statement import canonical, failed, stated
    from envlock.runtime.launchers import traces
    from envlock.runtime.lockfile import read_file
    from envlock.runtime.proof import is_proven

    if mode == OFF:
        return None, (failed(rank, ""), None)
    try:
        assertion.mode_of_process()
        named = _named(path)
        if named is None:
            live = snapshot()
            return None, _with_texts(live, stated(rank, live, traces(os.environ)))
        lock = read_file(named)
        digest = sha256(canonical(lock).encode("ascii")).hexdigest()[:32]
        live = without_package(found_here(lock), lock.get("project", {}).get("name"))
        proven = bool(lock.get("numerics")) and is_proven(lock, live, os.environ)
        rules = lock["policy"]["overrides"] if overrides_count() else {}
        return lock, _with_texts(
            live, stated(rank, live, traces(os.environ), digest, rules, proven=proven)
        )
    except EnvlockError as error:
        return None, (failed(rank, error.message), None)


def _with_texts(live: Snapshot, made: Tuple[Any, Any]) -> Tuple[Any, Any]:
    """Return a statement, and its document with the paths that the facts hold as a SHA-256."""
    from envlock.runtime.fleet.texts import texts_of

    texts = texts_of(live.facts.get("environ", {}), os.environ)
    return (made[0], {**made[1], "texts": texts}) if texts else made


def _named(path: Optional[Path]) -> Optional[str]:
    """Return the file of the lockfile; None where none is named and none is near."""
    try:
        return assertion.locate(path)
    except LockfileError:
        return None


def place(
    engine: str, folder: Optional[str], environ: Mapping[str, str]
) -> Tuple[Rank, Optional[Board]]:
    """Return which rank this is, and where it meets the others; None for a rank that is alone.

    Raises:
        Disagreement: MPI and the launcher number this process differently.
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
