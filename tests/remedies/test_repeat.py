"""What `envlock repeat` prints as the next step, typed: it goes further, and is never the same line again."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import Command

pytestmark = [pytest.mark.processes, pytest.mark.longer]

NEXT = re.compile(r"^next: `envlock ([^`]+)`", re.MULTILINE)
DRAWN = "import random\n\n\ndef step():\n    return random.random()\n"
COUNTED = """import pathlib


def step():
    file = pathlib.Path("n.txt")
    n = int(file.read_text()) if file.exists() else 0
    file.write_text(str(n + 1))
    return float(n)
"""


def test_a_seed_is_the_cause_and_the_next_line_shows_it(envlock: Command, tmp_path: Path) -> None:
    (tmp_path / "step.py").write_text(DRAWN, encoding="utf-8")
    done = envlock("repeat", "step.py:step", "--runs", "2")
    assert done.returncode == 1, done.stderr
    (typed,) = NEXT.findall(done.stdout)
    assert typed == "repeat step.py:step --seed 1"
    assert envlock(*shlex.split(typed)).returncode == 0


def test_no_seed_is_the_cause_and_the_next_line_is_another_one(envlock: Command, tmp_path: Path) -> None:
    (tmp_path / "step.py").write_text(COUNTED, encoding="utf-8")
    (typed,) = NEXT.findall(envlock("repeat", "step.py:step", "--runs", "2").stdout)
    done = envlock(*shlex.split(typed))
    assert done.returncode == 1, done.stderr
    # tests/remedies/test_diverge.py obeys what that finds.
    assert NEXT.findall(done.stdout) == ["diverge step.py:step"]
