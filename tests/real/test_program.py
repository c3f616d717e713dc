"""What really runs of a program, with a real TensorFlow: what moves its fingerprint, and what does not."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from envlock.guest.target import parse_target
from envlock.numerics.programs.parts import Observed
from envlock.numerics.programs.program_run import observe_runs
from tests.exhaustive import exhaustive

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import os

import envlock
import numpy as np
import tensorflow as tf

envlock.assert_locked()  # there is no lockfile, and the run is no training

NUMBER = int(os.environ.get("NUMBER", "0"))

def step():
    random = np.random.default_rng(int(os.environ.get("DATA", "0")))
    x = tf.constant(random.standard_normal((512, 256)), tf.float32)
    start = random.standard_normal((256, 64))
    weights = tf.Variable(start, dtype=tf.float32)

    @tf.function
    def inner(y):
        return tf.where(y > 0.0, y, tf.nn.softplus(y) * (0.5 + NUMBER))

    @tf.function
    def graph(x):
        return tf.reduce_mean(inner(x @ weights))

    @tf.function(jit_compile=True)
    def compiled(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.gelu(x @ weights) ** (2 + NUMBER))
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    for _ in range(3):
        eager = tf.reduce_sum(x * (1.5 + NUMBER))
        yield {"graph": graph(x), "compiled": compiled(x), "eager": eager}
"""

KERAS = """
import os

import keras
import numpy as np

def model():
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(8, activation="gelu"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((4,)), *layers])
    model.compile("adam", "mse", jit_compile=True)
    x = np.random.default_rng(0).random((100, 4)).astype("float32")
    return model, (x, x[:, :1]), {"batch_size": 16}
"""

FAST = "--xla_cpu_enable_fast_math=true"
"""Only the machine code that XLA makes is another one."""


def observe(text: str, function: str, folder: Path, python: Path, **environ: str) -> Observed:
    """Return what runs of a program."""
    file = folder / "train.py"
    file.write_text(text, encoding="utf-8")
    variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environ}
    seen = Path(tempfile.mkdtemp(dir=folder))
    return observe_runs(parse_target(f"{file}:{function}"), python, seen, environ=variables)[0]


@exhaustive
def test_data_and_weights_move_nothing_and_code_moves_every_part(tmp_path: Path, tensorflow_python: Path) -> None:
    found = observe(PROGRAM, "step", tmp_path, tensorflow_python)
    assert {name: part.kind for name, part in found.parts.items()} == {
        "graph": "graph",
        "compiled": "xla",
        "eager": "eager",
    }
    assert all(part.operations > 1 for part in found.parts.values())
    assert (found.failed, found.is_cut) == ({}, False)
    (module,) = found.parts["compiled"].modules
    assert any(instruction.line is not None for instruction in module.instructions)

    data = observe(PROGRAM, "step", tmp_path, tensorflow_python, DATA="1", PYTHONHASHSEED="3")
    assert data.parts == found.parts

    fast = observe(PROGRAM, "step", tmp_path, tensorflow_python, XLA_FLAGS=FAST)
    assert fast.parts == found.parts
    assert set(fast.switches.items()) - set(found.switches.items()) == {("XLA_FLAGS", FAST)}

    number = observe(PROGRAM, "step", tmp_path, tensorflow_python, NUMBER="1")
    assert {name: part.digest for name, part in number.parts.items()}.keys() == found.parts.keys()
    assert not {part.digest for part in number.parts.values()} & {part.digest for part in found.parts.values()}


@exhaustive
def test_a_keras_model_trains_evaluates_and_predicts(tmp_path: Path, tensorflow_python: Path) -> None:
    found = observe(KERAS, "model", tmp_path, tensorflow_python)
    kinds = {name: part.kind for name, part in found.parts.items() if part.kind != "eager"}
    assert kinds == {"train": "xla", "evaluate": "xla", "predict": "xla"}
    # One module each: `fit` ends after two batches, before the smaller last one.
    assert [len(found.parts[name].modules) for name in kinds] == [1, 1, 1]
