"""What becomes of the five texts' advice in three lines of TensorFlow: every experiment ends as the table says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.diagnosis.advice import VERSIONS, claims
from tests.exhaustive import exhaustive

PROGRAM = Path(__file__).with_name("advice_program.py")
ROOT = Path(__file__).parents[2]
SHOWN = [(claim.id, name, outcome) for claim in claims() for name, outcome in claim.shown.items()]


def compare(python: Path, version: str, folder: Path) -> None:
    """Run all experiments in one process, and hold every outcome against the table."""
    done = Command([str(python)], folder)(str(PROGRAM), environ={"PYTHONPATH": str(ROOT)}, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout)
    print(json.dumps(answer["numbers"]))
    assert answer["tensorflow"] == version
    wrong = [(*row, answer["found"].get(row[1])) for row in SHOWN if answer["found"].get(row[1]) != row[2]]
    assert wrong == []
    assert set(answer["found"]) == {name for _, name, _ in SHOWN}


@exhaustive
def test_with_the_newest(tensorflow_python: Path, tmp_path: Path) -> None:
    compare(tensorflow_python, VERSIONS[-1], tmp_path)


@pytest.mark.older_tensorflows
@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_with_older_ones(version: str, older_tensorflow: Callable[[str], Path], tmp_path: Path) -> None:
    compare(older_tensorflow(version), version, tmp_path)
