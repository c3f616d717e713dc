"""Ranks meet at a board, a place that all of them read and write: rank 0 reduces, and everybody gets its verdict.

Rank 0 opens an attempt under a number that was never used (`call`). The others answer it once each with their
statements (`NONCE/RANK`), and `NONCE.decision` ends it: the verdict of rank 0, or the withdrawal of a rank that gives
up. The first decision counts for all, whoever made it; docs/fleet.md#all-or-none has the protocol.

A rank that has answered an attempt leaves it by its decision only, so no other rank can start on an answer of one that
has given up. Before that it has promised nothing, and may end: rank 0 misses it.
"""

from __future__ import annotations

import os
import time

from envlock.runtime.assertion import ENFORCING
from envlock.runtime.fleet import refusals
from envlock.runtime.fleet.statement import is_document, is_statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Any,
        Callable,
        Collection,
        Dict,
        List,
        Optional,
        Protocol,
        Sequence,
        Set,
        Tuple,
    )

    from envlock.runtime.report import Report

    Decision = Dict[str, Any]
    """What ends an attempt; `by` is the rank that made it, `enforced` whether one of those that have a part in it
    refuses what does not match, and one of these says what it is:

    report   of all ranks, or of the one that has withdrawn, as JSON values
    error    what rank 0 could not do: the `kind` of the error, its `message` and `hint`
    again    why another attempt follows, for whoever still waits

    The report that all ranks read is a digest. Where it leaves something out, `parts` are what is of one environment
    only, with the ranks that have it; they are handed to these, and a rank finds its own as `own`.
    """
    Decide = Callable[[Sequence[Any], Dict[str, Any]], Decision]
    """From statements, and documents by root."""

    class Board(Protocol):
        """Where values lie by their names; a value is seen whole or not at all.

        `is_mortal`: it ends with the process of rank 0.
        """

        is_mortal: bool

        def post(self, name: str, value: Any) -> None: ...

        def hand(self, name: str, value: Any, ranks: Sequence[int]) -> str:
            """Post a value that these ranks alone ask for; return the file that people can read it in, if any."""

        def settle(self, name: str, value: Any) -> bool:
            """Post a value unless the name has one; return whether it is this one that the name has."""

        def peek(self, name: str) -> Any:
            """Return a value; None where there is none yet."""

        def names(self, folder: str = "") -> Optional[Collection[str]]:
            """Return which values there are in a folder of names; None where only asking for each can tell."""

        def give_up(self) -> None:
            """Keep this process's end from waiting for a rank that is lost."""


FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.1  # seconds between two looks
CROWD_PAUSE, RANK_PAUSE = 1.5, 0.005
"""Seconds between two looks of many ranks: each has its share, up to where a rank asks a file server twice a second."""

MARGIN = (
    2.0  # seconds that a rank waits for the verdict beyond those that rank 0 waits for the ranks
)
LISTENING = 10.0  # seconds, at most, that rank 0 keeps up a board that ends with it
ABSENT = "absent."


def meet(
    board: Board, rank: int, size: int, mine: Tuple[Any, Any], decide: Decide, timeout: float
) -> Tuple[Decision, bool]:
    """Return the decision, which is the same for each rank of an attempt; and whether this rank has to print it.

    A rank waits `timeout` seconds for rank 0 to come, and from then on as long as rank 0 waits for the others.

    Args:
        board: where the ranks of this job, and no others, meet.
        rank: this one.
        size: how many there are.
        mine: the statement and the document of this rank; None for the document of a rank that has none.
        decide: reduces, and prints what does not match; called by rank 0 alone, with the statements that came in time.
        timeout: seconds.
    """
    kind = Leader if rank == 0 else Follower
    member = kind(board, rank, size, mine, timeout)
    try:
        return member.meet(decide)
    except BaseException as error:
        member.leave(error)
        raise


