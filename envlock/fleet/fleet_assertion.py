"""`assert_fleet()`: line 1 of a script that runs as many ranks. Either all of them continue, or
none does.
"""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from weakref import WeakSet

from envlock.fleet import mpi
from envlock.fleet.check_settings import read_policy
from envlock.fleet.digest import digest, parse_report, split_by_root
from envlock.fleet.folder import Folder
from envlock.fleet.meeting import CROWD_PAUSE, find_headline, get_nonce, meet
from envlock.fleet.node_sets import Places, group_by
from envlock.fleet.problems import MISSING
from envlock.fleet.ranks import OWN, Rank, count_restarts, find_rank
from envlock.fleet.reduction import choose_policy, reduction
from envlock.fleet.refusal_end import wait_for_readers
from envlock.fleet.statement import canonical, make_failure, make_statement
from envlock.fleet.texts import collect_texts
from envlock.runtime import assertion
from envlock.runtime.assertion import DEEP, OFF
from envlock.runtime.collectors import COLLECTORS, Snapshot, take_snapshot
from envlock.runtime.errors import (
    EnvironmentMismatch,
    EnvlockError,
    FactError,
    LockfileError,
    UsageError,
    WriteError,
)
from envlock.runtime.host import Host
from envlock.runtime.judgement import (
    LOADED,
    add_files,
    collect_here,
    has_overrides_enabled,
    remove_package,
)
from envlock.runtime.launchers import collect_traces
from envlock.runtime.lockfile import read_file
from envlock.runtime.machine_proof import is_proven
from envlock.runtime.report import Finding, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import (
        Callable,
        List,
        Mapping,
        NoReturn,
        Optional,
        Sequence,
        Set,
        Tuple,
        Type,
        Union,
    )

    from envlock.fleet.meeting import Decision
    from envlock.fleet.statement import Document, Stated, Statement
    from envlock.runtime.facts import Document as Lock

    Path = Union[str, os.PathLike[str]]

TIMEOUT = 120.0
"""Seconds."""
ALONE = {"rank": 0, "size": 1, "node": None, "job": None}
HINT = "; "
"""What separates the problem of a rank from what to do about it."""
WARNED = "warning: ENVLOCK_MODE=warn, so this does not stop the program"
SAID = "rank {} has printed the report"
SAID_ELSEWHERE = "another rank has printed the report"
ATTEMPT = "ENVLOCK_FLEET_ATTEMPT"
"""The variable by which the program that a rank has become knows that it belongs to that rank."""
PRINTED = "printed"
"""The digest of the report that was printed last for a job, in its folder."""
NO_RESTART = "no restart changes an environment: start the job without them"
ERRORS = {kind.__name__: kind for kind in (UsageError, LockfileError, FactError)}


def assert_fleet(
    path: Optional[Path] = None,
    policy: Optional[str] = None,
    *,
    timeout: float = TIMEOUT,
    folder: Optional[Path] = None,
    rank: Optional[int] = None,
    size: Optional[int] = None,
    node: Optional[str] = None,
    job: Optional[str] = None,
) -> Optional[Report]:
    """Return the report if every rank has the locked environment, the same as all others; else
    raise.

    Every rank of the job must call it, and equally often. All of them return, or all of them raise.
    Without a lockfile, ranks are compared with one another. A process that `multiprocessing`
    spawns, which repeats the line, is compared with the lockfile only.

    Args:
        path: the lockfile, as for `assert_locked()`.
        policy: how strictly to compare; the lockfile's own, or `strict` without a lockfile, when
            not given.
        timeout: seconds that a rank waits for rank 0 to arrive, and that rank 0 waits for the
            others.
        folder: a folder that all nodes share, where ranks meet; else `$ENVLOCK_FLEET_DIR`, else
            `.envlock-fleet` in the current folder.
        rank, size, node, job: the number of this process, the number of all processes, the name of
            the machine, and a name that no other job has; else `$ENVLOCK_FLEET_RANK` and so on,
            else the numbers of MPI if the program has imported mpi4py, else the values of the
            launcher.

    Returns:
        The report; None if `ENVLOCK_MODE=off` switched the check off.

    Raises:
        EnvironmentMismatch: an environment differs, or a rank did not answer in time. The error is
            the same on every rank; one of them has printed the report to stderr. If the program
            does not catch it, the process ends with the exit code of the error and without a
            traceback. With `ENVLOCK_MODE=warn` on all ranks, nothing is raised. What a rank loads
            is compared at the end of its `import tensorflow`, which raises on that rank alone.
        UsageError: there is no such policy, or no launcher says which rank this is.
        LockfileError: the lockfile of rank 0 names a policy or a rule that does not exist.
        WriteError: the shared folder cannot be written.
    """
    where = os.fspath(folder) if folder is not None else None
    given: Mapping[str, object] = {"rank": rank, "size": size, "node": node, "job": job}
    if _is_spawned(sys._getframe(1)):
        given = ALONE
    environ = dict(os.environ)
    for key, value in given.items():
        if value is not None:
            environ[OWN[key]] = str(value)
    mode = get_mode()
    try:
        own, board = place(where, environ)
        chosen = read_policy(policy, os.environ)
        verdict = gather_report(own, board, path, chosen, timeout, mode)
    except (UsageError, WriteError) as error:
        # A rank with the mode `off` does not have to be able to communicate.
        if mode != OFF:
            raise _keep_code(error) from None
        return _go_on(None, mode)
    report = enforce(verdict, mode, is_speaker=own.rank == 0)
    if report is not None and report.match:
        _look_again(path, chosen)
    return report


