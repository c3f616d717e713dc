"""No distribution that a run has imported is missing from those that its program was said to import."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envlock.guest.launch import read
from envlock.guest.observer import SEEN
from envlock.packages.closure import find_imported_distributions
from envlock.packages.installation import collect_distributions, find_installation
from envlock.packages.observation import find_used
from tests.conftest import Command
from tests.exhaustive import exhaustive, first
from tests.machines import write

DATA = "import numpy as np\nx, y = np.ones((32, 8, 8, 1), 'float32'), np.zeros(32, 'int32')\n"
PROGRAMS = {
    "sequential": """
import keras
model = keras.Sequential([keras.layers.Conv2D(4, 3), keras.layers.Flatten(), keras.layers.Dense(2)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(x, y, epochs=2, validation_split=0.25)
""",
    "saved": """
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Flatten(input_shape=(8, 8, 1)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y, callbacks=[tf.keras.callbacks.CSVLogger("log.csv")])
model.save("model.h5")
model.save_weights("model.weights.h5")
""",
    "tape": """
import tensorflow as tf
weights = tf.Variable(tf.random.normal((64, 1), seed=1))
@tf.function
def step(batch, wanted):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.reshape(batch, (-1, 64)) @ weights - tf.cast(wanted, tf.float32)[:, None]) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss
for batch, wanted in tf.data.Dataset.from_tensor_slices((x, y)).shuffle(8).batch(8):
    step(batch, wanted)
tf.train.Checkpoint(weights=weights).save("checkpoint")
""",
    "xla": """
import tensorflow as tf
double = tf.function(lambda value: tf.nn.softmax(value) * 2, jit_compile=True)
double(x.reshape(32, 64))
tf.summary.create_file_writer("logs").flush()
tf.io.gfile.exists("logs")
""",
    "v1": """
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
place = tf.placeholder(tf.float32, (None, 64))
with tf.Session() as session:
    session.run(tf.layers.flatten(place) if False else tf.reduce_sum(place), {place: x.reshape(32, 64)})
""",
    "image": """
import tensorflow as tf
images = tf.image.random_flip_left_right(tf.image.resize(x, (16, 16)), seed=3)
png = tf.io.encode_png(tf.cast(images[0], tf.uint8))
tf.keras.utils.set_random_seed(7)
net = tf.keras.applications.MobileNetV2(input_shape=(32, 32, 3), weights=None, classes=2)
net(tf.zeros((1, 32, 32, 3)))
""",
}


def missing(python: Path, program: str, folder: Path) -> tuple[list[str], int]:
    """Run a program; return what it used unforeseen, and how much it used."""
    write(folder, {"train.py": DATA + program, "notes/sitecustomize.py": read("observer")})
    place = find_installation(python)
    held = {*find_imported_distributions(["train.py"], folder, place)}
    done = Command([str(python)], folder)("train.py", environ={"PYTHONPATH": str(folder / "notes")})
    assert done.returncode == 0, done.stderr
    found = find_used((folder / "notes" / SEEN).read_text(encoding="utf-8").splitlines(), place)
    return sorted({*found} - held), len(found)


@exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("program", first(1, PROGRAMS))
def test_no_package_that_a_run_imports_is_missing(program: str, tensorflow_python: Path, tmp_path: Path) -> None:
    absent, imported = missing(tensorflow_python, PROGRAMS[program], tmp_path)
    assert absent == []
    assert imported >= 10


@pytest.mark.slow
@pytest.mark.older_tensorflows
@pytest.mark.parametrize("version", ["2.15.1", "2.18.1"])
@pytest.mark.parametrize("program", ["saved", "tape", "v1"])
def test_none_is_missing_with_an_older_tensorflow(
    program: str, version: str, older_tensorflow: Callable[[str], Path], tmp_path: Path
) -> None:
    absent, imported = missing(older_tensorflow(version), PROGRAMS[program], tmp_path)
    assert absent == []
    assert imported >= 10


@pytest.mark.slow
def test_what_tensorflow_needs_is_held(tensorflow_python: Path, tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "import tensorflow\n"})
    held = {*find_imported_distributions(["train.py"], tmp_path, find_installation(tensorflow_python))}
    assert {"tensorflow-cpu", "keras", "numpy", "h5py"} <= held
    assert not {"pip", "setuptools"} & held


def test_some_packages_of_an_environment_are_not_held(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "import rich\n"})
    place = find_installation(Path(sys.executable))
    held = {*find_imported_distributions(["train.py"], tmp_path, place)}
    assert {"rich", "pygments"} <= held
    assert {"tomlkit", "docker", "mypy"} <= {*collect_distributions(place)} - held
