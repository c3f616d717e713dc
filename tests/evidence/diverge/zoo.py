"""Programs that differ from run to run, each for one planted reason, at the line marked `# <name>`; and clean ones."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(4)
tf.config.threading.set_inter_op_parallelism_threads(4)

ROWS = np.random.RandomState(0).randint(0, 50, 200_000).astype("int32")
UPDATES = np.random.RandomState(1).randn(200_000, 16).astype("float32")
WORDS, TARGETS = ROWS.reshape(-1, 8), UPDATES[:25_000, :8, None]


def scatter() -> Iterator[dict[str, Any]]:
    rows, updates = tf.constant(ROWS), tf.constant(UPDATES)
    table = tf.Variable(tf.zeros((50, 16)))
    for _ in range(3):
        with tf.GradientTape() as tape:
            predictions = tf.reduce_sum(tf.gather(table, rows) * updates, 1)
            loss = tf.reduce_mean(tf.square(predictions - 1.0))
        gradient = tape.gradient(loss, table)
        table.scatter_sub(tf.IndexedSlices(gradient.values, gradient.indices))  # scatter
        yield {"loss": loss, "weights": table}


def _embedding(optimizer: Any) -> Any:
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Embedding(50, 16), tf.keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    return model


KERAS_2 = tf.__version__.startswith("2.15")


def embedding_sgd() -> None:
    optimizers = tf.keras.optimizers.legacy if KERAS_2 else tf.keras.optimizers  # its new ones sum equal rows before
    model = _embedding(optimizers.SGD(0.1))
    model.fit(WORDS, TARGETS, batch_size=12_500, shuffle=False, verbose=0)  # embedding_sgd


def embedding_adagrad() -> None:
    model = _embedding(tf.keras.optimizers.Adagrad(0.1))
    model.fit(WORDS, TARGETS, batch_size=12_500, shuffle=False, verbose=0)  # embedding_adagrad


def bincount() -> dict[str, Any]:
    total = tf.zeros(50)
    for _ in range(10):
        total += tf.math.bincount(tf.constant(ROWS), weights=tf.constant(UPDATES[:, 0]), minlength=50)  # bincount
    return {"total": total}


def crop() -> dict[str, Any]:
    image = tf.Variable(tf.random.stateless_uniform((4, 64, 64, 8), seed=(1, 2)))
    corners = tf.random.stateless_uniform((256, 2), seed=(3, 4), maxval=0.5)
    index = tf.random.stateless_uniform((256,), seed=(5, 6), maxval=4, dtype=tf.int32)
    weights = tf.random.stateless_normal((256, 24, 24, 8), seed=(7, 8))
    with tf.GradientTape() as tape:
        crops = tf.image.crop_and_resize(image, tf.concat([corners, corners + 0.5], 1), index, (24, 24))
        loss = tf.reduce_sum(crops * weights)
    return {"gradient": tape.gradient(loss, image)}  # crop


def numpy_function() -> dict[str, Any]:
    x = tf.ones((8, 8))
    noise = tf.numpy_function(lambda array: array + np.float32(np.random.rand()), [x], tf.float32)  # numpy_function
    return {"sum": tf.reduce_sum(tf.matmul(x, noise))}


def numpy_weights() -> dict[str, Any]:
    x = tf.random.stateless_normal((8, 8), seed=(1, 2))
    return {"product": tf.matmul(x, np.random.rand(8, 8).astype("float32"))}  # numpy_weights


def dropout() -> dict[str, Any]:
    x = tf.random.stateless_normal((32, 32), seed=(1, 2))
    dropped = tf.nn.dropout(x, 0.5)  # dropout
    return {"sum": tf.reduce_sum(dropped)}


def keras_dropout() -> None:
    ones = tf.keras.initializers.Constant(0.1)
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(8, kernel_initializer=ones),
            tf.keras.layers.Dropout(0.5),  # keras_dropout
            tf.keras.layers.Dense(1, kernel_initializer=ones),
        ]
    )
    model.compile("sgd", "mse")
    model.fit(UPDATES[:256, :4], UPDATES[:256, :1], batch_size=64, shuffle=False, verbose=0)  # keras_dropout


def keras_initializer() -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])  # keras_initializer
    model.compile("sgd", "mse")
    model.fit(UPDATES[:256, :4], UPDATES[:256, :1], batch_size=64, shuffle=False, verbose=0)  # keras_initializer


def map_fn() -> dict[str, Any]:
    tf.keras.utils.set_random_seed(0)

    def noise(row: Any) -> Any:
        return row + tf.random.uniform((100,)) * tf.random.normal((100,))  # map_fn

    @tf.function  # type: ignore[untyped-decorator]
    def noisy(x: Any) -> Any:
        return tf.map_fn(noise, x, parallel_iterations=10)

    return {f"noise {number}": noisy(tf.zeros((64, 100))) for number in range(5)}


def data_order() -> None:
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((UPDATES[:512, :4], UPDATES[:512, :1]))
    data = data.map(lambda x, y: (x + tf.random.uniform((4,)), y), num_parallel_calls=4).batch(64)
    model.fit(data, verbose=0)  # data_order


def data_shuffle() -> Iterator[dict[str, Any]]:
    total = tf.Variable(tf.zeros((4,)))
    data = tf.data.Dataset.from_tensor_slices(UPDATES[:512, :4]).shuffle(512).batch(64)
    for batch in data:  # data_shuffle
        total.assign(total * 0.9 + tf.reduce_mean(batch, 0))
        yield {"total": total}


def set_order() -> dict[str, Any]:
    total = tf.zeros(())
    for word in {"red", "green", "blue", "white", "black", "yellow", "orange"}:
        total = total * 1.1 + float(len(word))  # set_order
    return {"total": total}


def random_branch() -> dict[str, Any]:
    x = tf.random.stateless_normal((32, 32), seed=(1, 2))
    for _ in range(16):
        function = tf.tanh if random.random() < 0.5 else tf.sin
        x = function(x)  # random_branch
    return {"x": x}


def clock() -> dict[str, Any]:
    return {"scaled": tf.ones((4,)) * float(time.time() % 1)}  # clock


def addn() -> dict[str, Any]:
    a, b, c = (tf.constant(UPDATES[:, number]) for number in range(3))

    @tf.function  # type: ignore[untyped-decorator]
    def total(a: Any, b: Any, c: Any) -> Any:
        x, y, z = tf.tanh(a), tf.exp(b), tf.sin(c)
        also = tf.reduce_sum(tf.cumsum(x)) + tf.reduce_sum(tf.cumsum(y))
        for _ in range(4):
            z = tf.tanh(tf.sin(z))
        return tf.raw_ops.AddN(inputs=[x, y, z]), also  # addn

    return {f"total {number}": total(a, b, c)[0] for number in range(60)}


def xla_random() -> dict[str, Any]:
    tf.keras.utils.set_random_seed(0)

    @tf.function(jit_compile=True)  # type: ignore[untyped-decorator]
    def noisy(x: Any) -> Any:
        return x + tf.random.uniform((100,))  # xla_random

    return {"noise": noisy(tf.zeros((100,)))}


def clean() -> Iterator[dict[str, Any]]:
    tf.keras.utils.set_random_seed(0)
    weights = tf.Variable(tf.random.normal((16, 4)))
    data = tf.data.Dataset.from_tensor_slices((UPDATES[:512], UPDATES[:512, :4])).shuffle(512, seed=1).batch(128)
    for x, y in data:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.nn.dropout(x @ weights, 0.2) - y))
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        yield {"loss": loss, "weights": weights}


def clean_fit() -> None:
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dropout(0.5), tf.keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    model.fit(UPDATES[:256, :4], UPDATES[:256, :1], batch_size=64, epochs=2, verbose=0)
