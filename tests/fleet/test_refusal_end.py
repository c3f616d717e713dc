"""A refused rank ends with the exit code of the refusal, also where the launcher ends it first."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from envlock.fleet import refusal_end
from tests.test_documentation import ROOT

WAITING = """
import os, signal, sys
from types import SimpleNamespace
from envlock.fleet import refusal_end

def end(*_):
    os.kill(os.getpid(), signal.SIGTERM)

now = 0
refusal_end.time = SimpleNamespace(sleep=end, monotonic=lambda: now)
{before}
refusal_end.wait_for_readers(1.5, 4)
now = {now}
{after}
"""
"""The signal arrives while it waits."""
AGAIN = "end()"
LAST = "import atexit\natexit._run_exitfuncs()\nend()\nsys.exit(5)"
HANDLED = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))"


@pytest.mark.processes
@pytest.mark.parametrize(
    ("before", "now", "after", "code"),
    [
        ("", 1, "sys.exit(5)", 5),  # it ends the wait, and the program ends as it would have
        ("", 10, AGAIN, 4),
        ("", 10, LAST, 5),  # the libraries of a process end after Python's handlers
        ("", 60, LAST, -signal.SIGTERM),
        ("", 60, AGAIN, -signal.SIGTERM),  # the program has caught the refusal, and continues
        (HANDLED, 1, "", 7),
    ],
)
def test_sigterm_is_no_other_exit_code(tmp_path: Path, before: str, now: int, after: str, code: int) -> None:
    program = WAITING.format(before=before, now=now, after=after)
    environ = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environ, check=False)
    assert done.returncode == code


def test_without_a_pause_nothing_is_changed() -> None:
    before = signal.getsignal(signal.SIGTERM)
    refusal_end.wait_for_readers(0, 1)
    assert signal.getsignal(signal.SIGTERM) is before


CAUGHT = """
import sys
from envlock.fleet.fleet_assertion import assert_fleet
for _ in range({times}):
    try:
        assert_fleet(rank=0)
    except Exception:
        pass
{end}
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    ("end", "code", "last"),
    [
        ("raise KeyError('mine')", 1, "KeyError: 'mine'"),
        ("assert_fleet(rank=0)", 2, "hint: set ENVLOCK_FLEET_SIZE"),
    ],
)
def test_refusals_that_were_caught_leave_one_hook_and_an_error_its_own_code(end: str, code: int, last: str) -> None:
    program = CAUGHT.format(times=1200, end=end)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (code, last)
    assert "RecursionError" not in done.stderr
    assert "in end" not in done.stderr
