"""`envlock.diverge(function)` in a process with a real TensorFlow."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.exhaustive import exhaustive

PROGRAM = """
import json
import numpy as np
import tensorflow as tf
import envlock

tf.config.threading.set_intra_op_parallelism_threads(4)
rows = tf.constant(np.random.RandomState(0).randint(0, 50, 200_000))
updates = tf.constant(np.random.RandomState(1).randn(200_000, 16).astype("float32"))
table = tf.Variable(tf.zeros((50, 16)))
tf.random.set_seed(1)


def race():
    table.scatter_add(tf.IndexedSlices(updates, rows))


def clean():
    table.assign_add(tf.random.normal((50, 16)))
    return table


def drawn():
    return tf.constant(np.random.rand(3)) * 2.0


numbers = np.random.RandomState(7)
np.random.set_state(numbers.get_state())
said = [envlock.diverge(each, runs=3) for each in (race, clean, drawn)]
print("answer:" + json.dumps({
    "verdicts": [each.attachments["verdict"] for each in said],
    "culprit": said[0].attachments["culprit"],
    "function": said[0].attachments["place"]["function"],
    "table": float(tf.reduce_sum(tf.abs(table))),
    "eager": tf.config.functions_run_eagerly(),
}))
try:
    envlock.diverge(race, runs=1)
except envlock.UsageError as error:
    print(error)
"""


@exhaustive
@pytest.mark.tensorflow
def test_runs_begin_alike_and_leave_everything_as_it_was(tensorflow_python: Path, tmp_path: Path) -> None:
    script = tmp_path / "notebook.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [tensorflow_python, script], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer, wrong, hint = done.stdout.splitlines()
    assert json.loads(answer.removeprefix("answer:")) == {
        "verdicts": ["operation", "identical", "outside"],
        "culprit": "ResourceScatterAdd",
        "function": "race",
        "table": 0.0,
        "eager": False,
    }
    assert wrong == "diverge needs a function, and at least two runs"
    assert hint == "hint: call it like `envlock.diverge(train_step, runs=5)`"
