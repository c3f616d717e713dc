"""Commands that a signal ends while their children compute: nothing is left behind, and the exit code names the signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from envlock.cli.signals import StoppedError, interrupt_on_signals

pytestmark = pytest.mark.processes
WAITS = """
import os, pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
pathlib.Path("pids.part").write_text(f"{os.getpid()} {child.pid}")
os.rename("pids.part", "pids")
time.sleep(100)
def step(): pass
"""
LIMIT = 30.0


def start(folder: Path, *words: str) -> tuple[subprocess.Popen[str], list[int]]:
    """Return a command that waits for a program of the user's, and the processes of that."""
    (folder / "train.py").write_text(WAITS)
    command = subprocess.Popen(
        [sys.executable, "-m", "envlock", *words, "train.py:step"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
    )
    pids, until = folder / "pids", time.monotonic() + LIMIT
    while not pids.exists() and time.monotonic() < until:
        time.sleep(0.05)
    return command, list(map(int, pids.read_text().split()))


def wait_for_end(pids: list[int]) -> list[int]:
    """Return those of the processes that still run some seconds later."""
    until, left = time.monotonic() + LIMIT, pids
    while left and time.monotonic() < until:
        time.sleep(0.05)
        left = [pid for pid in left if is_running(pid)]
    return left


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2]
    except OSError:
        return False
    return not state.startswith("Z")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("command", ["diverge", "repeat"])
def test_a_signal_ends_the_command_with_its_children(command: str, number: signal.Signals, tmp_path: Path) -> None:
    process, pids = start(tmp_path, command)
    process.send_signal(number)
    process.communicate(timeout=LIMIT)
    assert process.returncode == 128 + number
    assert wait_for_end(pids) == []


@pytest.mark.parametrize("command", ["diverge", "repeat"])
def test_a_command_that_is_killed_takes_its_child_along(command: str, tmp_path: Path) -> None:
    process, pids = start(tmp_path, command)
    process.kill()
    process.communicate(timeout=LIMIT)
    assert wait_for_end(pids[:1]) == []
    if is_running(pids[1]):  # the kernel ends the child only, not what that has started
        os.kill(pids[1], signal.SIGKILL)


def interrupt_and_check() -> None:
    with interrupt_on_signals() as stop:
        assert (signal.getsignal(signal.SIGHUP), stop.exit_code) == (signal.SIG_IGN, 130)
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        raise StoppedError(signal.SIGTERM)


def test_the_first_signal_interrupts_and_an_ignored_one_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with pytest.raises(typer.Exit) as caught:
            interrupt_and_check()
        assert (caught.value.exit_code, signal.getsignal(signal.SIGTERM)) == (143, signal.SIG_DFL)
    finally:
        signal.signal(signal.SIGHUP, before)
