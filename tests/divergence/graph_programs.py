"""Programs whose cause stands inside a graph, at the line marked `# <name>`; a clean one; one that is fused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(4)

KERAS_2 = tf.__version__.startswith("2.15")
ROWS = np.random.RandomState(0).randint(0, 50, 200_000).astype("int32")
UPDATES = np.random.RandomState(1).randn(200_000, 16).astype("float32")


def scatter() -> Iterator[dict[str, Any]]:
    table = tf.Variable(tf.zeros((50, 16)))

    @tf.function  # type: ignore[untyped-decorator]
    def step() -> Any:
        for _ in tf.range(2):
            table.scatter_add(tf.IndexedSlices(UPDATES, ROWS))  # scatter
        return tf.reduce_sum(table)

    for _ in range(3):
        yield {"sum": step()}


def embedding() -> None:
    tf.keras.utils.set_random_seed(0)
    optimizers = tf.keras.optimizers.legacy if KERAS_2 else tf.keras.optimizers  # its new ones sum equal rows before
    model = tf.keras.Sequential([tf.keras.layers.Embedding(50, 16), tf.keras.layers.Dense(1)])
    model.compile(optimizers.SGD(0.1), "mse", jit_compile=False)
    words = ROWS.reshape(-1, 8)
    targets = UPDATES[: len(words), :8, None]
    model.fit(words, targets, batch_size=12_500, shuffle=False, verbose=0)  # embedding


def python() -> Iterator[dict[str, Any]]:
    @tf.function  # type: ignore[untyped-decorator]
    def step(x: Any) -> Any:
        y = tf.numpy_function(lambda a: a + np.random.RandomState().rand(8, 8).astype("f4"), [x], tf.float32)  # python
        return tf.reduce_sum(x @ tf.ensure_shape(y, (8, 8)))

    for _ in range(2):
        yield {"sum": step(tf.ones((8, 8)))}


def dropout() -> None:
    tf.keras.utils.set_random_seed(0)
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((4,)), layers.Dense(8), layers.Dropout(0.5), layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=True)
    model.fit(UPDATES[:256, :4], UPDATES[:256, :1], batch_size=64, shuffle=False, verbose=0)  # dropout


def clean() -> None:
    tf.keras.utils.set_random_seed(0)
    layers = tf.keras.layers
    parts = [layers.Conv2D(8, 3, activation="relu"), layers.BatchNormalization(), layers.MaxPooling2D()]
    model = tf.keras.Sequential([layers.Input((28, 28, 1)), *parts, layers.Flatten(), layers.Dense(10)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    images = UPDATES[: 64 * 49].reshape(64, 28, 28, 1)
    model.fit(images, ROWS[:64] % 10, batch_size=32, epochs=2, shuffle=False, verbose=0)


def product() -> Iterator[dict[str, Any]]:
    a, b = tf.constant(UPDATES[:2032].reshape(127, 256)), tf.constant(UPDATES[4000:5040].reshape(256, 65))

    @tf.function  # type: ignore[untyped-decorator]
    def step(x: Any) -> Any:
        y = tf.nn.relu(x)
        return tf.tanh(tf.matmul(y, b))  # product

    for _ in range(2):
        yield {"out": step(a)}


def fused() -> None:
    """TensorFlow makes one kernel of product, sum and tanh, unless somebody looks between them."""
    tf.keras.utils.set_random_seed(0)
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((8,)), layers.Dense(32, "tanh"), layers.Dense(1)])
    model.compile("adam", "mse", jit_compile=False)
    model.fit(UPDATES[:256, :8], UPDATES[:256, :1], batch_size=32, shuffle=False, verbose=0)
