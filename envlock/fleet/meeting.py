"""Ranks meet at a board, a place that all of them read and write.

Rank 0 compares the statements, and every rank gets its verdict.

Rank 0 opens an attempt under a number that was never used before (`call`). Each of the others
answers it once with its statement (`NONCE/RANK`), and `NONCE.decision` ends it: the verdict of rank
0, or the withdrawal of a rank that gives up. The first decision counts for all, whichever rank made
it; docs/guides/fleet/index.md#all-or-none has the protocol.

A rank that has answered an attempt leaves it only with its decision, so no other rank can start
because of the answer of one that has given up. Before that it has promised nothing and may end:
rank 0 reports it as missing.
"""

from __future__ import annotations

import os
import time

from envlock.fleet import refusals
from envlock.fleet.statement import is_document, is_statement
from envlock.runtime import assertion
from envlock.runtime.assertion import ENFORCING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Any,
        Callable,
        Collection,
        Dict,
        List,
        Mapping,
        Optional,
        Protocol,
        Sequence,
        Set,
        Tuple,
    )

    from envlock.fleet.statement import Document, Stated, Statement
    from envlock.runtime.report import Report

    Decision = Dict[str, Any]
    """What ends an attempt; `by` is the rank that made it, `enforced` is whether one of the ranks
    refuses a mismatch, and one of these is its content:

    report   of all ranks, or of the one that has withdrawn, as JSON values
    error    what rank 0 could not do: the `kind` of the error, its `message` and `hint`
    again    why another attempt follows, for ranks that still wait
    pause    the most seconds until each of them has read it

    The report that all ranks read is a digest. If it leaves something out, `parts` has the part for
    each single environment, with the ranks that have it; these get it, and a rank finds its own
    part in `own`.
    """
    Outcome = Tuple[Decision, bool]
    """A decision, and whether this process has made it and therefore has to print it."""

    Decide = Callable[[Sequence[Statement], Mapping[str, Document]], Decision]
    """A function of the statements, and of the documents by root."""

    class Board(Protocol):
        """A place for values with names; a value is read either completely or not at all."""

        def post(self, name: str, value: object) -> str: ...

        def settle(self, name: str, value: object) -> bool:
            """Post a value unless the name has one; return whether this one is posted."""

        def peek(self, name: str) -> object:
            """Return a value; None if it is not posted yet."""

        def names(self, folder: str = "") -> Collection[str]:
            """Return the names of the values in a folder of names."""


FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.1
"""Seconds between two polls."""
CROWD_PAUSE, RANK_PAUSE = 1.5, 0.005
"""Seconds between two looks of many ranks: each has its share, up to where a rank asks a file
server twice a second."""
WAITED_SHARE = 0.33
"""Who has waited long, waits a third of that between two looks, up to CROWD_PAUSE: ranks of a small
job that begin together meet within 0.1 s, and one whose node pulls an image asks no file server
twenty times a second."""

MARGIN = 2.0
"""Seconds that a rank waits for the verdict longer than rank 0 waits for the ranks."""
ABSENT = "absent."


def meet(
    board: Board, rank: int, size: int, own: Stated, decide: Decide, timeout: float
) -> Outcome:
    """Return the decision, which is the same for each rank of an attempt, and whether to print it.

    A rank waits `timeout` seconds for rank 0 to arrive, and from then on as long as rank 0 waits
    for the others.

    Args:
        board: the one that the ranks of this job, and no others, use.
        rank: the number of this rank.
        size: the number of all ranks.
        own: the statement and the document of this rank.
        decide: compares the statements, and prints a mismatch; called by rank 0 alone, with the
            statements that arrived in time.
        timeout: seconds.
    """
    member: Member
    if rank == 0:
        member = Leader(board, rank, size, own, timeout)
    else:
        member = Follower(board, rank, size, own, timeout)
    try:
        return member.meet(decide)
    except BaseException as error:
        member.leave(error)
        raise


