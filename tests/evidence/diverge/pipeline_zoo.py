"""Programs around tf.data, each with one planted cause at the line marked `# <name>`; and clean ones."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(4)
tf.config.threading.set_inter_op_parallelism_threads(4)

ROWS = np.random.RandomState(0).randn(64, 8).astype("float32")


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


def cached_noise() -> dict[str, Any]:
    data = tf.data.Dataset.from_tensor_slices(ROWS).map(lambda row: row + tf.random.normal((8,))).cache().batch(32)
    first = _folded(tf.reduce_sum(batch, 0) for batch in data)  # cached_noise
    second = _folded(tf.reduce_sum(batch, 0) for batch in data)
    return {"first": first, "second": second}


def clean_slow_map() -> dict[str, Any]:
    """Elements that take their own time, in order."""
    data = tf.data.Dataset.from_tensor_slices(ROWS).map(_slow, num_parallel_calls=4)
    return {"total": _folded(data.prefetch(4))}