def _look_again(path: Optional[Path], policy: Optional[str]) -> None:
    """Let this rank compare what it has loaded, once what computes is imported, with its lockfile.

    All that files say was decided by all ranks, which accept more than one does: it counts as locked.
    """
    lockfile = _find_lockfile(path)
    lock = read_file(lockfile) if lockfile is not None else {}
    if lockfile is None or LOADED not in lock["facts"]:
        return
    facts = {**lock["facts"], "python": COLLECTORS["python"](Host())}
    live = Snapshot(facts, lock["unavailable"])
    assertion.watch(lockfile, lock, live, policy)


def _is_spawned(caller: FrameType) -> bool:
    """Return whether the caller is a script that multiprocessing runs again in a process that it
    spawns, which is not a rank.
    """
    return caller.f_globals.get("__name__") == "__mp_main__" and caller.f_code.co_name == "<module>"


def get_mode() -> str:
    """Return what ENVLOCK_MODE says; `enforce` where there is no such mode."""
    try:
        return assertion.mode_of_process()
    except UsageError:
        # The statement of this rank has the error, so that all ranks learn it.
        return assertion.ENFORCING[0]


def enforce(verdict: Verdict, mode: str, *, is_speaker: bool) -> Optional[Report]:
    """Return the report to a rank that goes on, or refuse.

    If one of the ranks enforces, all of them do.
    """
    is_enforced = verdict.is_enforced or mode in assertion.ENFORCING
    report = verdict.report
    if verdict.error is not None and (is_enforced or mode != OFF):
        _raise(verdict.error, verdict.pause)
    if report is not None and not report.match and is_enforced:
        message = f"{report.headline} ({verdict.speaker})"
        _raise(EnvironmentMismatch(message, report), verdict.pause)
    return _go_on(report, mode, is_speaker=is_speaker)


def _go_on(report: Optional[Report], mode: str, *, is_speaker: bool = True) -> Optional[Report]:
    if mode == OFF:
        assertion.say("warning: ENVLOCK_MODE=off, the environment is not verified")
        return None
    if is_speaker and report is not None and not report.match:
        assertion.say(WARNED)
    return report


def _raise(error: EnvlockError, pause: float) -> NoReturn:
    """Raise the refusal of this rank after `pause` seconds, in which the others come to theirs."""
    wait_for_readers(pause, error.exit_code)
    raise _silence(error)


def _silence(error: EnvlockError) -> EnvlockError:
    """Return the error; if it is not caught, the process ends with its exit code and without a
    traceback.

    One rank has already printed the report for all; the tracebacks of the others would bury it.
    """
    _printed.add(error)
    _install_hook()
    return error


