"""Run in an environment with TensorFlow: what becomes of the five texts' advice there.

Prints one JSON object: experiment -> outcome (`equal`, `differs`, `on`, `off`, `raises`, `read`, `unread`), with the
numbers behind it under `numbers`. TensorFlow is imported once; what switches something on for the whole process runs in
a fork of its own, made before TensorFlow has started any thread.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", TF_NUM_INTRAOP_THREADS="4")

import numpy as np
import tensorflow as tf

import envlock

RUNS = 7
Found = dict[str, Any]


def same(arrays: list[Any]) -> str:
    """Return whether all arrays have the same bytes."""
    return "equal" if len({np.asarray(array).tobytes() for array in arrays}) == 1 else "differs"


def off(a: Any, b: Any) -> float:
    """Return the sum of the differences."""
    return float(np.abs(np.asarray(a, "f8") - np.asarray(b, "f8")).sum())


# What the texts run.


def train() -> Any:
    """Return all weights, in a row, of a small Keras model after three epochs."""
    data, labels = np.random.rand(64, 10).astype("f4"), np.random.randint(0, 3, 64)
    layers = [tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dropout(0.2), tf.keras.layers.Dense(3)]
    model = tf.keras.Sequential(layers)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    model.fit(data, labels, batch_size=16, epochs=3, verbose=0)
    return np.concatenate([weight.ravel() for weight in model.get_weights()])


def seed_partly() -> None:
    """Seed as the texts print it."""
    tf.random.set_seed(42)
    np.random.seed(42)


def seed_by_hand() -> None:
    """Seed as they print it, and Python's generator too."""
    seed_partly()
    random.seed(42)


def twice(seed: Callable[[], Any], run: Callable[[], Any]) -> list[Any]:
    """Return two results, seeded before each."""
    results = []
    for _ in range(2):
        seed()
        results.append(run())
    return results


def adder(multiply: bool) -> list[Any]:
    """Return losses, gradients and weights, at the first and last step, of 7 trainings of a network that adds."""
    runs = []
    for _ in range(RUNS):
        tf.random.set_seed(3)
        source = np.random.RandomState(0)
        first, second = (tf.Variable(source.randn(*shape).astype("f4") * 0.3) for shape in ((2, 64), (64, 1)))
        bias = tf.Variable(tf.zeros(64))
        kept = []
        for step in range(61):
            data = tf.constant(source.rand(256, 2).astype("f4"))
            target = tf.reduce_sum(data, 1, keepdims=True)
            with tf.GradientTape() as tape:
                hidden = tf.nn.relu(tf.matmul(data, first) + bias)
                error = tf.square(tf.matmul(hidden, second) - target)
                ones = tf.ones((1, 256)) / 256.0
                loss = tf.reduce_sum(tf.matmul(ones, error)) if multiply else tf.reduce_mean(error)
            variables = [first, bias, second]
            gradients = tape.gradient(loss, variables)
            for variable, gradient in zip(variables, gradients, strict=True):
                variable.assign_sub(0.1 * gradient)
            if step in (0, 60):
                kept += [loss.numpy().ravel(), *(g.numpy().ravel() for g in gradients), first.numpy().ravel()]
        runs.append(np.concatenate(kept))
    return runs


def scattered(add: Callable[[Any, Any, Any], Any]) -> list[Any]:
    """Return 7 sums of 200,000 rows into 50, as the gradient of an embedding is applied."""
    source = np.random.RandomState(0)
    rows = tf.constant(source.randint(0, 50, 200_000).astype("i4"))
    updates = tf.constant(source.rand(200_000, 16).astype("f4"))
    results = []
    for _ in range(RUNS):
        total = tf.Variable(tf.zeros((50, 16)))
        add(total, rows, updates)
        results.append(total.numpy())
    return results


def plain_add(total: Any, rows: Any, updates: Any) -> None:
    total.scatter_add(tf.IndexedSlices(updates, rows))


def shuffled(seed: int | None) -> Any:
    return np.array([int(x) for x in tf.data.Dataset.range(500).shuffle(500, seed=seed)])


def mapped(parallel: int | None) -> Any:
    noise = tf.data.Dataset.range(400).map(lambda _: tf.random.uniform([]), num_parallel_calls=parallel)
    return np.array([float(x) for x in noise])


def clock() -> str:
    """Return whether op determinism is on: then, and only then, the clock is refused."""
    try:
        tf.timestamp().numpy()
    except tf.errors.FailedPreconditionError:
        return "on"
    return "off"


