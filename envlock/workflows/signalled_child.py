"""Run a prepared command as a child of this process, which passes signals and the exit code on."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from types import FrameType

from envlock.runtime.errors import UsageError
from envlock.workflows.run import Prepared

PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""The signals that schedulers send to one process: its end, and, as Slurm's `--signal` does, a
warning before it.
"""


def run_child(prepared: Prepared, environ: Mapping[str, str]) -> int:
    """Run a command to its end, and return its exit code as a shell reports it.

    Args:
        prepared: the command.
        environ: its variables.

    Raises:
        UsageError: the command cannot be run.
    """
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        early.append(number)
        for child in children:
            child.send_signal(number)

    # Before the command starts, so that no signal finds this process without its handlers.
    for number in PASSED_ON:
        # A signal that the caller makes the process ignore, as nohup does with SIGHUP, is still
        # ignored, also by the command.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, pass_on)
    try:
        child = subprocess.Popen(list(prepared.command), executable=prepared.program, env=environ)
    except OSError as error:
        raise UsageError(f"cannot run `{prepared.command[0]}`: {error.strerror}") from None
    # Ctrl-C reaches the command as well, which decides what to do. Only now, as the command would
    # inherit that the signal is ignored: https://man7.org/linux/man-pages/man7/signal.7.html
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    arrived = list(early)
    children.append(child)
    for waiting in arrived:
        child.send_signal(waiting)
    code = child.wait()
    if code < 0:
        return 128 - code
    return code