_printed: WeakSet[EnvlockError] = WeakSet()
"""The errors whose report has been printed. Weak references: a process that goes on must not keep
each report.
"""
_unprinted: WeakSet[EnvlockError] = WeakSet()
"""Other errors of this module, which end the process with their own exit code as well: Python's is
1, that of a mismatch.
"""
_hooks: List[Callable[..., object]] = []
"""The hook of this module for uncaught errors, once it is installed."""


def _keep_code(error: EnvlockError) -> EnvlockError:
    """Return the error; if it is not caught, the process ends with its exit code."""
    _unprinted.add(error)
    _install_hook()
    return error


def _install_hook() -> None:
    """Let an error that has been printed end the process without a traceback.

    A program can catch any number of refusals, so the hook is installed once, unless the program
    has replaced it since.
    """
    if sys.excepthook in _hooks:
        return
    before = sys.excepthook

    def end(
        kind: Type[BaseException], value: BaseException, trace: Optional[TracebackType]
    ) -> None:
        is_interactive = hasattr(sys, "ps1") or bool(sys.flags.inspect)
        if isinstance(value, EnvlockError) and not is_interactive:
            if value in _printed:
                sys.exit(value.exit_code)
            if value in _unprinted:
                before(kind, value, trace)
                sys.exit(value.exit_code)
        before(kind, value, trace)

    _hooks[:] = [end]
    sys.excepthook = end


class Verdict:
    """The common decision of all ranks.

    Attributes:
        report: on all ranks; None if rank 0 has failed.
        error: why rank 0 has failed; None if it has not.
        is_enforced: whether a rank refuses to continue after a mismatch.
        pause: the most seconds until each rank has read it.
        speaker: which rank has printed it, as a clause.
    """

    __slots__ = ("error", "is_enforced", "pause", "report", "speaker")

    def __init__(self, decision: Decision, speaker: str) -> None:
        """Read a decision.

        Raises:
            UsageError: a different version of envlock wrote it.
        """
        self.report: Optional[Report] = None
        self.error: Optional[EnvlockError] = None
        self.is_enforced = decision.get("enforced") is True
        self.pause = 0.0
        pause = decision.get("pause")
        if isinstance(pause, float) and 0 < pause <= CROWD_PAUSE:
            self.pause = pause
        self.speaker = speaker
        error = decision.get("error")
        try:
            if error is not None:
                hint = None if error["hint"] is None else str(error["hint"])
                self.error = ERRORS[error["kind"]](str(error["message"]), hint=hint)
            else:
                self.report = parse_report(decision["report"])
                own = decision.get("own") or {"differs": []}  # a file server can show it late
                self.report.notes += [f"this rank: {message}" for message in own["differs"]]
        except (KeyError, TypeError, ValueError):
            hint = "install the same version of envlock on all nodes"
            raise UsageError("cannot read what rank 0 has decided", hint=hint) from None

    @property
    def exit_code(self) -> int:
        """The exit code of a process that starts only if all ranks match."""
        answer = self.error or self.report
        if answer is None:
            return 0
        return answer.exit_code


def gather_report(
    rank: Rank,
    board: Optional[Folder],
    path: Optional[Path],
    policy: Optional[str],
    timeout: float,
    mode: str = assertion.ENFORCING[0],
) -> Verdict:
    """Return the decision of all ranks, which is the same on each; if they do not match, one of
    them prints it.

    It does so before the others learn it: a launcher may end the whole job as soon as the first
    rank has ended.
    """
    lock, own = inspect_rank(rank, path, mode, policy)
    size = rank.size or 1

    def decide(statements: Sequence[Statement], documents: Mapping[str, Document]) -> Decision:
        return _decide(board, size, lock, policy or None, statements, documents)

    statement, document = own
    if board is None:
        documents = {}
        if document is not None:
            documents[statement["root"]] = document
        return Verdict(decide([statement], documents), SAID.format(0))
    _say_decided(board, rank.rank, timeout, mode)
    decision, is_own = meet(board, rank.rank, size, own, decide, timeout)
    by = decision.get("by")
    # Rank 0 prints everything that it decides, and a rank that withdraws prints its own withdrawal.
    speaker = SAID_ELSEWHERE if by == rank.rank and by != 0 and not is_own else SAID.format(by)
    verdict = Verdict(decision, speaker)
    if verdict.report is not None:
        if is_own:
            _tell(verdict.report.to_text(), {mode})
        if any(finding.rule == MISSING for finding in verdict.report.findings):
            mpi.abort_at_end()
        if verdict.report.match:
            _hold(board, rank.rank)
    return verdict