class Member:
    """A rank that meets the others.

    Attributes:
        nonce: the attempt that it has opened or answered; empty where there is none.
    """

    def __init__(
        self, board: Board, rank: int, size: int, mine: Tuple[Any, Any], timeout: float
    ) -> None:
        self.board = board
        self.rank = rank
        self.size = size
        self.mine = mine
        self.timeout = timeout
        self.nonce = ""

    def meet(self, decide: Decide) -> Tuple[Decision, bool]:
        """Return the decision, and whether this rank has to print it."""
        raise NotImplementedError

    def pause(self, seconds: float) -> Pause:
        """Return what waits between two looks, for so many seconds in all."""
        return Pause(
            time.monotonic() + seconds, min(CROWD_PAUSE, max(LONGEST_PAUSE, RANK_PAUSE * self.size))
        )

    def settled(self, nonce: str, decision: Decision) -> Tuple[Decision, bool]:
        """Return the decision of an attempt, which is this one unless there is one; and whether it is this one."""
        name = f"{nonce}.decision"
        if self.board.settle(name, decision):
            return decision, True
        pause = self.pause(MARGIN)
        while True:  # a network file system can know that there is a file before it shows it
            found = self.board.peek(name)
            if isinstance(found, dict):
                return found, False
            if not pause.over():
                return self.reported(refusals.lost(name)), True

    def reported(self, report: Report) -> Decision:
        """Return the decision that nobody starts, with its report."""
        return {
            "by": self.rank,
            "enforced": self.mine[0]["mode"] in ENFORCING,
            "report": report.to_json(),
        }

    def with_own(self, decision: Decision) -> Decision:
        """Return a decision with the part of this rank, if it has one."""
        root = self.mine[0]["root"]
        parts = decision.get("parts")
        is_given = isinstance(parts, list) and root in parts
        return (
            {**decision, "own": self.board.peek(f"{self.nonce}/of.{root}")}
            if is_given
            else decision
        )

    def again(self, why: str) -> Decision:
        """Return the decision that another attempt follows."""
        return {"by": self.rank, "again": why}

    def leave(self, error: BaseException) -> None:
        """Withdraw, so that the others hear at once that this rank ends, and why; and print it."""
        from envlock.runtime import assertion

        if not self.nonce:
            return
        report = refusals.interrupted(self.rank, self.mine[0]["node"], error)
        try:
            if self.settled(self.nonce, self.reported(report))[1]:
                assertion.say(report.headline)
        except Exception as other:  # the first one is raised; with a board that does not answer, the others time out
            assertion.say(f"{report.headline}; the other ranks have no word yet: {other}")


class Leader(Member):
    """Rank 0."""

    def meet(self, decide: Decide) -> Tuple[Decision, bool]:
        """Open attempts until one is decided by something else than that another one follows."""
        pause = self.pause(self.timeout)
        before = self._called()
        if before and self.board.peek(f"{before}.decision") is None:
            self.settled(before, self.again("rank 0 was started again"))
        while True:
            statements = self._open()
            found = self._collect(statements, pause)
            if found is None:
                ordered = [statements[rank] for rank in sorted(statements)]
                found = decide(ordered, self._documents(ordered))
                for root, part in found.get("parts", {}).items():
                    self.board.hand(f"{self.nonce}/of.{root}", part, part["ranks"])
                found = {**found, "parts": sorted(found["parts"])} if "parts" in found else found
            decision, _ = self.settled(
                self.nonce, found
            )  # what a rank has decided, too: messages go to rank 0 only
            if "again" not in decision:
                self._listen(sorted(statements)[1:])
                return self.with_own(decision), False
            if decision.get("by") == 0 or self._is_followed():
                return self._doubled()

    def _open(self) -> Dict[int, Any]:
        """Open an attempt, and return the statements there are: its own."""
        statement = self.mine[0]
        self.nonce = os.urandom(8).hex()
        self.board.settle(
            f"{self.nonce}/0", statement
        )  # a folder that cannot do this says so now, not in the end
        self.board.post(
            "call", {"nonce": self.nonce, "root": statement["root"], "node": statement["node"]}
        )
        return {0: statement}

    def _called(self) -> str:
        """Return the attempt that is open, or was the last one."""
        return _nonce_of(self.board.peek("call"))

    def _is_followed(self) -> bool:
        """Return whether another rank 0 has opened an attempt since."""
        return self._called() not in ("", self.nonce)

    def _collect(self, statements: Dict[int, Any], pause: Pause) -> Optional[Decision]:
        """Add the statements that come in time; return a decision that has been made before."""
        while True:
            decision = self.board.peek(f"{self.nonce}.decision")
            if isinstance(decision, dict):
                return decision
            if self._is_followed():
                return self.again("another rank 0 has opened an attempt")
            there = self.board.names(self.nonce)
            for rank in [each for each in range(1, self.size) if each not in statements]:
                found = (
                    self.board.peek(f"{self.nonce}/{rank}")
                    if there is None or str(rank) in there
                    else None
                )
                if found is not None and is_statement(found) and found["rank"] == rank:
                    statements[rank] = found
            if len(statements) == self.size or not pause.over():
                return None

    def _doubled(self) -> Tuple[Decision, bool]:
        """Refuse, as there is another rank 0, and end its attempt unless that is decided: its ranks are these."""
        decision = self.reported(refusals.doubled(0, f"once on {self.mine[0]['node']}"))
        if self._is_followed():
            self.board.settle(f"{self._called()}.decision", decision)
        return decision, True

    def _listen(self, ranks: Sequence[int]) -> None:
        """Wait until the ranks that have answered have the decision, where it would end with this process."""
        if not self.board.is_mortal:
            return
        pause = self.pause(min(LISTENING, self.timeout))
        left = [f"{self.nonce}.heard.{rank}" for rank in ranks]
        while left:
            left = [name for name in left if self.board.peek(name) is None]
            if left and not pause.over():
                return

    def _documents(self, statements: List[Any]) -> Dict[str, Any]:
        found = {self.mine[0]["root"]: self.mine[1]} if self.mine[1] is not None else {}
        for root in {each["root"] for each in statements if each["root"]} - set(found):
            document = self.board.peek(f"facts.{root}")
            if is_document(document):
                found[root] = document
        return found


