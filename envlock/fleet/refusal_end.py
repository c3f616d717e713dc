"""The end of a refused rank, whose exit code stays that of the refusal.

A launcher can end all ranks as soon as the first one has ended, as `srun --kill-on-bad-exit` does.
A rank that has not looked since the decision would end without it, and the launcher would report
the signal as its own exit code.
"""

from __future__ import annotations

import atexit
import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Callable, Optional

MARGIN = 0.2
"""Seconds for a process that wakes late."""
GRACE = 10.0
"""Seconds in which a program that catches the refusal can end with an exit code of its own."""


class _Woken(BaseException):
    """SIGTERM has arrived while this process waited."""


def wait_for_readers(pause: float, code: int) -> None:
    """Wait until each rank has looked once more, or SIGTERM arrives; then, for some seconds, SIGTERM
    ends this process with `code`.

    Args:
        pause: the most seconds between two looks of a rank; 0 if no rank has to be waited for.
        code: the exit code of the refusal.
    """
    if pause == 0:
        return
    limit = time.monotonic() + pause + GRACE

    def end(number: int, frame: Optional[FrameType]) -> None:
        # A program that has caught the refusal and continues is ended as any other.
        if time.monotonic() < limit:
            os._exit(code)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    def ignore() -> None:
        # Python takes its handlers back before the last libraries end, such as MPI.
        if _is_own(signal.getsignal(signal.SIGTERM)) and time.monotonic() < limit:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    atexit.register(ignore)
    try:
        _handle(_wake)
        time.sleep(pause + MARGIN)
        _handle(end)
    except _Woken:
        _handle(end)


def _wake(number: int, frame: Optional[FrameType]) -> None:
    raise _Woken


def _handle(handler: Callable[[int, Optional[FrameType]], None]) -> None:
    """Handle SIGTERM, unless the program itself does."""
    before = signal.getsignal(signal.SIGTERM)
    if before is not signal.SIG_DFL and not _is_own(before):
        return
    try:
        signal.signal(signal.SIGTERM, handler)
    except ValueError:
        # Only the main thread can.
        return


def _is_own(handler: object) -> bool:
    return getattr(handler, "__module__", "") == __name__
