"""Programs whose Python differs from run to run, each for one reason at the line marked `# <name>`; and clean ones."""

from __future__ import annotations

import os
import random
import secrets
import tempfile
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

ROWS = np.random.RandomState(0).randn(64, 8).astype("float32")
TARGETS = ROWS.sum(1, keepdims=True)
WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "the",
    "mat",
    "while",
    "another",
    "cat",
    "read",
    "a",
    "book",
    "about",
    "mats",
    "in",
    "hats",
]
LEFT = Path(tempfile.gettempdir()) / f"script-zoo-{os.getpid()}"


def _pause(number: int) -> int:
    time.sleep(random.SystemRandom().random() * 0.02)
    return number


def object_ids() -> dict[str, Any]:
    rows = [type("Row", (), {"value": row})() for row in ROWS[:8]]
    weights = [float(id(row) // 16 % 97) for row in rows]
    total = tf.zeros((8,))
    for weight, row in zip(weights, rows, strict=True):
        total = total + weight * row.value  # object_ids
    return {"total": total}


def folder_names() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        for row in ROWS[:8]:
            np.save(Path(folder) / f"{uuid.uuid4().hex}.npy", row)
        total = tf.zeros((8,))
        for file in sorted(Path(folder).iterdir()):
            total = tf.sin(total + np.load(file))  # folder_names
    return {"total": total}


def secret_key() -> Iterator[dict[str, Any]]:
    weights = tf.Variable(tf.ones((8, 1)))
    for number in range(3):
        loss = tf.reduce_mean(tf.square(ROWS @ weights - TARGETS))
        weights.assign_sub(0.01 * weights)
        if number == 1:
            weights.assign_add(tf.fill((8, 1), secrets.randbelow(1000) / 1000))  # secret_key
        yield {"loss": loss}


def time_budget() -> dict[str, Any]:
    state, end = tf.constant(ROWS[0]), time.perf_counter() + 0.05
    while time.perf_counter() < end:
        state = tf.sin(state * 3.0 + 1.0)  # time_budget
    return {"state": tf.cos(state)}  # time_budget


def odd_microsecond() -> dict[str, Any]:
    state = tf.constant(ROWS[0])
    for _ in range(12):
        state = tf.sin(state)  # odd_microsecond
        if time.time_ns() // 1000 % 2:
            state = tf.cos(state)  # odd_microsecond
    return {"state": tf.exp(state)}  # odd_microsecond


def first_completed() -> dict[str, Any]:
    total = tf.zeros((8,))
    with ThreadPoolExecutor(4) as pool:
        for done in as_completed([pool.submit(_pause, number) for number in range(8)]):
            total = tf.tanh(total + ROWS[done.result()])  # first_completed
    return {"total": total}


def shuffled_order() -> Iterator[dict[str, Any]]:
    order = list(range(64))
    random.shuffle(order)
    weights = tf.Variable(tf.zeros((8, 1)))
    for first in range(0, 64, 16):
        batch = tf.gather(ROWS, order[first : first + 16])  # shuffled_order
        weights.assign_add(tf.reduce_mean(batch, 0)[:, None])
        yield {"weights": weights}


def _model() -> Any:
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, "relu"), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


class _ByTheClock(tf.keras.callbacks.Callback):  # type: ignore[misc]
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch == 1:
            rate = 0.01 + time.time() % 1 / 100
            self.model.optimizer.learning_rate.assign(rate)  # callback_clock


def callback_clock() -> None:
    _model().fit(ROWS, TARGETS, batch_size=16, shuffle=False, verbose=0, callbacks=[_ByTheClock()])


def keras_shuffled_arrays() -> None:
    model = _model()
    order = np.random.default_rng().permutation(64)
    model.fit(ROWS[order], TARGETS[order], batch_size=16, shuffle=False, verbose=0)  # keras_shuffled_arrays


def resumed_checkpoint() -> dict[str, Any]:
    weights = tf.Variable(tf.zeros((8,)))
    checkpoint = tf.train.Checkpoint(weights=weights)
    manager = tf.train.CheckpointManager(checkpoint, str(LEFT), max_to_keep=2)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint)  # resumed_checkpoint
    weights.assign_add(ROWS[0])  # resumed_checkpoint
    manager.save()
    return {"weights": weights}


def clean_sorted_set() -> dict[str, Any]:
    numbers = {word: number for number, word in enumerate(sorted(set(WORDS)))}
    table = tf.random.stateless_normal((32, 4), (1, 2))
    return {"rows": tf.gather(table, [numbers[word] for word in WORDS])}


def clean_set_of_counts() -> dict[str, Any]:
    """The order of the set decides nothing that is shown."""
    counts = {}
    for word in set(WORDS):
        counts[word] = WORDS.count(word)
    return {"most": tf.constant(max(counts.values())), "all": tf.constant(sorted(counts.values()))}


def clean_stopwatch() -> Iterator[dict[str, Any]]:
    weights = tf.Variable(tf.ones((8, 1)))
    for _ in range(3):
        begun = time.time()
        loss = tf.reduce_mean(tf.square(ROWS @ weights - TARGETS))
        weights.assign_sub(0.1 * weights)
        print(f"a step took {time.time() - begun:.6f} s")
        yield {"loss": loss}


def clean_checkpoint() -> dict[str, Any]:
    """It writes and reads a checkpoint in a folder that has another name each time."""
    weights = tf.Variable(tf.constant(ROWS[0]))
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(weights=weights).write(f"{folder}/weights")
        weights.assign(tf.zeros((8,)))
        tf.train.Checkpoint(weights=weights).read(path)
    return {"weights": weights + 1.0}


def clean_futures() -> dict[str, Any]:
    total = tf.zeros((8,))
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(_pause, number) for number in range(8)]:
            total = tf.tanh(total + ROWS[future.result()])
    return {"total": total}
