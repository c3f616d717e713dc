"""Programs whose Python differs from run to run, each for one reason at the line marked `# <name>`; and clean ones."""

from __future__ import annotations

import os
import random
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

ROWS = np.random.RandomState(0).randn(64, 8).astype("float32")
TARGETS = ROWS.sum(1, keepdims=True)
LEFT = Path(tempfile.gettempdir()) / f"script-zoo-{os.getpid()}"


def object_ids() -> dict[str, Any]:
    rows = [type("Row", (), {"value": row})() for row in ROWS[:8]]
    weights = [float(id(row) // 16 % 97) for row in rows]
    total = tf.zeros((8,))
    for weight, row in zip(weights, rows, strict=True):
        total = total + weight * row.value  # object_ids
    return {"total": total}


def secret_key() -> Iterator[dict[str, Any]]:
    weights = tf.Variable(tf.ones((8, 1)))
    for number in range(3):
        loss = tf.reduce_mean(tf.square(ROWS @ weights - TARGETS))
        weights.assign_sub(0.01 * weights)
        if number == 1:
            weights.assign_add(tf.fill((8, 1), secrets.randbelow(1000) / 1000))  # secret_key
        yield {"loss": loss}


def odd_microsecond() -> dict[str, Any]:
    state = tf.constant(ROWS[0])
    for _ in range(12):
        state = tf.sin(state)  # odd_microsecond
        if time.time_ns() // 1000 % 2:
            state = tf.cos(state)  # odd_microsecond
    return {"state": tf.exp(state)}  # odd_microsecond


def shuffled_order() -> Iterator[dict[str, Any]]:
    order = list(range(64))
    random.shuffle(order)
    weights = tf.Variable(tf.zeros((8, 1)))
    for first in range(0, 64, 16):
        batch = tf.gather(ROWS, order[first : first + 16])  # shuffled_order
        weights.assign_add(tf.reduce_mean(batch, 0)[:, None])
        yield {"weights": weights}


def resumed_checkpoint() -> dict[str, Any]:
    weights = tf.Variable(tf.zeros((8,)))
    checkpoint = tf.train.Checkpoint(weights=weights)
    manager = tf.train.CheckpointManager(checkpoint, str(LEFT), max_to_keep=2)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint)  # resumed_checkpoint
    weights.assign_add(ROWS[0])  # resumed_checkpoint
    manager.save()
    return {"weights": weights}


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
