"""The one program that runs a user's script or function: in the user's interpreter, while an observer
looks at its runs.

It appends to `runs.jsonl` in the folder that is asked for, a line each of:

    {"unusable": sentence}                                          it cannot be run at all
    {"run": 0, "end": "finished", "seconds": ..., ...}              how a run ended, and what its observer saw
    {"run": 0, "end": "failed", "message": ..., "traceback": ...}

and what the observer has to say of all runs. Several requests can follow each other; what they
share is the process, to which importing TensorFlow costs more than a few steps.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import traceback
from importlib import import_module

from envlock.guest.training import contract, store
from envlock.guest.training.failures import describe_failure, format_traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, Mapping, NoReturn, Protocol

    class Observer(Protocol):
        """Makes runs, and looks at them."""

        def run(self, number: int) -> Mapping[str, object]:
            """Make a run, and return what the line on its end says besides.

            Raises:
                Misuse: the program cannot be run in this way.
                BaseException: whatever the user's code raises.
            """

        def can_go_on(self, number: int, *, has_failed: bool) -> bool:
            """Return whether another run can show something after this one."""

        def describe_runs(self) -> Iterable[Mapping[str, object]]:
            """Return what is known of all runs, as lines."""


OBSERVERS = {
    "values": "training.run_values:Values",
    "traces": "tracing.run_traces:Traces",
    "operations": "operations.inventory:Operations",
}
"""Where each observer is. It is imported when it is asked for, as the user's program may be watched
from its first import on, and each of the others would be another one before it."""
DONE, RUN_OVER = b".", b"r"
"""The bytes that say that a request, or one of its runs, is over."""


def main() -> None:
    """Do what the JSON in `sys.argv[1]` asks for, then what each further line of the standard input
    does.

    After each run and each request a byte is written to where the lines come from, a socket. The
    user's program finds no input.
    """
    requests = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    lines = requests.makefile("r", encoding="utf-8")
    line = sys.argv.pop(1)
    while line:
        process_request(json.loads(line), lambda: requests.sendall(RUN_OVER))
        sys.stdout.flush()
        sys.stderr.flush()
        requests.sendall(DONE)
        line = lines.readline()
    _leave()


def process_request(asked: Dict[str, Any], report_run: Callable[[], None] = lambda: None) -> None:
    """Make the runs, and write the log; the process goes on. `report_run` is called after each run.

    Of what is asked for, `observer` is one of OBSERVERS, which says what else it needs; `folder` is
    where to write; `script`, `module`, `function` and `args` are what to run; `runs` are the numbers
    of the runs.
    """
    log = store.Log(asked["folder"])
    try:
        observer = _make_observer(asked, log)
        for number in asked["runs"]:
            has_failed = _make_run(observer, number, log)
            report_run()
            if not observer.can_go_on(number, has_failed=has_failed):
                break
    except contract.Misuse as error:
        log.write({"unusable": str(error)})
        return
    for line in observer.describe_runs():
        log.write(line)


def _make_observer(asked: Dict[str, Any], log: store.Log) -> Observer:
    module, _, name = OBSERVERS[asked["observer"]].partition(":")
    observer: Observer = getattr(import_module("envlock.guest." + module), name)(asked, log)
    return observer


def _make_run(observer: Observer, number: int, log: store.Log) -> bool:
    """Make a run, and write how it ended; return whether it failed.

    Raises:
        Misuse: the program cannot be run in this way.
    """
    begun = time.monotonic()
    process = os.getpid()
    try:
        seen = observer.run(number)
    except BaseException as error:
        # What the program has forked ends as it would by itself.
        if os.getpid() != process or isinstance(error, contract.Misuse):
            raise
        traceback.print_exc()  # into the log of what the program printed
        failure = {"message": describe_failure(error), "traceback": format_traceback(error)}
        log.write({"run": number, "end": "failed", **failure})
        return True
    if os.getpid() != process:
        _leave()  # the run is that of the parent
    seconds = round(time.monotonic() - begun, 3)
    log.write({"run": number, "end": "finished", "seconds": seconds, **seen})
    return False


def _leave() -> NoReturn:
    """End at once, without TensorFlow's threads and the atexit functions of the user's program."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