def _hold(board: Folder, rank: int) -> None:
    """Show, as long as this process lives, that the ranks of the last verdict run."""
    nonce = get_nonce(board.peek("call"))
    board.hold(nonce, rank)
    _attempts.add((board.path, nonce, rank))


_attempts: Set[Tuple[str, str, int]] = set()
"""The attempts that this process has taken part in."""


def _say_decided(board: Folder, rank: int, timeout: float, mode: str) -> None:
    """Say it if the job of a rank was decided, and runs, without this process.

    It still waits: rank 0 may call again, and then this process is a rank like the others.
    """
    if rank == 0 or mode == OFF:
        return
    nonce = get_nonce(board.peek("call"))
    # A program that a rank has become, or has started, calls again.
    if (board.path, nonce, rank) in _attempts or os.environ.get(ATTEMPT) == nonce:
        return
    if nonce and board.peek(f"{nonce}/{rank}") is not None and board.is_held(nonce):
        assertion.say(
            f"this job was decided before this process of rank {rank} came "
            f"({find_headline(board)}); waiting {timeout:g} s for rank 0 to call again"
        )


def _decide(
    board: Optional[Folder],
    size: int,
    lock: Optional[Lock],
    policy: Optional[str],
    statements: Sequence[Statement],
    documents: Mapping[str, Document],
) -> Decision:
    """Return the decision of rank 0, after printing a mismatch, which must happen before any other
    rank learns it.
    """
    modes = {statement["mode"] for statement in statements}
    decision: Decision = {"by": 0, "enforced": not modes.isdisjoint(assertion.ENFORCING)}
    try:
        _raise_misuse(statements)
        whole, groups = reduction(
            statements, documents, size, lock, policy, overrides=has_overrides_enabled()
        )
    except EnvlockError as error:
        _tell(f"cannot decide: {error}", modes)
        kind = type(error).__name__
        decision["error"] = {"kind": kind, "message": error.message, "hint": error.hint}
        return decision
    report = digest(whole)
    # If the digest leaves something out, the whole report is in a file that it names.
    if board is not None and report is not whole:
        place = board.post(f"report.{os.urandom(8).hex()}", whole.to_json())
        report = digest(whole, place)
        decision["parts"] = split_by_root(groups)
    if not report.match:
        text = report.to_text()
        if board is not None and _is_repeated(board, text, count_restarts(os.environ)):
            text = f"{report.headline}, as before this restart; {NO_RESTART}"
        _tell(text, modes)
    decision["report"] = report.to_json()
    return decision


def _raise_misuse(statements: Sequence[Statement]) -> None:
    """Raise the error of ranks that have a setting which does not exist, for all ranks.

    Raises:
        UsageError: a rank has such a setting.
        LockfileError: its lockfile has.
    """
    misused = [each for each in statements if each.get("misused") in ERRORS]
    for members in group_by(misused, lambda each: (each["misused"], each["problem"]))[:1]:
        # What rank 0 has, the whole job has, as a rule.
        where = f"{Places().describe(members)}: " if members[0]["rank"] != 0 else ""
        problem, _, hint = members[0]["problem"].partition(HINT)
        raise ERRORS[members[0]["misused"]](f"{where}{problem}", hint=hint or None)


def _is_repeated(board: Folder, text: str, restarts: int) -> bool:
    """Return whether the same report was printed before the launcher started this job again.

    An elastic launcher restarts refused ranks again and again, because it cannot know that a
    restart does not fix an environment; each restart would print the whole report once more.
    """
    report = {"sha256": sha256(text.encode("utf-8", "surrogateescape")).hexdigest()}
    before = board.peek(PRINTED)
    board.post(PRINTED, report)
    return restarts > 0 and before == report


def _tell(text: str, modes: Set[str]) -> None:
    """Print for all ranks, unless every rank has the mode `off`."""
    if modes != {OFF}:
        assertion.say(text)


