"""What op determinism costs on a CPU, by kind of operation.

    python benchmarks/determinism.py PYTHON... [--rounds N]

PYTHON is the interpreter of an environment with TensorFlow. In each round a fresh process without op determinism and
one with it take turns, in another order each time, and do the same work with 2 inter-op and 2 intra-op threads. Ratios
of one round: the median, the least and the most. The switch does nothing to a matrix product: its row is the noise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
from collections import defaultdict
from pathlib import Path

PROGRAM = """
import json, sys, time
import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(2)
tf.config.threading.set_inter_op_parallelism_threads(2)
if sys.argv[1] == "with":
    tf.config.experimental.enable_op_determinism()
tf.keras.utils.set_random_seed(0)
numbers = np.random.RandomState(0)
square, rows = (tf.constant(numbers.randn(*size), tf.float32) for size in ((128, 128), (200_000, 16)))
few, many = (tf.constant(numbers.randint(0, size, 200_000), tf.int32) for size in (50, 50_000))
images, filters = (tf.constant(numbers.randn(*size), tf.float32) for size in ((16, 32, 32, 16), (3, 3, 16, 32)))
small, large = (tf.Variable(tf.zeros((size, 16))) for size in (50, 50_000))
words, targets = numbers.randint(0, 50, (3200, 8)), numbers.randn(3200, 1).astype("float32")
layers, tables = tf.keras.layers, tf.data.Dataset


def filters_gradient():
    with tf.GradientTape() as tape:
        tape.watch(filters)
        loss = tf.reduce_sum(tf.nn.conv2d(images, filters, 1, "SAME"))
    return tape.gradient(loss, filters)


def stage(function):
    return lambda: [None for _ in tables.range(400).map(function, num_parallel_calls=4)]


def interleaved(function):
    files = tables.range(8).interleave(lambda x: tables.range(50).map(function), 4, num_parallel_calls=4)
    return lambda: [None for _ in files]


def fitted(model, optimizer, inputs):
    model.compile(optimizer, "mse")
    return lambda: model.fit(inputs, targets, batch_size=32, verbose=0)


def python(x):
    return tf.numpy_function(lambda x: x + 1, [x], tf.int64)


dense = tf.keras.Sequential([layers.Dense(128, "relu"), layers.Dropout(0.2), layers.Dense(1)])
embedding = tf.keras.Sequential([layers.Embedding(50, 16), layers.Flatten(), layers.Dense(1)])
WORK = {
    "matrix product, 128 x 128": (lambda: square @ square, 2000),
    "`tf.math.bincount` with weights, 200,000 into 50 bins": (
        lambda: tf.math.bincount(few, weights=rows[:, 0], minlength=50), 200),
    "`tf.math.unsorted_segment_sum`, 200,000 rows of 16 into 50": (
        lambda: tf.math.unsorted_segment_sum(rows, few, 50), 100),
    "`tf.scatter_nd` of the same rows": (lambda: tf.scatter_nd(few[:, None], rows, (50, 16)), 100),
    "`tf.tensor_scatter_nd_add` of the same rows": (
        lambda: tf.tensor_scatter_nd_add(small.value(), few[:, None], rows), 100),
    "`Variable.scatter_add` of the same rows into 50": (lambda: small.scatter_add(tf.IndexedSlices(rows, few)), 50),
    "`Variable.scatter_add` of the same rows into 50,000": (
        lambda: large.scatter_add(tf.IndexedSlices(rows, many)), 50),
    "gradient of a convolution's filter": (filters_gradient, 100),
    "`map`, 4 parallel calls, no random numbers": (stage(lambda x: tf.cast(x, tf.float32) * 2.0), 20),
    "`map`, 4 parallel calls, `tf.random`": (stage(lambda x: tf.random.uniform((64,))), 20),
    "`map`, 4 parallel calls, stateless random numbers": (
        stage(lambda x: tf.random.stateless_uniform((64,), (1, x))), 20),
    "`map`, 4 parallel calls, a Python function": (stage(python), 20),
    "`interleave`, 4 parallel calls": (interleaved(lambda x: x + 1), 20),
    "`interleave`, 4 parallel calls, a Python function": (interleaved(python), 20),
    "`fit`: dense layers, dropout, Adam": (fitted(dense, "adam", rows[:3200].numpy()), 5),
    "`fit`: an embedding, SGD": (fitted(embedding, "sgd", words), 5),
}
spent = {}
for name, (work, times) in WORK.items():
    work()
    before = time.process_time(), time.perf_counter()
    for _ in range(times):
        work()
    spent[name] = time.process_time() - before[0], time.perf_counter() - before[1]
print("answer:" + json.dumps(spent))
"""


def main() -> None:
    """Print a table for each interpreter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    for python in asked.pythons:
        ratios: dict[str, list[list[float]]] = defaultdict(list)
        for _ in range(asked.rounds):
            spent = {each: _spent(python, each) for each in random.sample(["without", "with"], 2)}
            for name, without in spent["without"].items():
                ratios[name].append(
                    [b / a for a, b in zip(without, spent["with"][name], strict=True)]
                )
        print(f"{python}, {asked.rounds} rounds, load {os.getloadavg()[0]:.1f}\n")
        print("| operation | processor time | wall time |\n|---|--:|--:|")
        for name, rounds in ratios.items():
            print(f"| {name} | {' | '.join(map(_range, zip(*rounds, strict=True)))} |")


def _spent(python: Path, which: str) -> dict[str, list[float]]:
    environ = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    command = [str(python), "-c", PROGRAM, which]
    said = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
    found: dict[str, list[float]] = json.loads(said.rpartition("answer:")[2])
    return found


def _range(ratios: tuple[float, ...]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    main()
