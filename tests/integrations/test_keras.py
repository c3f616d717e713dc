"""The callback in a real Keras."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Command, activate
from tests.exhaustive import exhaustive
from tests.integrations.page import program

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).resolve().parents[2]

FIT = """
import json, sys
import keras
import numpy as np
from envlock.integrations.keras import LockCallback, RepeatMismatch

keras.utils.set_random_seed(int(sys.argv[1]))
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile("sgd", "mse")
try:
    callbacks = [LockCallback(repeat="weights.json")]
    done = model.fit(np.ones((8, 3)), np.ones((8, 1)), epochs=int(sys.argv[2]), verbose=2, callbacks=callbacks)
except RepeatMismatch as error:
    print(json.dumps(str(error)))
else:
    print(json.dumps([done.params["envlock"], model.envlock, sorted(done.history)]))
"""


@pytest.fixture
def python(tensorflow_python: Path, tmp_path: Path) -> Command:
    """Return the interpreter with TensorFlow in a folder with a lockfile of its environment."""
    done = activate(tensorflow_python, tmp_path)("capture", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    return Command([str(tensorflow_python)], tmp_path)


def fit(python: Command, seed: int, epochs: int, environ: dict[str, str] | None = None) -> object:
    """Return what a run prints at its end."""
    done = python("-c", FIT, str(seed), str(epochs), environ=environ, timeout=200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@exhaustive
def test_a_run_is_held_to_the_weights_of_the_earlier_one(python: Command) -> None:
    line = activate(Path(python.argv[0]), python.folder)("show", "--line").stdout.strip()
    records = python.folder / "weights.json"
    assert fit(python, 1, 1) == [line, line, ["loss"]]
    first = json.loads(records.read_bytes())
    assert (list(first["epochs"]), first["epochs"]["1"]["envlock"]) == (["1"], line)
    assert [name for name, _ in first["epochs"]["1"]["weights"]] == [
        *("sequential/dense/kernel", "sequential/dense/bias", "sequential/dense_1/kernel", "sequential/dense_1/bias")
    ]
    assert fit(python, 1, 2) == [line, line, ["loss"]]
    longer = json.loads(records.read_bytes())
    assert (longer["epochs"]["1"], sorted(longer["epochs"])) == (first["epochs"]["1"], ["1", "2"])
    assert fit(python, 2, 2) == (
        "epoch 1 is not as in the earlier run in weights.json: 4 of 4 weights differ, first sequential/dense/kernel; "
        "the earlier run was in the same environment"
    )
    assert json.loads(records.read_bytes()) == longer


@pytest.mark.older_tensorflows
def test_keras_2_has_it_as_well(older_tensorflow: Callable[[str], Path], envlock: Command) -> None:
    """Its weights have names instead of paths, and it asks callbacks for methods that only its own class has."""
    python = Command([str(older_tensorflow("2.15.1"))], envlock.folder)
    assert envlock("capture", "--quiet", "--python", python.argv[0]).returncode == 0
    line = envlock("show", "--line").stdout.strip()
    checkout = {"PYTHONPATH": str(ROOT)}
    assert fit(python, 1, 1, checkout) == [line, line, ["loss"]]
    assert fit(python, 2, 1, checkout) == (
        "epoch 1 is not as in the earlier run in weights.json: 4 of 4 weights differ, first dense/kernel:0; "
        "the earlier run was in the same environment"
    )


@exhaustive
def test_the_example_of_the_page(python: Command) -> None:
    for _ in range(2):
        done = python("-c", program("Keras"), timeout=200)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1].startswith("envlock:1:sha256:")
    assert sorted(json.loads((python.folder / "weights.json").read_bytes())["epochs"]) == ["1", "2"]


def test_no_step_is_computed_in_another_environment(python: Command) -> None:
    done = python("-c", FIT, "1", "1", environ={"TF_ENABLE_ONEDNN_OPTS": "0"}, timeout=200)
    said = f"EnvironmentMismatch: {python.folder}/envlock.lock: does not match under policy strict: 1 fact differs"
    assert done.returncode == 1
    assert any(line.endswith(said) for line in done.stderr.splitlines())
    assert "loss" not in done.stdout
    assert not (python.folder / "weights.json").exists()


STAMP = """
import sys
import keras
import numpy as np
from envlock.integrations.keras import LockCallback

class Recapture(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        text = open("envlock.lock").read()
        open("envlock.lock", "w").write(text.replace('"cpython"', '"pypy"'))

model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
save = keras.callbacks.ModelCheckpoint("model.keras")
more = {"saved": [save], "missing": [], "changed": [save, Recapture()]}
callbacks = [LockCallback(stamp="model.keras"), *more[sys.argv[1]]]
model.fit(np.ones((8, 3)), np.ones((8, 1)), verbose=0, callbacks=callbacks)
print(callbacks[0].line)
if sys.argv[1] == "saved":
    again = keras.models.load_model("model.keras")
    print((again.get_weights()[0] == model.get_weights()[0]).all())
"""


@exhaustive
def test_what_another_callback_has_saved_is_stamped(python: Command) -> None:
    done = python("-c", STAMP, "saved", timeout=200)
    assert done.returncode == 0, done.stderr
    line, loaded = done.stdout.splitlines()[-2:]
    assert loaded == "True"
    own = activate(Path(python.argv[0]), python.folder)
    assert own("show", "model.keras", "--line").stdout.strip() == line


@exhaustive
@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("missing", "not stamped: neither a .keras file nor a SavedModel: model.keras"),
        ("changed", "not stamped: the lockfile has changed since the training began"),
    ],
)
def test_what_cannot_be_stamped_is_a_warning_and_the_training_is_kept(case: str, why: str, python: Command) -> None:
    done = python("-c", STAMP, case, timeout=200)
    assert done.returncode == 0, done.stderr
    assert why in done.stderr
    assert done.stdout.splitlines()[-1].startswith("envlock:1:sha256:")
