"""A TensorFlow whose private callbacks are gone, or see nothing: what the runs show of themselves is still compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command
from tests.exhaustive import exhaustive, first

pytestmark = pytest.mark.tensorflow

GONE = """
import sys, tensorflow.python.framework as framework
vars(framework).pop("op_callbacks", None)
sys.modules[framework.__name__ + ".op_callbacks"] = None
"""
DEAF = """
from tensorflow.python.framework import op_callbacks
op_callbacks.add_op_callback = op_callbacks.remove_op_callback = lambda callback: None
"""
PROGRAM = """
import tensorflow as tf
BREAK
tf.config.threading.set_inter_op_parallelism_threads(1)

def noisy():
    yield {"loss": tf.constant(1.0)}
    yield {"loss": tf.random.uniform(())}

def clean():
    return {"loss": tf.constant(1.0)}

def silent():
    tf.constant(1.0) + 1.0
"""
REASONS = {
    GONE: "None in sys.modules",
    DEAF: "they do not see eager and graph operations",
}


@pytest.fixture(params=first(1, [DEAF, GONE]), ids=["deaf", "gone"])
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return why operations are not seen in `train.py`, which is written."""
    (tmp_path / "train.py").write_text(PROGRAM.replace("BREAK", request.param), encoding="utf-8")
    return REASONS[request.param]


@exhaustive
def test_quantities_are_compared(broken: str, envlock: Command, tensorflow_python: Path) -> None:
    done = envlock("diverge", "train.py:noisy", "-n", "3", "--python", str(tensorflow_python), timeout=120)
    lines = done.stdout.splitlines()
    assert done.returncode == 1, done.stderr
    assert lines[1:3] == [
        "  in the program's own mode: differs from step 1, first in loss; results of the runs: 0 1 2",
        "  x the runs differ, first in loss",
    ]
    note = next(line for line in lines if broken in line)
    assert note.startswith("  note: this TensorFlow does not show its operations: ")
    assert note.endswith("; only returned and recorded values were compared")


@exhaustive
def test_equal_ones_are_identical_and_none_are_no_answer(
    broken: str, envlock: Command, tensorflow_python: Path
) -> None:
    python = ["--python", str(tensorflow_python)]
    same = envlock("diverge", "train.py:clean", "-n", "2", *python, timeout=120)
    assert (same.returncode, broken in same.stdout) == (0, True)
    none = envlock("diverge", "train.py:silent", "-n", "2", *python, timeout=120)
    assert (none.returncode, none.stdout) == (4, "")
    assert "\nerror: this TensorFlow does not show its operations: " in none.stderr
    assert none.stderr.endswith(
        "hint: return named values from the function, or call envlock.record(), to compare those\n"
    )
