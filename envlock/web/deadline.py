"""How long a connection may keep us waiting: every single wait on a socket is bounded, headers too.

A timeout of urllib3 or requests is that of one call of `recv`, so a server that sends a byte now and then holds its
reader for ever. Here the response reads through a file that knows when to stop, whoever asks it for bytes.
"""

from __future__ import annotations

import http.client
import io
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

CURRENT: ContextVar[Patience | None] = ContextVar("envlock_patience", default=None)
"""What the responses that this thread is about to get are held to."""


class Patience:
    """What one answer may take: `until` (a time of the clock), and `floor` bytes a second in every `window` seconds.

    Only waiting counts against the floor: a reader that takes its time between two reads does not make a server slow.
    After it has run out, `verdict` is the sentence that says why.
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
        """Let all that is still to come take this long."""
        self.seconds = seconds
        self.until = self.clock() + seconds
        self.begin()

    def begin(self) -> None:
        """Forget how slow the one before was; the time goes on."""
        self.verdict = None
        self._waited = 0.0
        self._received = 0

    def left(self) -> float:
        """Return for how many seconds the next wait may last.

        Raises:
            TimeoutError: the time is up.
        """
        left = self.until - self.clock()
        if left <= 0:
            self.stop(f"it took longer than {self.seconds:g} s")
        return min(left, self.silence)

    def took(self, seconds: float, count: int) -> None:
        """Note a wait that ended with `count` bytes.

        Raises:
            TimeoutError: too few have come in the window that ends here.
        """
        self._waited += seconds
        self._received += count
        if self._waited < self.window:
            return
        if self._received < self.floor * self._waited:
            self.stop(f"it sent fewer than {self.floor} bytes a second for {self.window:g} s")
        self._waited, self._received = 0.0, 0

    def stop(self, verdict: str) -> None:
        """Say why there is no more waiting.

        Raises:
            TimeoutError: always.
        """
        self.verdict = verdict
        raise TimeoutError(verdict)


class _Watched(io.RawIOBase):
    """The bytes of a socket, for as long as there is patience."""

    def __init__(self, raw: io.RawIOBase, sock: Any, patience: Patience) -> None:
        self._raw = raw
        self._sock = sock
        self._patience = patience

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def readinto(self, buffer: Any) -> int | None:
        patience = self._patience
        allowed = patience.left()
        self._sock.settimeout(allowed)
        start = patience.clock()
        try:
            count = self._raw.readinto(buffer)
        except TimeoutError:
            patience.left()  # the whole time may be up, which is the better answer
            patience.stop(f"it sent nothing for {allowed:g} s")
            raise
        patience.took(patience.clock() - start, count or 0)
        return count

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        patience = CURRENT.get()
        if patience is not None:
            raw: Any = self.fp.detach()
            self.fp = io.BufferedReader(_Watched(raw, sock, patience))


class _Http(HTTPConnection):
    response_class = _Response


class _Https(HTTPSConnection):
    response_class = _Response


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Http


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _Https


POOLS = {"http": _HttpPool, "https": _HttpsPool}
"""The pools to make connections from, by scheme."""
