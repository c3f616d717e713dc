"""Streams of every form: tf.data, queues, threads, processes, files, replicas; one planted cause each, and clean ones.

Each program is a small object or a chain of them, as in a framework of one's own. Lines marked `# <name>` may be named.
"""

from __future__ import annotations

import os
import random
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

with suppress(RuntimeError):  # the process stays, and has them already
    two = [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()]
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], two)
    tf.config.threading.set_intra_op_parallelism_threads(4)
    tf.config.threading.set_inter_op_parallelism_threads(4)

ROWS = np.random.RandomState(4).randn(48, 6).astype("float32")
LENGTHS = np.random.RandomState(5).randint(1, 9, 48)
LEFT = Path(tempfile.gettempdir()) / f"stream-zoo-{os.getpid()}"


@dataclass
class Fold:
    """What a program has seen, so that any other order gives another number."""

    state: Any = field(default_factory=lambda: tf.zeros((6,)))
    lock: Any = field(default_factory=threading.Lock)

    def take(self, row: Any) -> None:
        self.state = tf.sin(self.state * 1.3 + row)  # forked_workers

    def over(self, rows: Any) -> dict[str, Any]:
        for row in rows:
            self.take(row)
        return {"state": self.state}


def _rows() -> Any:
    return tf.data.Dataset.from_tensor_slices(ROWS)


def _late(row: Any) -> Any:
    time.sleep(random.SystemRandom().random() * 0.01)
    return row


def _sentences() -> Any:
    return tf.data.Dataset.from_tensor_slices(LENGTHS).map(lambda n: tf.cast(tf.range(n), tf.float32))


def ragged_batches() -> dict[str, Any]:
    data = _sentences().shuffle(48).ragged_batch(8)
    return Fold().over(tf.reduce_max(tf.reduce_sum(batch, 1)) for batch in data)  # ragged_batches


def sparse_rows() -> dict[str, Any]:
    data = tf.data.Dataset.from_tensor_slices(tf.sparse.from_dense(np.maximum(ROWS, 0))).shuffle(48)
    return Fold().over(tf.sparse.to_dense(row) for row in data)  # sparse_rows


def resumed_iterator() -> dict[str, Any]:
    """Each run goes on in the pipeline where the last one stopped."""
    rows = iter(_rows().repeat())
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(rows=rows), str(LEFT), max_to_keep=1)
    manager.restore_or_initialize()  # resumed_iterator
    found = Fold().over(next(rows) for _ in range(5))
    manager.save()
    return found


def towers() -> dict[str, Any]:
    """Threads add to one tensor, each in its turn, whoever comes first."""
    fold = Fold()

    def tower(number: int) -> None:
        for row in ROWS[number::3][:4]:
            _late(0)
            with fold.lock:
                fold.state = tf.sin(fold.state * 1.3 + row)  # towers

    _together(tower)
    return {"state": fold.state}


def mirrored_start() -> dict[str, Any]:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        weights = tf.Variable(tf.random.normal((6,)))  # mirrored_start
    return {"loss": strategy.reduce("SUM", strategy.run(lambda: tf.reduce_sum(weights * ROWS[0])), axis=None)}


def replicas_with_generator() -> dict[str, Any]:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        noise = tf.random.Generator.from_non_deterministic_state()  # replicas_with_generator
    return {"sum": strategy.reduce("SUM", strategy.run(lambda: noise.normal((6,))), axis=None)}


def clean_iterator() -> dict[str, Any]:
    """A pipeline that is stopped, saved, and gone on with in the same run."""
    first, second = (iter(_rows().shuffle(48, seed=3)) for _ in range(2))
    fold = Fold()
    fold.over(next(first) for _ in range(5))
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(rows=first).write(f"{folder}/rows")
        tf.train.Checkpoint(rows=second).read(path)
    return fold.over(next(second) for _ in range(5))


def _together(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
