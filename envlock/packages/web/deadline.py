"""Limit the time of a connection: that of the whole answer, including the headers.

A timeout of urllib3 or requests limits a single call of `recv`: a server that sends a byte now and
then could block its reader for ever. Here the response reads through a file that has a deadline.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Callable
from contextvars import ContextVar

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

CURRENT: ContextVar[Patience | None] = ContextVar("envlock_patience", default=None)
"""The limits of the responses that this thread is about to get."""


class Patience:
    """The time limits of one answer.

    Attributes:
        until: the time of the clock by which it must be complete.
        silence: the most seconds of one wait.
        window, floor: in every `window` seconds of waiting, at least `floor` bytes a second.
        verdict: a sentence that says why it was too slow, if it was.
    """

    def __init__(
        self,
        *,
        seconds: float,
        silence: float,
        window: float,
        floor: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self.silence = silence
        self.window = window
        self.floor = floor
        self.verdict: str | None = None
        self.allow(seconds)

    def allow(self, seconds: float) -> None:
        """Limit the rest of the answer to this many seconds from now on."""
        self.seconds = seconds
        self.until = self.clock() + seconds
        self.begin()

    def begin(self) -> None:
        """Measure the speed from here on; the time limit is not changed."""
        self.verdict = None
        self._waited = 0.0
        self._received = 0

    def get_remaining(self) -> float:
        """Return how many seconds the next wait may last.

        Raises:
            TimeoutError: the time is up.
        """
        remaining = self.until - self.clock()
        if remaining <= 0:
            self.stop(f"it took longer than {self.seconds:g} s")
        return min(remaining, self.silence)

    def add_wait(self, seconds: float, count: int) -> None:
        """Count a wait that ended with `count` bytes.

        Raises:
            TimeoutError: the server is too slow.
        """
        # Only waiting counts: a reader that pauses between two reads does not make a server slow.
        self._waited += seconds
        self._received += count
        if self._waited < self.window:
            return
        if self._received < self.floor * self._waited:
            self.stop(f"it sent fewer than {self.floor} bytes a second for {self.window:g} s")
        self._waited, self._received = 0.0, 0

    def stop(self, verdict: str) -> None:
        """Store why the answer is too slow.

        Raises:
            TimeoutError: always.
        """
        self.verdict = verdict
        raise TimeoutError(verdict)


class LimitedSocket(io.RawIOBase):
    """Reads the bytes of a socket, within the time limits of its answer."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, patience: Patience) -> None:
        self._raw = raw
        self._sock = sock
        self._patience = patience

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        patience = self._patience
        allowed = patience.get_remaining()
        self._sock.settimeout(allowed)
        start = patience.clock()
        try:
            count = self._raw.readinto(buffer)
        except TimeoutError:
            # If the total time is over as well, that is the better message.
            patience.get_remaining()
            patience.stop(f"it sent nothing for {allowed:g} s")
            raise
        patience.add_wait(patience.clock() - start, count or 0)
        return count

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(
        self,
        sock: socket.socket,
        debuglevel: int = 0,
        method: str | None = None,
        url: str | None = None,
    ) -> None:
        super().__init__(sock, debuglevel, method, url)
        patience = CURRENT.get()
        if patience is not None:
            raw = self.fp.detach()
            self.fp = io.BufferedReader(LimitedSocket(raw, sock, patience))


class _Http(HTTPConnection):
    response_class = _Response


class _Https(HTTPSConnection):
    response_class = _Response


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Http


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _Https


POOLS = {"http": _HttpPool, "https": _HttpsPool}
"""The connection pools by scheme."""