class Member:
    """A rank that meets the others.

    Attributes:
        statement, document: its own statement and facts; no document if it has not collected facts.
        nonce: the attempt that it has opened or answered; empty before that.
    """

    def __init__(self, board: Board, rank: int, size: int, own: Stated, timeout: float) -> None:
        self.board = board
        self.rank = rank
        self.size = size
        self.statement, self.document = own
        self.timeout = timeout
        self.nonce = ""

    def meet(self, decide: Decide) -> Outcome:
        """Return the decision, and whether this rank has to print it."""
        raise NotImplementedError

    def pause(self, seconds: float) -> Pause:
        """Return a pause between two polls, with a limit in seconds for all of them together."""
        longest = min(CROWD_PAUSE, max(LONGEST_PAUSE, RANK_PAUSE * self.size))
        return Pause(time.monotonic() + seconds, longest)

    def settle(self, nonce: str, decision: Decision) -> Outcome:
        """Decide an attempt unless it is decided; return the decision that counts.

        The first counts for all, whichever rank made it.
        """
        name = f"{nonce}.decision"
        if self.board.settle(name, decision):
            return decision, True
        pause = self.pause(MARGIN)
        # A network file system can report that a file exists before it shows the file.
        while True:
            found = self.board.peek(name)
            if isinstance(found, dict):
                return found, False
            if not pause.wait():
                return self.make_refusal(refusals.report_lost_decision(name)), True

    def make_refusal(self, report: Report) -> Decision:
        """Return the decision that no rank starts, with its report."""
        is_enforced = self.statement["mode"] in ENFORCING
        refusal = {"by": self.rank, "enforced": is_enforced, "report": report.to_json()}
        return self.add_pause(refusal, None)

    def add_pause(self, decision: Decision, pause: Optional[Pause]) -> Decision:
        """Return a decision with the longest pause of the ranks that wait for it.

        None of them has waited longer than the pauses of rank 0; without these, the longest pause
        of all is meant.
        """
        return {**decision, "pause": CROWD_PAUSE if pause is None else pause.find_longest()}

    def add_own_part(self, decision: Decision) -> Decision:
        """Return a decision with the part of this rank, if it has one."""
        root = self.statement["root"]
        parts = decision.get("parts")
        if not isinstance(parts, list) or root not in parts:
            return decision
        return {**decision, "own": self.board.peek(f"{self.nonce}/of.{root}")}

    def make_again(self, why: str) -> Decision:
        """Return the decision that another attempt follows."""
        return {"by": self.rank, "again": why}

    def leave(self, error: BaseException) -> None:
        """Withdraw, so that the others learn at once that this rank ends and why, and print it."""
        if not self.nonce:
            return
        report = refusals.report_interruption(self.rank, self.statement["node"], error)
        try:
            _, is_own = self.settle(self.nonce, self.make_refusal(report))
            if is_own:
                assertion.say(report.headline)
        except Exception as other:
            # The first error is raised; if the board does not answer, the others time out.
            assertion.say(f"{report.headline}; the other ranks have no word yet: {other}")


