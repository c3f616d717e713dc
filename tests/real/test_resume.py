"""A training that is stopped and resumed: the recipe of the guide, and what breaks it (tensorflow#58925)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.exhaustive import exhaustive

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OLDER = pytest.mark.older_tensorflows
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}

VARIANTS = """
import json, sys, tempfile
sys.path.insert(0, sys.argv[1])
import resume

def bits(weights):
    return [each.tobytes().hex() for each in weights]

def same(*without, rest=None):
    whole = bits(resume.train(tempfile.mkdtemp(), 40, without if "draws" in without else ()))
    folder = tempfile.mkdtemp()
    resume.train(folder, 20, without)
    return bits(resume.train(folder, 40, without, rest)) == whole

found = {name: same(name) for name in ("iterator", "generator", "optimizer", "draws")}
print(json.dumps({**found, "skip": same("iterator", rest=resume.batches().skip(20)), "nothing": same()}))
"""

FIT = """
import json, tempfile
import numpy as np
import tensorflow as tf

rows = tf.random.stateless_normal((256, 8), seed=(7, 0))
rows = tf.data.Dataset.from_tensor_slices((rows, tf.reduce_sum(rows, axis=1, keepdims=True)))

def of_epoch(epoch):
    return rows.shuffle(256, seed=7 + epoch, reshuffle_each_iteration=False).batch(16)

def made(dropout):
    tf.keras.utils.set_random_seed(7)
    layers = [tf.keras.layers.Input((8,)), tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential([*layers[:2], *([tf.keras.layers.Dropout(0.3)] if dropout else []), layers[2]])
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    return model

def fit(model, first, last, each):
    if not each:
        model.fit(rows.shuffle(256, seed=7).batch(16), initial_epoch=first, epochs=last, verbose=0)
    for epoch in range(first, last) if each else ():
        model.fit(of_epoch(epoch), initial_epoch=epoch, epochs=epoch + 1, verbose=0)
    return [weight.tobytes() for weight in model.get_weights()]

def states(model):
    return [layer.seed_generator.state for layer in model.layers if hasattr(layer, "seed_generator")]

def same(each, dropout=False, keep=False):
    whole = fit(made(dropout), 0, 4, each)
    file = tempfile.mkdtemp() + "/half"
    model = made(dropout)
    fit(model, 0, 2, each)
    tf.train.Checkpoint(model=model).write(file)
    kept = [np.array(state) for state in states(model)]
    model = made(dropout)
    tf.train.Checkpoint(model=model).read(file).assert_existing_objects_matched()
    for state, value in zip(states(model), kept) if keep else ():
        state.assign(value)
    return fit(model, 2, 4, each) == whole

tf.config.experimental.enable_op_determinism()
print(json.dumps([same(False), same(True), same(True, dropout=True), same(True, dropout=True, keep=True)]))
"""


BACKUP = """
import json, os, tempfile
import numpy as np
import tensorflow as tf

rows = np.random.RandomState(0).randn(256, 16).astype("float32")
rows = tf.data.Dataset.from_tensor_slices((rows, rows[:, :1]))

class KeepStates(tf.keras.callbacks.Callback):
    def __init__(self, file):
        super().__init__()
        self.file = file

    def states(self):
        return [layer.seed_generator.state for layer in self.model.layers if hasattr(layer, "seed_generator")]

    def on_train_begin(self, logs=None):
        if os.path.exists(self.file):
            for state, value in zip(self.states(), np.load(self.file).values()):
                state.assign(value)

    def on_epoch_end(self, epoch, logs=None):
        np.savez(self.file, *[np.array(state) for state in self.states()])

def of_epoch(epoch):
    return rows.shuffle(256, seed=100 + epoch, reshuffle_each_iteration=False)

def fit(folder, first, last, each, dropout, keep):
    tf.keras.utils.set_random_seed(7)
    layers = [tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dropout(0.3, seed=3), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential(layers if dropout else layers[::2])
    model.build((None, 16))
    model.compile("adam", "mse")
    data = rows.shuffle(256, seed=1)
    if each:
        data = tf.data.Dataset.range(first, last).flat_map(of_epoch)
    calls = [tf.keras.callbacks.BackupAndRestore(folder + "/backup", delete_checkpoint=False)]
    calls += [KeepStates(folder + "/states.npz")] if keep else []
    model.fit(data.batch(32), epochs=last, steps_per_epoch=8 if each else None, verbose=0, callbacks=calls)
    return [weight.tobytes() for weight in model.get_weights()]

def same(each, dropout=False, keep=False):
    whole, half = tempfile.mkdtemp(), tempfile.mkdtemp()
    fit(half, 0, 2, each, dropout, keep)
    return fit(whole, 0, 4, each, dropout, keep) == fit(half, 2, 4, each, dropout, keep)

tf.config.experimental.enable_op_determinism()
print(json.dumps([same(False), same(True), same(True, dropout=True), same(True, dropout=True, keep=True)]))
"""


def _printed(python: Command, *args: str) -> Any:
    done = python(*args, environ=QUIET, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@exhaustive
def test_a_resumed_training_has_the_bits_of_one_without_a_stop(cli: Command, python: Command) -> None:
    script, once = str(EXAMPLES / "resume.py"), ("--runs", "1", "--save")
    done = [
        cli("repeat", script, *once, "whole", "--", "whole.ckpt", "40", environ=QUIET, timeout=400),
        python(script, "stopped.ckpt", "20", environ=QUIET, timeout=400),
        cli("repeat", script, *once, "resumed", "--", "stopped.ckpt", "40", environ=QUIET, timeout=400),
        cli("repeat", "--compare", "whole", "resumed"),
    ]
    assert [each.returncode for each in done] == [0, 0, 0, 0], [each.stderr for each in done]
    assert "the same bits in 2 runs, at 1 step" in done[-1].stdout


@exhaustive
def test_what_the_checkpoint_lacks_changes_the_bits(python: Command) -> None:
    broken = dict.fromkeys(("iterator", "generator", "optimizer", "draws"), False)
    assert _printed(python, "-c", VARIANTS, str(EXAMPLES)) == {**broken, "skip": True, "nothing": True}


@exhaustive
def test_fit_needs_data_of_its_own_for_each_epoch_and_the_states_of_dropout(python: Command) -> None:
    assert _printed(python, "-c", FIT) == [False, True, False, True]


@exhaustive
@pytest.mark.parametrize(
    ("version", "kept"),
    [("newest", True), *(pytest.param(*each, marks=OLDER) for each in (("2.15.1", False), ("2.18.1", True)))],
)
def test_backup_and_restore_lacks_the_order_of_the_data_and_the_states_of_dropout(
    version: str, kept: bool, request: pytest.FixtureRequest, older_tensorflow: Callable[[str], Path]
) -> None:
    """The table of the guide; with Keras 2 there is no state of `Dropout` to keep."""
    python = request.getfixturevalue("tensorflow_python") if version == "newest" else older_tensorflow(version)
    command = [str(python), "-c", BACKUP]
    done = subprocess.run(command, env={**os.environ, **QUIET}, capture_output=True, text=True, check=True, timeout=400)
    assert json.loads(done.stdout) == [False, True, False, kept]
