"""Runs programs of the zoo in one process that stays: importing TensorFlow for each of them would take minutes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from envlock.evidence.diverge.debug import debug
from envlock.evidence.diverge.observed_runs import AGAIN, Observed, Request, need_finished, observe
from envlock.evidence.session import Session
from envlock.guest.target import parse_target
from envlock.runtime.report import Report
from tests.evidence.diverge.animals import ZOO


class Keeper:
    """Looks after a process of each mode, and of graphs that race and that cannot."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._python = python
        self._folder = folder
        self._sessions: defaultdict[object, Session] = defaultdict(Session)
        self._count = 0

    def ask(self, name: str, *, runs: int, zoo: Path = ZOO, fresh: bool = False) -> Report:
        """Return what is said of a program of the zoo; `fresh`: with a process of its own for each run."""
        request = Request(parse_target(f"{zoo}:{name}"), self._python, runs, fresh=fresh)
        return debug(request, lambda text: None, None if fresh else self._observe)

    def close(self) -> None:
        """End all."""
        for session in self._sessions.values():
            session.close()

    def _observe(self, request: Request, into: Path) -> Observed:
        if into.name.endswith(AGAIN):
            self.close()
        self._count += 1
        session = self._sessions[request.serial, request.mode]
        return need_finished(observe(request, self._folder / str(self._count), session=session))


@contextmanager
def keeper(python: Path, folder: Path) -> Iterator[Keeper]:
    """Give somebody who runs programs of the zoo."""
    found = Keeper(python, folder)
    try:
        yield found
    finally:
        found.close()