class Leader(Member):
    """Rank 0."""

    def meet(self, decide: Decide) -> Outcome:
        """Open attempts until one gets a decision other than that another attempt follows."""
        pause = self.pause(self.timeout)
        before = self._get_called()
        # Ranks that have answered an attempt wait for its decision, even if its rank 0 is gone.
        if before and self.board.peek(f"{before}.decision") is None:
            self.settle(before, self.make_again("rank 0 was started again"))
        while True:
            statements = self._open()
            found = self._collect(statements, pause)
            if found is None:
                found = self.add_pause(self._decide(decide, statements), pause)
            decision, _ = self.settle(self.nonce, found)
            if "again" not in decision:
                return self.add_own_part(decision), False
            if decision.get("by") == 0 or self._is_followed():
                return self._refuse_double()

    def _open(self) -> Dict[int, Statement]:
        """Open an attempt, and return the statements so far: its own."""
        self.nonce = os.urandom(8).hex()
        # Settled, not posted, so that a folder that cannot do this fails now and not at the end.
        self.board.settle(f"{self.nonce}/0", self.statement)
        call = {"root": self.statement["root"], "node": self.statement["node"]}
        self.board.post("call", {"nonce": self.nonce, **call})
        return {0: self.statement}

    def _get_called(self) -> str:
        """Return the attempt that is open, or was the last one."""
        return get_nonce(self.board.peek("call"))

    def _is_followed(self) -> bool:
        """Return whether another rank 0 has opened an attempt in the meantime."""
        return self._get_called() not in ("", self.nonce)

    def _collect(self, statements: Dict[int, Statement], pause: Pause) -> Optional[Decision]:
        """Add the statements that arrive in time; return a decision if one is made in the meantime."""
        while True:
            decision = self.board.peek(f"{self.nonce}.decision")
            if isinstance(decision, dict):
                return decision
            if self._is_followed():
                return self.make_again("another rank 0 has opened an attempt")
            self._add_statements(statements)
            if len(statements) == self.size or not pause.wait():
                return None

    def _add_statements(self, statements: Dict[int, Statement]) -> None:
        """Add the statements that have arrived since the last poll."""
        there = self.board.names(self.nonce)
        for rank in range(1, self.size):
            if rank in statements or str(rank) not in there:
                continue
            found = self.board.peek(f"{self.nonce}/{rank}")
            if is_statement(found) and found["rank"] == rank:
                statements[rank] = found

    def _decide(self, decide: Decide, statements: Dict[int, Statement]) -> Decision:
        """Return the verdict on the statements, and give each rank the part for its environment."""
        ordered = [statements[rank] for rank in sorted(statements)]
        decision = decide(ordered, self._get_documents(ordered))
        if "parts" not in decision:
            return decision
        for root, part in decision["parts"].items():
            self.board.post(f"{self.nonce}/of.{root}", part)
        return {**decision, "parts": sorted(decision["parts"])}

    def _refuse_double(self) -> Outcome:
        """Refuse because there is a second rank 0, and end its attempt unless that is decided.

        The ranks of that attempt are those of this job.
        """
        report = refusals.report_double(0, f"once on {self.statement['node']}")
        decision = self.make_refusal(report)
        if self._is_followed():
            self.board.settle(f"{self._get_called()}.decision", decision)
        return decision, True

    def _get_documents(self, statements: List[Statement]) -> Dict[str, Document]:
        """Return the documents of the statements, by root; malformed ones are skipped."""
        documents: Dict[str, Document] = {}
        if self.document is not None:
            documents[self.statement["root"]] = self.document
        for root in {statement["root"] for statement in statements}:
            if root and root not in documents:
                document = self.board.peek(f"facts.{root}")
                if is_document(document):
                    documents[root] = document
        return documents


