"""Ranks meet at a board, a place that all of them read and write: rank 0 reduces, and everybody gets its verdict.

Rank 0 opens a call under a number that was never used (`call`). The others answer it with their statements
(`NONCE.RANK`), and rank 0 posts the verdict (`NONCE.verdict`). What an earlier call has left is never taken for an
answer: a call that has a verdict, or an answer of this rank, before this rank has answered is an old one.
"""

from __future__ import annotations

import os
import time

from envlock.runtime.fleet.statement import is_document, is_statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Collection, Dict, List, Optional, Protocol, Sequence, Tuple

    Verdict = Dict[str, Any]
    Decide = Callable[[Sequence[Any], Dict[str, Any]], Verdict]
    """Statements, and documents by root: a report as JSON values."""

    class Board(Protocol):
        """Where values lie by their names; a value is seen whole or not at all.

        `is_mortal`: it ends with the process of rank 0.
        """

        is_mortal: bool

        def post(self, name: str, value: Any) -> None: ...

        def peek(self, name: str) -> Any:
            """Return a value; None where there is none yet."""

        def names(self) -> Optional[Collection[str]]:
            """Return which values there are; None where only asking for each can tell."""

        def give_up(self) -> None:
            """Keep this process's end from waiting for a rank that is lost."""


FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.1  # seconds between two looks
MARGIN = 2.0  # seconds that rank 0 leaves the others to read what it says of those that are missing
LISTENING = 10.0  # seconds, at most, that rank 0 keeps up a board that ends with it


class Silence(Exception):  # noqa: N818 (nothing came)
    """Rank 0 gave no verdict in time."""


def meet(board: Board, rank: int, size: int, mine: Tuple[Any, Any], decide: Decide, timeout: float) -> Verdict:
    """Return the verdict on all ranks, which is the same for each; nobody waits longer than `timeout` seconds.

    Args:
        board: where the ranks of this job, and no others, meet.
        rank: this one.
        size: how many there are.
        mine: the statement and the document of this rank; None for the document of a rank that has none.
        decide: reduces; called by rank 0 alone, with the statements that came in time.
        timeout: seconds.

    Raises:
        Silence: rank 0 gave no verdict in time.
    """
    deadline = time.monotonic() + timeout
    if rank == 0:
        verdict, answered = _lead(board, size, mine, decide, deadline - min(MARGIN, timeout / 10))
        if board.is_mortal:
            _listen(board, answered, min(deadline, time.monotonic() + LISTENING))
        return verdict
    return _follow(board, rank, mine, deadline)


def _lead(board: Board, size: int, mine: Tuple[Any, Any], decide: Decide, deadline: float) -> Tuple[Verdict, List[str]]:
    """Return the verdict, and the names of the answers."""
    nonce = os.urandom(8).hex()
    board.post("call", {"nonce": nonce, "root": mine[0]["root"]})
    statements = {0: mine[0]}
    pause = Pause(deadline)
    while len(statements) < size:
        there = board.names()
        for rank in [each for each in range(1, size) if each not in statements]:
            name = f"{nonce}.{rank}"
            found = board.peek(name) if there is None or name in there else None
            if found is not None and is_statement(found) and found["rank"] == rank:
                statements[rank] = found
        if len(statements) < size and not pause.over():
            break
    verdict = decide([statements[rank] for rank in sorted(statements)], _documents(board, mine, statements.values()))
    board.post(f"{nonce}.verdict", verdict)
    return verdict, [f"{nonce}.{rank}" for rank in statements if rank]


def _listen(board: Board, answered: List[str], deadline: float) -> None:
    """Wait until the ranks that have answered have the verdict."""
    pause = Pause(deadline)
    while answered:
        answered = [name for name in answered if board.peek(f"{name}.heard") is None]
        if answered and not pause.over():
            return


def _documents(board: Board, mine: Tuple[Any, Any], statements: Any) -> Dict[str, Any]:
    found = {mine[0]["root"]: mine[1]} if mine[1] is not None else {}
    for root in {each["root"] for each in statements if each["root"]} - set(found):
        document = board.peek(f"facts.{root}")
        if is_document(document):
            found[root] = document
    return found


def _follow(board: Board, rank: int, mine: Tuple[Any, Any], deadline: float) -> Verdict:
    old: List[str] = []
    answered = ""
    pause = Pause(deadline)
    while True:
        board.names()  # on NFS, listing a folder is what shows its new files
        verdict = board.peek(f"{answered}.verdict") if answered else None
        if isinstance(verdict, dict):
            if board.is_mortal:
                board.post(f"{answered}.{rank}.heard", "")
            return verdict
        call = board.peek("call")
        nonce = call.get("nonce") if isinstance(call, dict) else None
        if isinstance(nonce, str) and nonce != answered and nonce not in old:
            if board.peek(f"{nonce}.verdict") is not None or board.peek(f"{nonce}.{rank}") is not None:
                old.append(nonce)
            else:
                if mine[1] is not None and mine[0]["root"] != call.get("root"):
                    board.post(f"facts.{mine[0]['root']}", mine[1])
                board.post(f"{nonce}.{rank}", mine[0])
                answered = nonce
        if not pause.over():
            raise Silence


class Pause:
    """Waits between two looks, longer each time."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.seconds = FIRST_PAUSE

    def over(self) -> bool:
        """Wait; return whether there is time for another look."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(self.seconds, left))
        self.seconds = min(self.seconds * 1.5, LONGEST_PAUSE)
        return True