class Follower(Member):
    """Any other rank."""

    def __init__(
        self, board: Board, rank: int, size: int, mine: Tuple[Any, Any], timeout: float
    ) -> None:
        super().__init__(board, rank, size, mine, timeout)
        self._pause = self.pause(timeout)
        self._seen: Set[str] = set()
        self._node = ""  # of rank 0
        self._has_answered = False

    def meet(self, decide: Decide) -> Tuple[Decision, bool]:
        """Answer attempts until one is decided by something else than that another one follows."""
        absent = sum([each.startswith(ABSENT) for each in self.board.names() or ()])
        while True:
            found = self._look()
            if found is None and not self._pause.over():
                found = self._withdraw() or self._miss(absent)
            if found is not None:
                return found

    def _look(self) -> Optional[Tuple[Decision, bool]]:
        """Return the decision of the attempt that this rank has answered; answer one that is new."""
        there = self.board.names()  # on NFS, listing a folder is what shows its new files
        name = f"{self.nonce}.decision"
        decision = (
            self.board.peek(name) if self.nonce and (there is None or name in there) else None
        )
        if isinstance(decision, dict):
            return self._heard(decision, False)
        call = self.board.peek("call")
        nonce = _nonce_of(call)
        if not nonce or nonce in self._seen:
            return None
        if self.nonce:  # an answer counts until its attempt is decided
            found = self._heard(
                *self.settled(self.nonce, self.again("rank 0 has opened another attempt"))
            )
            if found is not None:
                return found
        self._seen.add(nonce)
        return self._answer(nonce, call) if self.board.peek(f"{nonce}.decision") is None else None

    def _answer(self, nonce: str, call: Dict[str, Any]) -> Optional[Tuple[Decision, bool]]:
        """Answer an attempt; return its decision where that makes one.

        Its time counts from here: rank 0 has called before, and decides before that is over.
        """
        self.nonce, self._node = nonce, str(call.get("node"))
        self._pause = self.pause(self.timeout + MARGIN)
        statement, document = self.mine
        if document is not None and statement["root"] != call.get("root"):
            self.board.post(f"facts.{statement['root']}", document)
        is_first = self.board.settle(f"{nonce}/{self.rank}", statement)
        has_answered, self._has_answered = self._has_answered, True
        if is_first:
            return None
        other = self.board.peek(f"{nonce}/{self.rank}")
        place = other["node"] if is_statement(other) else "another node"
        refusal = self.reported(
            refusals.doubled(self.rank, f"on {statement['node']} and on {place}")
        )
        # it has died and was started again, perhaps: then the next attempt finds no answer of it
        ours = refusal if has_answered else self.again(f"rank {self.rank} was started again")
        decision, _ = self.settled(nonce, ours)
        self.nonce = ""
        return (
            None if "again" in decision else (refusal, True)
        )  # a verdict that is there does not count this process

    def _heard(self, decision: Decision, is_mine: bool) -> Optional[Tuple[Decision, bool]]:
        """Return a decision, unless another attempt follows it."""
        if self.board.is_mortal:
            self.board.post(f"{self.nonce}.heard.{self.rank}", "")
        if "again" not in decision:
            return self.with_own(decision), is_mine
        self.nonce = ""
        return None

    def _withdraw(self) -> Optional[Tuple[Decision, bool]]:
        """Give up an attempt that rank 0 does not decide; return its decision, which can have come just now."""
        if not self.nonce:
            return None
        report = refusals.unanswered(self._node, self.timeout)
        return self._heard(*self.settled(self.nonce, self.reported(report)))

    def _miss(self, absent: int) -> Tuple[Decision, bool]:
        """Give up as rank 0 has not called: nobody counts on this rank. The first of those that wait prints it.

        Those that have come before count as many earlier ones, `absent`; those of another job count this one, too.
        """
        is_first = self.board.settle(f"{ABSENT}{absent}", self.rank)
        return self.reported(refusals.silent(self.timeout)), is_first


def _nonce_of(call: Any) -> str:
    """Return the attempt that a call opens; empty where it is not one: it becomes part of the name of a file."""
    nonce = call.get("nonce") if isinstance(call, dict) else None
    return (
        nonce
        if isinstance(nonce, str) and nonce.isalnum() and nonce.isascii() and len(nonce) <= 32
        else ""
    )


class Pause:
    """Waits between two looks, longer each time."""

    def __init__(self, deadline: float, longest: float = LONGEST_PAUSE) -> None:
        self.deadline = deadline
        self.seconds = FIRST_PAUSE
        self.longest = longest

    def over(self) -> bool:
        """Wait; return whether there is time for another look."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(self.seconds, left))
        self.seconds = min(self.seconds * 1.5, self.longest)
        return True