class Follower(Member):
    """Any other rank."""

    def __init__(self, board: Board, rank: int, size: int, own: Stated, timeout: float) -> None:
        super().__init__(board, rank, size, own, timeout)
        self._pause = self.pause(timeout)
        self._seen: Set[str] = set()
        self._leader_node = ""
        self._has_answered = False

    def meet(self, decide: Decide) -> Outcome:
        """Answer attempts until one gets a decision other than that another attempt follows."""
        absent = 0
        for name in self.board.names():
            if name.startswith(ABSENT):
                absent += 1
        while True:
            outcome = self._look()
            if outcome is None and not self._pause.wait():
                outcome = self._withdraw()
                if outcome is None:
                    outcome = self._give_up(absent)
            if outcome is not None:
                return outcome

    def _look(self) -> Optional[Outcome]:
        """Return the decision of the attempt that this rank has answered; answer a new attempt."""
        # The decision is read before a new call: an answer counts until its attempt is decided.
        decision = self._find_decision()
        if decision is not None:
            return self._accept(decision, is_own=False)
        call = self.board.peek("call")
        nonce = get_nonce(call)
        if not nonce or nonce in self._seen:
            return None
        if self.nonce:
            again = self.make_again("rank 0 has opened another attempt")
            decision, is_own = self.settle(self.nonce, again)
            outcome = self._accept(decision, is_own=is_own)
            if outcome is not None:
                return outcome
        self._seen.add(nonce)
        if self.board.peek(f"{nonce}.decision") is not None or not isinstance(call, dict):
            return None
        return self._answer(nonce, call)

    def _find_decision(self) -> Optional[Decision]:
        """Return the decision of the attempt that this rank has answered, if there is one."""
        # Also before the first attempt: on NFS, listing a folder is what makes its new files
        # visible.
        there = self.board.names()
        name = f"{self.nonce}.decision"
        if not self.nonce or name not in there:
            return None
        decision = self.board.peek(name)
        if not isinstance(decision, dict):
            return None
        return decision

    def _answer(self, nonce: str, call: Dict[str, object]) -> Optional[Outcome]:
        """Answer an attempt; return its decision if the answer leads to one."""
        self.nonce, self._leader_node = nonce, str(call.get("node"))
        # The time limit starts here: rank 0 has called before this, and decides before the limit
        # ends.
        self._pause = self.pause(self.timeout + MARGIN)
        root = self.statement["root"]
        # The facts are posted before the answer: rank 0 may read them as soon as it has the answer.
        if self.document is not None and root != call.get("root"):
            self.board.post(f"facts.{root}", self.document)
        is_first = self.board.settle(f"{nonce}/{self.rank}", self.statement)
        has_answered, self._has_answered = self._has_answered, True
        if is_first:
            return None
        return self._refuse_double(nonce, has_answered)

    def _refuse_double(self, nonce: str, has_answered: bool) -> Optional[Outcome]:
        """End an attempt that another process has answered with the number of this rank."""
        other = self.board.peek(f"{nonce}/{self.rank}")
        place = other["node"] if is_statement(other) else "another node"
        report = refusals.report_double(self.rank, f"on {self.statement['node']} and on {place}")
        refusal = self.make_refusal(report)
        # A process with this number may have died and been restarted: the next attempt then has no
        # answer from it.
        own = refusal if has_answered else self.make_again(f"rank {self.rank} was started again")
        decision, _ = self.settle(nonce, own)
        self.nonce = ""
        if "again" in decision:
            return None
        # An existing verdict does not count this process.
        return refusal, True

    def _accept(self, decision: Decision, *, is_own: bool) -> Optional[Outcome]:
        """Return a decision, unless another attempt follows it."""
        if "again" not in decision:
            return self.add_own_part(decision), is_own
        self.nonce = ""
        return None

    def _withdraw(self) -> Optional[Outcome]:
        """Withdraw from an attempt that rank 0 does not decide; return its decision, which may just
        have arrived.
        """
        if not self.nonce:
            return None
        report = refusals.report_no_verdict(self._leader_node, self.timeout)
        decision, is_own = self.settle(self.nonce, self.make_refusal(report))
        return self._accept(decision, is_own=is_own)

    def _give_up(self, absent: int) -> Outcome:
        """Give up because rank 0 has not called; no rank depends on this one.

        The first of the waiting ranks prints it. `absent` is how many such entries the board had
        when this rank arrived: ranks that wait together share a number, and a later job gets the
        next one.
        """
        said = find_headline(self.board)
        report = (
            refusals.report_decided(self.timeout, said)
            if said
            else refusals.report_no_call(self.timeout)
        )
        # Last, as the rank that has this name is the one that prints.
        is_first = self.board.settle(f"{ABSENT}{absent}", self.rank)
        return self.make_refusal(report), is_first


def find_headline(board: Board) -> str:
    """Return the headline of the last decision on a board; empty unless the ranks have started."""
    nonce = get_nonce(board.peek("call"))
    if not nonce:
        return ""
    decision = board.peek(f"{nonce}.decision")
    report = decision.get("report") if isinstance(decision, dict) else None
    if not isinstance(report, dict) or report.get("match") is not True:
        return ""
    return str(report.get("headline"))


def get_nonce(call: object) -> str:
    """Return the attempt that a call opens; empty if the call is malformed."""
    if not isinstance(call, dict):
        return ""
    nonce = call.get("nonce")
    if not isinstance(nonce, str) or len(nonce) > 32:
        return ""
    # It becomes part of a file name.
    if not (nonce.isalnum() and nonce.isascii()):
        return ""
    return nonce


class Pause:
    """Waits between two polls, longer each time."""

    def __init__(self, deadline: float, longest: float = LONGEST_PAUSE) -> None:
        self.deadline = deadline
        self.seconds = FIRST_PAUSE
        self.longest = longest
        self._start = time.monotonic()

    def wait(self) -> bool:
        """Wait; return whether there is time for another look."""
        now = time.monotonic()
        left = self.deadline - now
        if left <= 0:
            return False
        time.sleep(min(self.seconds, left))
        self.seconds = min(self.seconds * 1.5, self.find_longest(now))
        return True

    def find_longest(self, now: Optional[float] = None) -> float:
        """Return the longest pause of a rank that has waited as long, in seconds."""
        if now is None:
            now = time.monotonic()
        return max(self.longest, min(CROWD_PAUSE, WAITED_SHARE * (now - self._start)))