# The experiments by the state of the process that they need.


def draws() -> Found:
    """Text 000's two examples, and what is right in their place."""
    tf.random.set_seed(7)
    first, second = tf.random.normal((4, 4)).numpy(), tf.random.normal((4, 4)).numpy()
    again = twice(lambda: tf.random.set_seed(7), lambda: tf.random.normal((4, 4)).numpy())
    explicit = [tf.random.stateless_normal((4, 4), seed=(1, 2)).numpy() for _ in range(2)]
    image, kernel = np.random.rand(8, 32, 32, 8).astype("f4"), np.random.rand(3, 3, 8, 16).astype("f4")
    return {
        "two draws after one seed": same([first, second]),
        "a draw after each seed": same(again),
        "stateless draws": same(explicit),
        "convolutions": same([tf.nn.conv2d(image, kernel, 1, "SAME").numpy() for _ in range(RUNS)]),
        "plain sums": same([tf.reduce_sum(tf.constant(image)).numpy() for _ in range(RUNS)]),
        "numbers": {"two draws after one seed": off(first, second)},
    }


def trainings() -> Found:
    """Text 001's training, twice, under the texts' seeds and under whole ones."""
    printed = twice(seed_partly, train)
    return {
        "training, TensorFlow and NumPy seeded": same(printed),
        "training, Python seeded too": same(twice(seed_by_hand, train)),
        "training, set_random_seed": same(twice(lambda: tf.keras.utils.set_random_seed(42), train)),
        "numbers": {"training, TensorFlow and NumPy seeded": off(*printed)},
    }


def scattered_until_other(add: Callable[[Any, Any, Any], Any]) -> list[Any]:
    """Return results of which one is another, soon: on busy processors one thread may do all for a while."""
    results = scattered(add)
    for _ in range(30):
        if same(results) != "equal":
            break
        results += scattered(add)
    return results


def sums() -> Found:
    """What is noisy on a CPU, what is not, and how it looks to np.allclose."""
    results = scattered_until_other(plain_add)
    near = all(np.allclose(results[0], each) for each in results)
    in_graph = scattered_until_other(tf.function(plain_add))
    segments = tf.constant(np.random.RandomState(1).randint(0, 50, 100_000).astype("i4"))
    values = tf.constant(np.random.RandomState(2).randn(100_000, 4).astype("f4"))
    return {
        "sums by rows on the CPU": same(results),
        "sums by rows, by np.allclose": "equal" if near else "differs",
        "sums by rows in tf.function": same(in_graph),
        "segment sums": same([tf.math.unsorted_segment_sum(values, segments, 50).numpy() for _ in range(RUNS)]),
        "the adder": same(adder(multiply=False)),
        "the adder by products": same(adder(multiply=True)),
        "numbers": {"sums by rows on the CPU": max(off(results[0], each) for each in results)},
    }


def pipelines() -> Found:
    """Shuffles and parallel maps, with a global seed and without."""
    unseeded = same([shuffled(None) for _ in range(2)])
    tf.random.set_seed(5)
    return {
        "shuffle without any seed": unseeded,
        "shuffle with a seed": same([shuffled(9) for _ in range(2)]),
        "random numbers in a map": same(twice(lambda: tf.random.set_seed(5), lambda: mapped(None))),
        "random numbers in a parallel map": same(
            [each for _ in range(4) for each in twice(lambda: tf.random.set_seed(5), lambda: mapped(4))]
        ),
    }


def compiled() -> Found:
    """Under XLA stateful draws pass over the seed; sums repeat."""
    draw = tf.function(lambda: tf.random.uniform((64,)), jit_compile=True)
    total = tf.function(lambda x: tf.reduce_sum(tf.tanh(x @ x)), jit_compile=True)
    square = tf.constant(np.random.RandomState(0).rand(200, 200).astype("f4"))
    return {
        "random numbers under XLA": same(twice(lambda: tf.random.set_seed(5), lambda: draw().numpy())),
        "sums under XLA": same([total(square).numpy() for _ in range(RUNS)]),
    }


def named_only() -> Found:
    tf.config.experimental.enable_op_determinism  # noqa: B018 (that it does nothing is the experiment)
    return {"the switch without parentheses": clock()}


