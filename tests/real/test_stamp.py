"""Models of a real Keras, stamped, loaded by TensorFlow as before, shown and compared with what made them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.exhaustive import exhaustive

ROOT = Path(__file__).resolve().parents[2]
CHECKOUT = {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "-1"}

SAVE = """
import envlock
import keras, numpy as np
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(2)])
x = np.arange(12, dtype="float32").reshape(4, 3)
model.compile("sgd", "mse")
model.fit(x, np.ones((4, 2), "float32"), verbose=0)
model.save("model.keras")
model.export("saved") if hasattr(model, "export") else model.save("saved")
np.save("before.npy", model(x).numpy())
import tensorflow as tf
graph = tf.saved_model.load("saved")
np.save("graph.npy", (graph.serve if hasattr(graph, "serve") else graph)(x).numpy())
print(envlock.stamp("model.keras"))
print(envlock.stamp("saved", whole=True))
"""
LOAD = """
import json, sys
import keras, numpy as np, tensorflow as tf
x = np.arange(12, dtype="float32").reshape(4, 3)
before, computed = np.load("before.npy").tobytes(), np.load("graph.npy").tobytes()
model = keras.models.load_model("model.keras")
graph = tf.saved_model.load("saved")
serve = graph.serve if hasattr(graph, "serve") else graph
print(json.dumps([model(x).numpy().tobytes() == before, serve(x).numpy().tobytes() == computed,
    sorted(name.split(".")[0] for name in sys.modules if name.startswith("envlock"))]))
"""


def journey(python: Path, envlock: Command) -> None:
    """Save, stamp and load models, in one environment, and ask what made them."""
    interpreter = Command([str(python)], envlock.folder)
    assert envlock("capture", "--quiet", "--python", str(python), environ=CHECKOUT).returncode == 0
    line = envlock("show", "--line").stdout.strip()
    made = interpreter("-c", SAVE, environ=CHECKOUT, timeout=200)
    assert (made.returncode, made.stdout.splitlines()[-2:]) == (0, [line, line]), made.stderr
    loaded = interpreter("-c", LOAD, environ={"CUDA_VISIBLE_DEVICES": "-1"}, timeout=200)
    assert loaded.returncode == 0, loaded.stderr
    assert json.loads(loaded.stdout.splitlines()[-1]) == [True, True, []]
    for model in ("model.keras", "saved"):
        assert envlock("show", model).stdout == envlock("show").stdout
        here = envlock("diff", model, "live", "--python", str(python), environ=CHECKOUT)
        assert (here.returncode, here.stdout) == (0, "matches under policy strict\n")
        off = envlock(
            "diff", model, "live", "--python", str(python), environ={**CHECKOUT, "TF_ENABLE_ONEDNN_OPTS": "0"}
        )
        assert off.returncode == 1
        assert f"  x environ.TF_ENABLE_ONEDNN_OPTS: {model} unset, live 0" in off.stdout.splitlines()
    tamper(envlock.folder)
    for model in ("model.keras", "saved"):
        for words in (["show", model], ["diff", model, "live"], ["build", model, "--dry-run"]):
            done = envlock(*words)
            assert (done.returncode, done.stdout) == (3, "")
            said = f"error: the stamp of model {model} has a line that is not its lockfile's\n"
            assert done.stderr.startswith(said), done.stderr


def tamper(folder: Path) -> None:
    """Change one fact in the stamp of each model, and nothing else."""
    stamp = folder / "saved/assets.extra/envlock.json"
    changed = stamp.read_bytes().replace(b'"implementation": "cpython"', b'"implementation": "pypy"')
    assert changed != stamp.read_bytes()
    stamp.write_bytes(changed)
    with zipfile.ZipFile(folder / "model.keras") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(folder / "model.keras", "w") as archive:
        for name, content in {**members, "envlock.json": changed}.items():
            archive.writestr(name, content)


@exhaustive
@pytest.mark.tensorflow
def test_models_of_keras_3(tensorflow_python: Path, envlock: Command) -> None:
    journey(tensorflow_python, envlock)


@pytest.mark.older_tensorflows
def test_models_of_keras_2(older_tensorflow: Callable[[str], Path], envlock: Command) -> None:
    journey(older_tensorflow("2.15.1"), envlock)
