"""`envlock invariance` with a real TensorFlow: models whose classes are known by counting over all sizes of a batch."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.exhaustive import exhaustive

pytestmark = pytest.mark.tensorflow

MODELS = '''
import keras
import numpy as np
import tensorflow as tf

def dense():
    keras.utils.set_random_seed(0)
    wide = [keras.layers.Dense(512, activation="relu") for _ in range(2)]
    return keras.Sequential([keras.Input((784,)), *wide, keras.layers.Dense(10)])

def embedding():
    keras.utils.set_random_seed(0)
    tokens = keras.Input((6,), dtype="int32")
    mean = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(50, 8)(tokens))
    return keras.Model(tokens, mean)

def normalized_over_the_batch():
    """Its result is one of the batch by definition."""
    def function(x):
        return x - tf.reduce_mean(x, axis=0, keepdims=True)
    return function, np.arange(32, dtype="float32").reshape(8, 4)

def normalized_in_training():
    """As people write it who fine-tune: the layer is told to use the statistics of the batch."""
    keras.utils.set_random_seed(1)
    x = keras.Input((6,))
    h = keras.layers.BatchNormalization()(keras.layers.Dense(8, activation="relu")(x), training=True)
    return keras.Model(x, keras.layers.Dense(3, activation="softmax")(h))

def switched_off():
    """A program that has switched graphs off."""
    tf.config.run_functions_eagerly(True)
    def function(x):
        return x + float(tf.executing_eagerly())
    return function, np.zeros((4, 2), "float32")

def random():
    return (lambda x: x + tf.random.normal(tf.shape(x))), np.zeros((4, 2), "float32")

def named():
    keras.utils.set_random_seed(0)
    a, b = keras.Input((3,), name="a"), keras.Input((2,), name="b")
    return keras.Model({"a": a, "b": b}, keras.layers.Concatenate()([a, b]))

def unknown():
    return lambda x: x

def saved(folder):
    model = dense()
    model.save(f"{folder}/model.keras")
    model.export(f"{folder}/served")
    np.save(f"{folder}/x.npy", np.ones((5, 784), "float32"))
'''


@pytest.fixture
def measure(envlock: Command, tmp_path: Path, tensorflow_python: Path) -> Any:
    (tmp_path / "models.py").write_text(MODELS, encoding="utf-8")

    def run(*words: str, code: int) -> Any:
        argv = ("invariance", *words, "--python", str(tensorflow_python), "--format", "json")
        done = envlock(*argv, environ={"TF_CPP_MIN_LOG_LEVEL": "3"}, timeout=300)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout) if done.stdout else done.stderr

    return run


def classes(report: Any) -> dict[str, list[list[int]]]:
    return {each["mode"]: each["classes"] for each in report["attachments"]["modes"]}


def least_padding(sizes: list[list[int]], largest: int) -> int:
    """Return the size from which on all are of one class, counted from those that a report has."""
    (last,) = (each for each in sizes if largest in each)
    least = largest
    while least - 1 in last:
        least -= 1
    return least


@exhaustive
def test_dense_layers_depend_on_the_size_and_padding_helps(measure: Any) -> None:
    """Which sizes are alike depends on the processor: 2 to 16 with AVX-512, 8 to 16 on an EPYC without it; 1 is alone on both."""
    report = measure("models.py:dense", "--largest", "16", "--mode", "graph", "--mode", "predict", code=1)
    sizes = classes(report)["graph"]
    assert (classes(report)["predict"], sizes[0], sorted(chain.from_iterable(sizes))) == (
        sizes,
        [1],
        list(range(1, 17)),
    )
    layers = {each["mode"]: each["layer"]["kind"] for each in report["attachments"]["modes"]}
    assert layers == {"graph": "Dense", "predict": "Dense"}
    least = least_padding(sizes, 16)
    padding = f"pad smaller batches to {least} rows: from {least} to 16 the bits are the same"
    # Where the place in a batch changes the bits below the largest size, only that size helps.
    fixed = "pad every batch to 16 rows: there neither the place nor the other rows change the bits"
    texts = {each["text"] for each in report["attachments"]["remedies"]}
    assert fixed in texts
    assert texts <= {fixed, padding}


@exhaustive
def test_what_only_looks_up_does_not_depend_on_the_batch(measure: Any) -> None:
    report = measure("models.py:embedding", "--largest", "9", code=0)
    assert classes(report) == {
        "eager": [list(range(1, 10))],
        "graph": [list(range(1, 10))],
        "xla": [[1, 2, 3, 4, 8, 9]],
        "predict": [list(range(1, 10))],
    }


@exhaustive
def test_a_result_of_the_whole_batch_depends_on_its_rows(measure: Any) -> None:
    report = measure("models.py:normalized_over_the_batch", "--mode", "eager", code=1)
    rules = {finding["rule"] for finding in report["findings"]}
    assert rules == {"batch-size", "batch-neighbors"}
    assert report["attachments"]["remedies"] == []


def test_the_call_that_people_and_servers_make_is_measured(measure: Any) -> None:
    """A layer with `training=True` uses the batch; only Keras' `predict` overrules it."""
    words = ("--largest", "3", "--mode", "eager", "--mode", "graph", "--mode", "predict")
    report = measure("models.py:normalized_in_training", *words, code=1)
    modes = {each["mode"]: each for each in report["attachments"]["modes"]}
    assert {mode: each["invariant"] for mode, each in modes.items()} == {
        "eager": False,
        "graph": False,
        "predict": True,
    }
    for mode in ("eager", "graph"):
        assert modes[mode]["mixing"]["kind"] == "BatchNormalization"
        assert modes[mode]["distances"]["neighbors"]["largest_difference"] > 0.01
    texts = {each["text"] for each in report["attachments"]["remedies"]}
    assert texts == {
        "answer with `predict`, or call the model with `training=False`: then every batch has the same bits"
    }


