"""Modules, layers, losses, agents and graphs as objects, with one planted cause each; and clean ones.

Lines marked `# <name>` may be named.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

with suppress(RuntimeError):  # the process stays, and has them already
    tf.config.threading.set_intra_op_parallelism_threads(4)
    tf.config.threading.set_inter_op_parallelism_threads(4)

ROWS = np.random.RandomState(6).randn(64, 8).astype("float32")
TARGETS = np.tanh(ROWS.sum(1, keepdims=True))
LEFT = Path(tempfile.gettempdir()) / f"object-zoo-{os.getppid()}"  # of one test, and all its processes
PLACES = np.random.RandomState(7).randint(0, 40, 200_000).astype("int32")


class Head(tf.Module):  # type: ignore[misc]
    """A linear layer of one's own, with whatever noise it is given."""

    def __init__(self, noise: Callable[[Any], Any] = lambda logits: logits) -> None:
        super().__init__()
        self.kernel = tf.Variable(tf.fill((8, 3), 0.1))
        self.noise = noise

    def __call__(self, rows: Any) -> Any:
        return tf.nn.softmax(self.noise(rows @ self.kernel))

    def learn(self, rows: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(tf.math.log(self(rows)[:, 0]))
        self.kernel.assign_sub(0.1 * tape.gradient(loss, self.kernel))
        return loss


def gumbel_head() -> Iterator[dict[str, Any]]:
    def gumbel(logits: Any) -> Any:
        return logits - tf.math.log(-tf.math.log(tf.random.uniform(tf.shape(logits), 1e-6, 1.0)))  # gumbel_head

    head = Head(gumbel)
    yield from ({"loss": head.learn(ROWS[at : at + 16])} for at in (0, 16, 32))


def switched() -> dict[str, Any]:
    @tf.function  # type: ignore[untyped-decorator]
    def augmented(rows: Any) -> Any:
        which = tf.random.uniform((), 0, 3, tf.int32)  # switched
        return tf.switch_case(which, [lambda: tf.sin(rows), lambda: tf.cos(rows), lambda: tf.tanh(rows)])

    return {str(number): augmented(tf.constant(ROWS)) for number in range(6)}


def vectorized() -> dict[str, Any]:
    def jitter(row: Any) -> Any:
        return tf.reduce_sum(row * tf.random.uniform((8,)))  # vectorized

    return {"sums": tf.vectorized_map(jitter, tf.constant(ROWS))}  # vectorized


def drawn_under_xla() -> dict[str, Any]:
    @tf.function(jit_compile=True)  # type: ignore[untyped-decorator]
    def draw(logits: Any) -> Any:
        return tf.one_hot(tf.random.categorical(logits, 2), 8) @ tf.transpose(logits)  # drawn_under_xla

    return {"drawn": draw(tf.constant(ROWS))}


def seeded_under_xla() -> dict[str, Any]:
    tf.random.set_seed(1)

    @tf.function(jit_compile=True)  # type: ignore[untyped-decorator]
    def noisy(rows: Any) -> Any:
        return rows * tf.random.truncated_normal((8,), seed=2)  # seeded_under_xla

    return {"noisy": noisy(tf.constant(ROWS))}


def noisy_loss() -> None:
    def loss(target: Any, seen: Any) -> Any:
        return tf.square(target + 0.1 * tf.random.normal(tf.shape(seen)) - seen)  # noisy_loss

    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", loss)
    model.fit(ROWS, TARGETS, batch_size=16, shuffle=False, verbose=0)


def frozen_mask() -> None:
    """A layer that draws its mask with NumPy when it is built."""

    class Mask(tf.keras.layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.mask = np.random.binomial(1, 0.5, shape[-1]).astype("float32")

        def call(self, rows: Any) -> Any:
            return rows * self.mask  # frozen_mask

    model = tf.keras.Sequential([Mask(), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")
    model.fit(ROWS, TARGETS, batch_size=16, shuffle=False, verbose=0)  # frozen_mask


def fit_until() -> None:
    class Until(tf.keras.callbacks.Callback):  # type: ignore[misc]
        end = 0.0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.end = self.end or time.monotonic() + 0.2
            self.model.stop_training = time.monotonic() > self.end

    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")
    model.fit(ROWS, TARGETS, batch_size=16, epochs=400, shuffle=False, verbose=0, callbacks=[Until()])  # fit_until


def kept_backup() -> None:
    """It finds the backup of the last run, and has less left to do."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")
    model.build((None, 8))
    kept = tf.keras.callbacks.BackupAndRestore(str(LEFT), delete_checkpoint=False)
    model.fit(ROWS, TARGETS, batch_size=16, epochs=2, shuffle=False, verbose=0, callbacks=[kept])  # kept_backup


def histogram() -> dict[str, Any]:
    """The weight of each bin of a ragged batch."""
    rows = tf.RaggedTensor.from_uniform_row_length(tf.constant(PLACES), 200)
    weights = tf.RaggedTensor.from_uniform_row_length(tf.random.stateless_normal((200_000,), (1, 2)), 200)
    counts = [tf.math.bincount(rows.flat_values, weights.flat_values, minlength=40) for _ in range(8)]  # histogram
    return {"counts": tf.stack(counts)}


def boxed() -> dict[str, Any]:
    image = tf.constant(np.tile(ROWS, (1, 8))[None, ..., None])
    box = tf.constant([[[0.1, 0.1, 0.9, 0.9]]])
    begin, size, _ = tf.image.sample_distorted_bounding_box(tf.shape(image[0]), box, 0, 0.3)  # boxed
    return {"part": tf.reduce_sum(tf.slice(image[0], begin, size))}


def columns_of_union() -> dict[str, Any]:
    columns = {"age", "income", "city", "rent"} | {f"past {year}" for year in range(4)}
    table = {name: ROWS[:, number] for number, name in enumerate(sorted(columns))}
    return {"out": tf.stack([table[name] for name in columns], 1) @ ROWS[:8]}  # columns_of_union


def clean_alarmed() -> dict[str, Any]:
    """A signal that only counts."""
    ticks, weights = [0], tf.Variable(tf.zeros((8,)))
    before = signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
    for row in islice(cycle(ROWS), 100):
        weights.assign(tf.sin(weights + row))
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    return {"weights": weights}
