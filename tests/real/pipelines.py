"""Run in an environment with TensorFlow: what lint_dataset says of each pipeline, and how many results 8 runs give.

Prints one JSON object: name -> seeding -> [errors found, distinct results, digests].
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")

import numpy as np
import tensorflow as tf

import envlock

RUNS = 8
NUMBER = 64
FOLDER = Path(tempfile.mkdtemp())
for index in range(12):
    (FOLDER / f"{index}.txt").write_text(str(index))


def base() -> Any:
    return tf.data.Dataset.range(NUMBER)


def uneven(x: Any) -> Any:
    """Return x after a time that differs from element to element."""

    def wait(value: Any) -> Any:
        time.sleep(0.004 if int(value) % 4 == 0 else 0.0)
        return value

    return tf.ensure_shape(tf.py_function(wait, [x], tf.int64), [])


def busy(x: Any) -> Any:
    """Return x after work that differs from element to element, all of it in the graph."""
    rounds = tf.where(x % 5 == 0, 60, 1)
    _, total = tf.while_loop(
        lambda i, _: i < rounds, lambda i, t: (i + 1, t + tf.reduce_sum(tf.sin(t))), [0, tf.ones([20_000])]
    )
    return x + tf.cast(total[0] * 0, tf.int64)


def draw(x: Any) -> Any:
    return tf.cast(x, tf.float32) + tf.random.uniform([])


def draw_seeded(x: Any) -> Any:
    return tf.cast(x, tf.float32) + tf.random.uniform([], seed=5)


def stateless(x: Any) -> Any:
    return tf.cast(x, tf.float32) + tf.random.stateless_uniform([], [1, tf.cast(x, tf.int32)])


def by_numpy(x: Any) -> Any:
    return tf.numpy_function(lambda value: np.float32(value + np.random.rand()), [x], tf.float32)


def keras_flip() -> Any:
    layer = tf.keras.layers.RandomFlip(seed=1)
    return lambda x: layer(tf.reshape(tf.cast(x, tf.float32) + tf.range(12.0), [1, 2, 2, 3]), training=True)


def options(deterministic: bool, dataset: Any) -> Any:
    chosen = tf.data.Options()
    chosen.deterministic = deterministic
    return dataset.with_options(chosen)


def generator_map(parallel: int | None) -> Any:
    generator = tf.random.Generator.from_seed(3)
    return base().map(lambda x: tf.cast(x, tf.float32) + generator.uniform([]), num_parallel_calls=parallel)


def counter(parallel: int | None) -> Any:
    variable = tf.Variable(0, dtype=tf.int64)
    return base().map(lambda x: x + 1000 * variable.assign_add(1), num_parallel_calls=parallel)


def image_folder() -> Any:
    return tf.data.Dataset.list_files(str(FOLDER / "*.txt"))


def parted() -> list[Any]:
    return [tf.data.Dataset.range(10), tf.data.Dataset.range(100, 110)]


OWN: dict[str, Callable[[], Any]] = {
    "plain": base,
    "shuffle": lambda: base().shuffle(NUMBER),
    "shuffle seeded": lambda: base().shuffle(NUMBER, seed=3),
    "shuffle seeded, one order": lambda: base().shuffle(NUMBER, seed=3, reshuffle_each_iteration=False),
    "map": lambda: base().map(lambda x: x * 2),
    "parallel map": lambda: base().map(lambda x: x * 2, num_parallel_calls=4),
    "random serial": lambda: base().map(draw),
    "random parallel": lambda: base().map(draw, num_parallel_calls=4),
    "random seeded serial": lambda: base().map(draw_seeded),
    "random seeded parallel": lambda: base().map(draw_seeded, num_parallel_calls=4),
    "stateless parallel": lambda: base().map(stateless, num_parallel_calls=4),
    "layer parallel": lambda: base().map(keras_flip(), num_parallel_calls=4),
    "layer serial": lambda: base().map(keras_flip()),
    "numpy parallel": lambda: base().map(by_numpy, num_parallel_calls=4),
    "map in any order": lambda: base().map(uneven, num_parallel_calls=4, deterministic=False),
    "options in any order": lambda: options(False, base().map(busy, num_parallel_calls=4)),
    "interleave": lambda: base().interleave(
        lambda x: tf.data.Dataset.range(x, x + 3), cycle_length=4, num_parallel_calls=4
    ),
    "random source": lambda: tf.data.Dataset.random().take(10),
    "random source seeded": lambda: tf.data.Dataset.random(seed=4).take(10),
    "sampled": lambda: tf.data.Dataset.sample_from_datasets(parted()),
    "list_files": image_folder,
}
"""The cases that the rules were made with."""

MORE: dict[str, Callable[[], Any]] = {
    "sampled seeded": lambda: tf.data.Dataset.sample_from_datasets(parted(), seed=3),
    "list_files unshuffled": lambda: tf.data.Dataset.list_files(str(FOLDER / "*.txt"), shuffle=False),
    "list_files seeded": lambda: tf.data.Dataset.list_files(str(FOLDER / "*.txt"), seed=2),
    "shuffle in interleave": lambda: base().take(4).interleave(lambda x: tf.data.Dataset.range(20).shuffle(20)),
    "generator parallel": lambda: generator_map(4),
    "generator serial": lambda: generator_map(None),
    "counter parallel": lambda: counter(4),
    "counter serial": lambda: counter(None),
    "one parallel call": lambda: base().map(draw_seeded, num_parallel_calls=1),
    "batched and cached": lambda: base().shuffle(NUMBER, seed=1).batch(4).cache().prefetch(2).repeat(2),
    "flip images": lambda: base().map(
        lambda x: tf.image.random_flip_left_right(tf.cast(x, tf.float32) + tf.reshape(tf.range(12.0), [2, 2, 3]))
    ),
    "scan": lambda: base().scan(np.int64(0), lambda state, x: (state + x, state)),
    "stateless by counter": lambda: tf.data.Dataset.zip((base(), tf.data.Dataset.random(seed=3))).map(
        lambda x, seed: tf.cast(x, tf.float32) + tf.random.stateless_uniform([], [0, tf.cast(seed % 1000, tf.int32)]),
        num_parallel_calls=4,
    ),
    "random filter": lambda: base().filter(lambda x: tf.random.uniform([]) > 0.5),
    "from_generator": lambda: tf.data.Dataset.from_generator(
        lambda: iter(range(10)), output_signature=tf.TensorSpec([])
    ),
    "parallel batch": lambda: base().batch(4, num_parallel_calls=4),
}
"""Cases that were written after the rules, and for which no rule was changed."""


def result(dataset: Any) -> str:
    """Return what identifies all elements of two epochs."""
    found = hashlib.sha256()
    for _ in range(2):
        for element in dataset:
            found.update(np.asarray(element).tobytes() if element.dtype != tf.string else element.numpy())
    return found.hexdigest()


def seed(how: str) -> None:
    if how == "global":
        random.seed(7)
        np.random.seed(7)
        tf.random.set_seed(7)


def judge(make: Callable[[], Any], how: str) -> list[Any]:
    reports, results = [], set()
    for _ in range(RUNS):
        seed(how)
        dataset = make()
        reports.append(envlock.lint_dataset(dataset))
        results.add(result(dataset))
    errors = sorted({finding.rule for finding in reports[0].findings if finding.severity == "error"})
    return [errors, len(results), sorted({report.attachments["digest"] for report in reports})]


def main() -> None:
    if "--determinism" in sys.argv:
        tf.keras.utils.set_random_seed(7)
        tf.config.experimental.enable_op_determinism()
    chosen = {**OWN, **MORE}
    hows = ("global",) if "--determinism" in sys.argv else ("none", "global")  # a global seed cannot be taken back
    found: dict[str, dict[str, Any]] = {name: {} for name in chosen}
    for how in hows:
        for name, make in chosen.items():
            found[name][how] = judge(make, how)
    print(json.dumps({"version": tf.__version__, "own": list(OWN), "found": found}))


if __name__ == "__main__":
    main()