@exhaustive
def test_a_graph_is_one_whatever_the_program_has_switched(measure: Any) -> None:
    report = measure("models.py:switched_off", "--mode", "eager", "--mode", "graph", code=0)
    assert [finding["rule"] for finding in report["findings"]] == ["modes-differ"]


@exhaustive
def test_a_model_that_varies_by_itself_is_not_judged(measure: Any) -> None:
    report = measure("models.py:random", "--mode", "eager", code=4)
    assert [finding["rule"] for finding in report["findings"]] == ["batch-unstable"]


def test_inputs_by_name(measure: Any) -> None:
    report = measure("models.py:named", "--largest", "4", "--mode", "eager", code=0)
    assert classes(report) == {"eager": [[1, 2, 3, 4]]}


@exhaustive
def test_inputs_that_are_not_known_are_asked_for(measure: Any) -> None:
    assert "error: a function's inputs are unknown: return (function, inputs), or give --inputs\n" in measure(
        "models.py:unknown", code=2
    )


@exhaustive
def test_saved_models_and_inputs_of_ones_own(measure: Any, tmp_path: Path, tensorflow_python: Path) -> None:
    made = Command([str(tensorflow_python)], tmp_path)(
        "-c",
        f"import sys; sys.path.insert(0, '.'); import models; models.saved({str(tmp_path)!r})",
        environ={"TF_CPP_MIN_LOG_LEVEL": "3"},
        timeout=120,
    )
    assert made.returncode == 0, made.stderr
    sizes = classes(measure("model.keras", "--inputs", "x.npy", "--mode", "graph", code=1))["graph"]
    assert (sizes[0], sorted(chain.from_iterable(sizes))) == ([1], [1, 2, 3, 4, 5]), "as many as there are rows"
    report = measure("served", "--largest", "5", "--mode", "graph", code=1)
    assert classes(report) == {"graph": sizes}
    assert "error: model not found: absent.keras\n" in measure("absent.keras", code=2)


FOREIGN = """
import sys
import tensorflow as tf, keras
folder = sys.argv[1]
class Writing(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
    def __call__(self, x):
        with tf.control_dependencies([tf.io.write_file(f"{folder}/written", "1")]):
            return tf.identity(x)
tf.saved_model.save(Writing(), f"{folder}/writing")
x = keras.Input((4,))
keras.Model(x, keras.layers.Lambda(lambda y: y + 1)(x)).save(f"{folder}/lambda.keras")
"""


def test_what_runs_of_a_model_that_somebody_else_made(
    envlock: Command, measure: Any, tmp_path: Path, tensorflow_python: Path
) -> None:
    """As docs/concepts/trust.md says: TensorFlow runs the operations of a SavedModel, and Keras no code of a .keras."""
    made = Command([str(tensorflow_python)], tmp_path)(
        "-c", FOREIGN, str(tmp_path), environ={"TF_CPP_MIN_LOG_LEVEL": "3"}, timeout=120
    )
    assert made.returncode == 0, made.stderr
    for words in (
        ("show", "writing"),
        ("show", "lambda.keras"),
        ("diff", "writing", "live"),
        ("build", "lambda.keras"),
    ):
        done = envlock(*words)
        assert (done.returncode, " has no stamp" in done.stderr) == (3, True)
    assert not (tmp_path / "written").exists()
    assert measure("writing", "--mode", "graph", "--largest", "2", code=0)
    assert (tmp_path / "written").read_bytes() == b"1"
    said = measure("lambda.keras", "--mode", "graph", "--largest", "2", code=2)
    assert "error: lambda.keras cannot be loaded: " in said
    assert "`Lambda` layer" in said