def called() -> Found:
    """Op determinism by its function: it is on, and what differed is equal, or is refused."""
    tf.config.experimental.enable_op_determinism()
    tf.keras.utils.set_random_seed(1)
    parallel = [each for _ in range(4) for each in twice(lambda: tf.random.set_seed(5), lambda: mapped(4))]
    return {
        "the switch": clock(),
        "sums by rows, switched": same(scattered(plain_add)),
        "random numbers in a parallel map, switched": same(parallel),
        "training, switched": same(twice(lambda: tf.keras.utils.set_random_seed(42), train)),
        "training, switched, Python unseeded": same(twice(seed_partly, train)),
        "bits": train_digest(),
    }


def activated() -> Found:
    """All of it in one call, in the place of the texts' recipes."""
    envlock.activate(42, locked=False, quiet=True)
    first = train()
    envlock.activate(42, locked=False, quiet=True)
    return {"training, activate": same([first, train()]), "the switch by activate": clock()}


def unseeded_and_switched() -> Found:
    tf.config.experimental.enable_op_determinism()
    try:
        tf.random.uniform([]).numpy()
    except RuntimeError:
        return {"random numbers without a seed, switched": "raises"}
    return {"random numbers without a seed, switched": "differs"}


def by_variable() -> Found:
    """The variable in the script, before TensorFlow has looked; with it the function, too."""
    os.environ["TF_DETERMINISTIC_OPS"] = "1"
    os.environ["TF_CUDNN_DETERMINISTIC"] = "1"
    return {"the variable in time": clock(), "bits": train_digest()}


def by_both() -> Found:
    os.environ["TF_DETERMINISTIC_OPS"] = "1"
    tf.config.experimental.enable_op_determinism()
    return {"bits": train_digest()}


def too_late() -> Found:
    clock()
    os.environ["TF_DETERMINISTIC_OPS"] = "1"
    return {"the variable too late": clock()}


def names() -> Found:
    """Which of the texts' names stand in TensorFlow's libraries."""
    folder = Path(tf.__file__).parent
    libraries = [*folder.glob("*.so*"), *(folder / "python").glob("_pywrap_tensorflow*.so")]
    asked = ("TF_CUDNN_USE_AUTOTUNE", "TF_USE_CUDNN_AUTOTUNE", "TF_DETERMINISTIC_OPS")
    left = set(asked)
    for file in libraries:
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            left = {name for name in left if content.find(name.encode()) < 0}
    return {f"the name {name}": "unread" if name in left else "read" for name in asked}


def hashes() -> Found:
    """Whether PYTHONHASHSEED, set in the script or before it, makes the order of a set of strings repeat."""
    inside = "import os; os.environ['PYTHONHASHSEED'] = '0'; print(hash('a'), hash('b'))"

    def results(**environ: str) -> list[Any]:
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
        run = [sys.executable, "-S", "-c", inside]
        return [np.array(subprocess.check_output(run, env={**plain, **environ}).split()) for _ in range(3)]

    return {"PYTHONHASHSEED in the script": same(results()), "PYTHONHASHSEED before": same(results(PYTHONHASHSEED="0"))}


def train_digest() -> Any:
    """Return the bits of a training under whole seeds."""
    tf.keras.utils.set_random_seed(42)
    return train().tobytes().hex()


STATES: list[Callable[[], Found]] = [draws, trainings, sums, pipelines, compiled, named_only, called, activated]
STATES += [unseeded_and_switched, by_variable, by_both, too_late]


def forked(state: Callable[[], Found]) -> Found:
    """Return what a fork of this process finds."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            answer = state()
        except BaseException:
            answer = {"failed": f"{state.__name__}: {traceback.format_exc()}"}
        with os.fdopen(writing, "w") as stream:
            json.dump(answer, stream)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        text = stream.read()
    _, status = os.waitpid(child, 0)
    if status or not text:
        return {"failed": f"{state.__name__} ended with status {status}"}
    found: Found = json.loads(text)
    return found


def main() -> None:
    """Run everything."""
    found: Found = {**names(), **hashes()}
    numbers: Found = {}
    bits = {}
    for state in STATES:
        part = forked(state)
        if "failed" in part:
            sys.exit(part["failed"])
        numbers.update(part.pop("numbers", {}))
        if "bits" in part:
            bits[state.__name__] = part.pop("bits")
        found.update(part)
    found["training by function, by variable, by both"] = same([np.array(each) for each in bits.values()])
    print(json.dumps({"tensorflow": tf.__version__, "numbers": numbers, "found": found}))


if __name__ == "__main__":
    main()
