"""Programs around tf.data, each with one planted cause at the line marked `# <name>`; and clean ones."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(4)
tf.config.threading.set_inter_op_parallelism_threads(4)

ROWS = np.random.RandomState(0).randn(64, 8).astype("float32")
LABELS = (ROWS.sum(1) > 0).astype("int64")


def _pause(row: Any) -> Any:
    time.sleep(random.SystemRandom().random() * 0.01)
    return row


def _slow(row: Any) -> Any:
    return tf.ensure_shape(tf.numpy_function(_pause, [row], tf.float32), (8,))


def _folded(batches: Any) -> Any:
    total = tf.zeros((8,))
    for batch in batches:
        total = tf.tanh(total * 1.1 + batch)
    return total


def interleave_order() -> dict[str, Any]:
    def shard(number: Any) -> Any:
        return tf.data.Dataset.from_tensor_slices(ROWS).skip(16 * number).take(16).map(_slow)

    data = tf.data.Dataset.range(4).interleave(shard, 4, num_parallel_calls=4, deterministic=False)
    total = tf.zeros((8,))
    for row in data:  # interleave_order
        total = tf.tanh(total + row)
    return {"total": total}


def map_unordered() -> Iterator[dict[str, Any]]:
    weights = tf.Variable(tf.ones((8, 1)))
    data = tf.data.Dataset.from_tensor_slices(ROWS).map(_slow, num_parallel_calls=4, deterministic=False)
    for row in data.take(32):  # map_unordered
        weights.assign(tf.tanh(weights + row[:, None]))
        yield {"weights": weights}


def generator_noise() -> dict[str, Any]:
    def rows() -> Iterator[Any]:
        noise = np.random.default_rng()
        for row in ROWS:
            yield row + noise.normal(size=8)

    data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((8,), tf.float32))
    return {"norms": [tf.norm(batch) for batch in data.batch(16)]}  # generator_noise


def sloppy_options() -> dict[str, Any]:
    options = tf.data.Options()
    options.deterministic = False
    data = tf.data.Dataset.from_tensor_slices(ROWS).map(_slow, num_parallel_calls=4).with_options(options)
    state = tf.zeros((8,))
    for row in data.batch(4).prefetch(2):  # sloppy_options
        state = tf.sin(state + row[0])
    return {"state": state}


def random_dataset() -> dict[str, Any]:
    seeds = list(tf.data.Dataset.random().take(4))  # random_dataset
    return {f"noise {n}": tf.random.stateless_uniform((4,), (seed, 0)) for n, seed in enumerate(seeds)}


def second_iterator() -> dict[str, Any]:
    steady = iter(tf.data.Dataset.from_tensor_slices(ROWS).shuffle(64, seed=3).batch(16))
    moving = iter(tf.data.Dataset.from_tensor_slices(ROWS).shuffle(64).batch(16))
    total = tf.zeros((16, 8))
    for _ in range(4):
        total = total + next(steady)
        total = total * next(moving)  # second_iterator
    return {"total": total}


def cached_noise() -> dict[str, Any]:
    data = tf.data.Dataset.from_tensor_slices(ROWS).map(lambda row: row + tf.random.normal((8,))).cache().batch(32)
    first = _folded(tf.reduce_sum(batch, 0) for batch in data)  # cached_noise
    second = _folded(tf.reduce_sum(batch, 0) for batch in data)
    return {"first": first, "second": second}


def numpy_in_map() -> dict[str, Any]:
    def crop(row: Any) -> Any:
        start = np.random.randint(0, 4)
        return row[start : start + 4]

    data = tf.data.Dataset.from_tensor_slices(ROWS).map(lambda row: tf.numpy_function(crop, [row], tf.float32))
    total = tf.zeros((4,))
    for batch in data.batch(8):  # numpy_in_map
        total = total + tf.reduce_sum(batch, 0)
    return {"total": total}


def keras_pipeline() -> None:
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, "relu"), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    random_rows = tf.data.Dataset.from_tensor_slices((ROWS, LABELS[:, None]))
    random_rows = random_rows.map(lambda x, y: (_slow(x), y), num_parallel_calls=4, deterministic=False)
    model.fit(random_rows.prefetch(2).batch(16), epochs=2, verbose=0)  # keras_pipeline


def clean_interleave() -> dict[str, Any]:
    def shard(number: Any) -> Any:
        return tf.data.Dataset.from_tensor_slices(ROWS).skip(16 * number).take(16).map(_slow)

    data = tf.data.Dataset.range(4).interleave(shard, 4, num_parallel_calls=4, deterministic=True)
    return {"total": _folded(data)}


def clean_seeds_in_map() -> Iterator[dict[str, Any]]:
    seeds = tf.data.Dataset.counter() if hasattr(tf.data.Dataset, "counter") else tf.data.experimental.Counter()
    data = tf.data.Dataset.zip((tf.data.Dataset.from_tensor_slices(ROWS), seeds))
    data = data.map(lambda row, seed: row + tf.random.stateless_normal((8,), (seed, 1)), num_parallel_calls=4)
    for batch in data.batch(16):
        yield {"mean": tf.reduce_mean(batch, 0)}


def clean_generator() -> dict[str, Any]:
    def rows() -> Iterator[Any]:
        noise = np.random.default_rng(7)
        for row in ROWS:
            yield row + noise.normal(size=8)

    data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((8,), tf.float32))
    return {"total": _folded(data.shuffle(16, seed=1))}


def clean_slow_map() -> dict[str, Any]:
    """Elements that take their own time, in order."""
    data = tf.data.Dataset.from_tensor_slices(ROWS).map(_slow, num_parallel_calls=4)
    return {"total": _folded(data.prefetch(4))}


def clean_keras_pipeline() -> None:
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, "relu"), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    data = tf.data.Dataset.from_tensor_slices((ROWS, LABELS[:, None])).shuffle(64, seed=2)
    data = data.map(lambda x, y: (_slow(x), y), num_parallel_calls=4).batch(16)
    model.fit(data, epochs=2, verbose=0)