def inspect_rank(
    rank: Rank,
    path: Optional[Path],
    mode: str = assertion.ENFORCING[0],
    policy: Optional[str] = None,
    *,
    does_judge: bool = True,
) -> Tuple[Optional[Lock], Stated]:
    """Return the lockfile, and the statement and the document of this rank; a rank that fails
    states why.

    A lockfile is required only if one is named. A rank with the mode `off` collects nothing, and
    states its mode.

    Args:
        rank: the rank.
        path: the lockfile.
        mode: whether this rank collects anything.
        policy: the one that it asks for; the lockfile's own when not given.
        does_judge: whether it also asks for the lockfile's policy where none is given, rather than
            leave that to who compares it later.
    """
    if mode == OFF:
        return None, (make_failure(rank, ""), None)
    try:
        assertion.mode_of_process()
        named = _find_lockfile(path)
        overrides = has_overrides_enabled()
        lock = read_file(named) if named is not None else None
        try:
            asked = choose_policy(lock, policy, overrides=overrides).name
        except LockfileError as error:
            return None, (_make_misuse(rank, error), None)
        if policy is None and not does_judge:
            asked = ""
        files = _compare_files(lock, named, policy, rank.mode)
        if lock is None:
            live = take_snapshot()
            own = make_statement(
                rank,
                live,
                collect_traces(os.environ),
                policy=asked,
                overrides=overrides,
                files=files,
            )
            return None, _add_texts(live, own)
        digest_of_lock = sha256(canonical(lock).encode("ascii")).hexdigest()[:32]
        live = remove_package(collect_here(lock), lock.get("project", {}).get("name"))
        proven = bool(lock.get("numerics")) and is_proven(lock, live, os.environ)
        rules: Mapping[str, str] = lock["policy"]["overrides"] if overrides else {}
        own = make_statement(
            rank,
            live,
            collect_traces(os.environ),
            digest_of_lock,
            rules,
            policy=asked,
            overrides=overrides,
            proven=proven,
            files=files,
        )
        return lock, _add_texts(live, own)
    except UsageError as error:
        return None, (_make_misuse(rank, error), None)
    except EnvlockError as error:
        return None, (make_failure(rank, error.message), None)


def _make_misuse(rank: Rank, error: EnvlockError) -> Statement:
    """Return the statement of a rank that has a setting which does not exist."""
    problem = error.message
    if error.hint:
        problem += HINT + error.hint
    return make_failure(rank, problem, misused=type(error).__name__)


def _compare_files(
    lock: Optional[Lock], lockfile: Optional[str], policy: Optional[str], mode: str
) -> List[Finding]:
    """Return what differs in files that only this rank can read: with the mode `deep` those that are
    installed, and the data of the lockfile.
    """
    is_deep = mode == DEEP
    report: Report = Report([], headline="")
    if is_deep:
        report = add_files(report, lock or {})
    if lock is not None and lockfile is not None and "data" in lock:
        # Not at the top: most lockfiles have no data.
        from envlock.runtime.input_data import add_data

        report = add_data(report, lock, lockfile, policy, deep=is_deep)
    return report.findings


def _add_texts(live: Snapshot, own: Tuple[Statement, Document]) -> Stated:
    """Return a statement, and its document with the paths whose SHA-256 is in the facts."""
    statement, document = own
    texts = collect_texts(live.facts.get("environ", {}), os.environ)
    if texts:
        document = {**document, "texts": texts}
    return statement, document


def _find_lockfile(path: Optional[Path]) -> Optional[str]:
    """Return the path of the lockfile; None if none is named and none is found nearby."""
    try:
        return assertion.locate(path)
    except LockfileError:
        return None


def place(folder: Optional[str], environ: Mapping[str, str]) -> Tuple[Rank, Optional[Folder]]:
    """Return the rank of this process and the folder where it meets the others; None for a single
    rank.

    Raises:
        UsageError: no launcher says which rank of how many this is.
        WriteError: the shared folder cannot be written.
    """
    numbers = {name: value for name, value in mpi.get_numbers().items() if not environ.get(name)}
    rank = find_rank({**environ, **numbers}, os.uname().nodename)
    if rank.size is None:
        raise UsageError("cannot find how many ranks the job has", hint=f"set {OWN['size']}")
    if rank.size == 1:
        return rank, None
    return rank, Folder(folder, rank.job)
