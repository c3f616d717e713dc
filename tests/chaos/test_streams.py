"""Streams that are closed, full or broken end no command in a traceback, or in an exit code that means nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos import streams
from tests.exhaustive import exhaustive

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
DECLARED = set(range(7))


def tried(*commands: str) -> list[str]:
    """Return every trouble that ended as it must not."""
    words = [sys.executable, "-m", "tests.chaos.streams", *commands]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, timeout=3000, check=True)
    found = json.loads(done.stdout)
    rows = [(command, trouble, *found[command][trouble]) for command in found for trouble in found[command]]
    assert len(rows) == len(commands or streams.COMMANDS) * len(streams.TROUBLES)
    print(f"streams: {len(rows)} commands in trouble")
    return [str(row) for row in rows if row[2] not in DECLARED or "Traceback" in row[3]]


@exhaustive
@pytest.mark.slow
def test_a_command_in_trouble() -> None:
    assert tried("show") == []


@pytest.mark.chaos
def test_every_command_in_every_trouble() -> None:
    assert tried() == []


def test_without_a_defence_the_attack_succeeds(tmp_path: Path) -> None:
    """A program that prints as anybody does ends with 120, or with a traceback."""
    streams.prepare(tmp_path)

    def naive() -> None:
        sys.stdout.write("x" * 10)
        sys.stdout.flush()

    codes = {trouble: streams.run("show", trouble, tmp_path, naive)[0] for trouble in ("stdout full", "stdout closed")}
    assert not set(codes.values()) & DECLARED
