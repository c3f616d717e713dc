"""Programs with threads, replicas and undefined outputs, each for one planted reason, at the line marked `# <name>`."""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

with suppress(RuntimeError):  # the process stays, and has them already
    two = [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()]
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], two)

ROWS = np.random.RandomState(0).randn(64, 512).astype("float32")


def mirrored_dropout() -> dict[str, Any]:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def step() -> Any:
        return tf.reduce_sum(tf.nn.dropout(tf.ones((8, 8)), 0.5))  # mirrored_dropout

    @tf.function  # type: ignore[untyped-decorator]
    def train() -> Any:
        return strategy.reduce("SUM", strategy.run(step), axis=None)

    return {"loss": train()}


def hogwild() -> dict[str, Any]:
    weights = tf.Variable(tf.zeros((512,)), name="weights")

    def work(first: int) -> None:
        for number in range(first, 60, 3):
            weights.assign_sub(tf.sin(weights + ROWS[number]) * 0.3)  # hogwild

    _together(work, 3)
    return {"weights": weights}


def thread_dropout() -> dict[str, Any]:
    found = {}

    def work(number: int) -> None:
        found[str(number)] = tf.nn.dropout(tf.ones((8, 8)), 0.5)  # thread_dropout

    _together(work, 1)
    return found


def thread_numpy() -> dict[str, Any]:
    found = {}

    def work(number: int) -> None:
        found[str(number)] = tf.sin(np.random.rand(8))  # thread_numpy

    _together(work, 1)
    return found


def queue_loader() -> dict[str, Any]:
    tf.keras.utils.set_random_seed(0)
    rows: queue.Queue[Any] = queue.Queue()

    def load(number: int) -> None:
        with Path("/dev/urandom").open("rb") as noise:  # no function that diverge could hold
            time.sleep(noise.read(1)[0] * 1e-4)
        rows.put(ROWS[number])

    for number in range(8):
        threading.Thread(target=load, args=(number,)).start()
    total = tf.zeros((512,))
    for _ in range(8):
        total = tf.tanh(total + rows.get())  # queue_loader
    return {"total": total}


def late_seed() -> dict[str, Any]:
    start = np.random.rand(8).astype("float32")
    tf.keras.utils.set_random_seed(0)
    return {"sum": tf.sin(start)}  # late_seed


def clean_threads() -> dict[str, Any]:
    found = {}

    def work(number: int) -> None:
        found[str(number)] = tf.reduce_sum(tf.sin(ROWS[number]))

    _together(work, 3)
    return {"total": found["0"] + found["1"] + found["2"]}


def clean_pool() -> dict[str, Any]:
    total = tf.Variable(tf.zeros((512,)))
    with ThreadPoolExecutor(3) as pool:
        for row in pool.map(lambda number: tf.sin(tf.constant(ROWS[number])), range(24)):
            total.assign_add(row)
    return {"total": total}


def clean_turns() -> dict[str, Any]:
    """Threads that change one variable one after the other do not race."""
    weights = tf.Variable(tf.zeros((512,)), name="weights")
    for number in range(3):
        thread = threading.Thread(target=lambda row=ROWS[number]: weights.assign_add(tf.sin(row)))
        thread.start()
        thread.join()
    return {"weights": weights}


def clean_mirrored() -> dict[str, Any]:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        weights = tf.Variable(tf.ones((512,)))

    def step() -> Any:
        return tf.reduce_sum(tf.sin(weights * ROWS[0]))

    return {"loss": strategy.reduce("SUM", strategy.run(step), axis=None)}


def clean_undefined() -> dict[str, Any]:
    matrix = tf.constant(ROWS[:, :64])
    values = tf.linalg.svd(matrix, compute_uv=False)
    symmetric = matrix + tf.transpose(matrix)
    image, ones = tf.cast(tf.reshape(matrix, (4, 16, 16, 4)), tf.float16), tf.ones((4,))
    frozen = tf.compat.v1.nn.fused_batch_norm(image, ones, ones, ones, ones, is_training=False)[0]
    eigenvalues = {"eigenvalues": tf.linalg.eigvalsh(symmetric), "others": tf.linalg.eigvals(symmetric)}
    return {"values": values, "frozen": frozen, **eigenvalues}


def _together(work: Any, count: int) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
