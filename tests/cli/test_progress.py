"""Progress where nobody watches: a line from time to time, for those who read the log."""

from __future__ import annotations

import io
import sys

import pytest

from envlock.cli import output
from envlock.cli.output import PERIOD, Terminal


def shown(quiet: bool, total: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what is printed of ten steps, each of which takes 0.4 periods."""
    times = iter(0.4 * PERIOD * step for step in range(100))
    monkeypatch.setattr(output, "monotonic", lambda: next(times))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Terminal(quiet).bar("hashing", total) as advance:
        for _ in range(10):
            advance(total // 10)
    assert isinstance(sys.stderr, io.StringIO)
    return sys.stderr.getvalue()


def test_a_log_gets_a_line_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(False, 1000, monkeypatch).splitlines()
    assert lines[0] == "hashing: 30 %"
    assert 2 <= len(lines) <= 5


def test_silence_and_an_empty_task_print_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(True, 1000, monkeypatch) == ""
    assert shown(False, 0, monkeypatch) == ""


def test_a_log_gets_the_lines_of_a_build_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(0.4 * PERIOD * step for step in range(100))
    monkeypatch.setattr(output, "monotonic", lambda: next(times))
    for quiet, expected in ((False, ["step 2", "step 5"]), (True, [])):
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        terminal = Terminal(quiet)
        for number in range(8):
            terminal.line(f"step {number}")
        assert isinstance(sys.stderr, io.StringIO)
        assert sys.stderr.getvalue().splitlines() == expected
