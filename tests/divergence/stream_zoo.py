"""Streams of every form: tf.data, queues, threads, processes, files, replicas; one planted cause each, and clean ones.

Each program is a small object or a chain of them, as in a framework of one's own. Lines marked `# <name>` may be named.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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


def bucketed() -> dict[str, Any]:
    sizes = {"element_length_func": tf.size, "bucket_boundaries": [3, 6], "bucket_batch_sizes": [4, 4, 4]}
    data = _sentences().shuffle(48).bucket_by_sequence_length(**sizes)
    return Fold().over(tf.reduce_sum(batch) for batch in data)  # bucketed


def scanned() -> dict[str, Any]:
    walk = _rows().scan(tf.zeros((6,)), lambda at, row: (at + row + tf.random.normal((6,)), at))
    return Fold().over([*walk])  # scanned


def nested_windows() -> dict[str, Any]:
    data = _rows().window(12).flat_map(lambda rows: rows.shuffle(12).batch(6))
    return Fold().over(tf.reduce_mean(tf.square(batch[0] - batch[1])) for batch in data)  # nested_windows


def snapshotted() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return Fold().over([*_rows().shuffle(48).snapshot(folder)])  # snapshotted


def ragged_batches() -> dict[str, Any]:
    data = _sentences().shuffle(48).ragged_batch(8)
    return Fold().over(tf.reduce_max(tf.reduce_sum(batch, 1)) for batch in data)  # ragged_batches


def sparse_rows() -> dict[str, Any]:
    data = tf.data.Dataset.from_tensor_slices(tf.sparse.from_dense(np.maximum(ROWS, 0))).shuffle(48)
    return Fold().over(tf.sparse.to_dense(row) for row in data)  # sparse_rows


def chosen() -> dict[str, Any]:
    which = tf.data.Dataset.random().map(lambda number: number % 2).take(24)
    data = tf.data.Dataset.choose_from_datasets([_rows(), _rows().map(lambda row: -row)], which)
    return Fold().over([*data])  # chosen


def table_of_files() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        np.savetxt(f"{folder}/rows.csv", ROWS, delimiter=",", header="a,b,c,d,e,f", comments="")
        data = tf.data.experimental.make_csv_dataset(f"{folder}/rows.csv", 6, num_epochs=1)
        return Fold().over(batch["a"] for batch in data)  # table_of_files


def time_series() -> dict[str, Any]:
    make = tf.keras.utils.timeseries_dataset_from_array
    data = make(ROWS, ROWS[:, 0], 4, shuffle=True, batch_size=8)  # time_series
    return Fold().over(tf.reduce_mean(windows, (0, 1)) for windows, _ in data)


def by_hand() -> dict[str, Any]:
    batches = iter(_rows().shuffle(48).batch(6))

    @tf.function  # type: ignore[untyped-decorator]
    def step(total: Any) -> Any:
        for _ in tf.range(4):
            total = tf.sin(total + tf.reduce_sum(next(batches), 0))  # by_hand
        return total

    return {"total": step(tf.zeros((6,)))}  # by_hand


def counted_rows() -> dict[str, Any]:
    """Workers of a map share a variable."""
    count = tf.Variable(0.0)

    def number(row: Any) -> Any:
        with tf.control_dependencies([tf.numpy_function(_late, [row], tf.float32)]):
            return row * count.assign_add(1.0)

    return Fold().over([*_rows().map(number, num_parallel_calls=4)])  # counted_rows


def as_arrays() -> dict[str, Any]:
    return Fold().over(row * 2 for row in _rows().shuffle(48).as_numpy_iterator())  # as_arrays


def reduced() -> dict[str, Any]:
    total = _rows().shuffle(48).reduce(tf.zeros((6,)), lambda at, row: tf.sin(at * 1.3 + row))  # reduced
    return {"total": total}


def single() -> dict[str, Any]:
    return {"rows": tf.sin(_rows().shuffle(48).batch(48).get_single_element()[:4])}  # single


def resumed_iterator() -> dict[str, Any]:
    """Each run goes on in the pipeline where the last one stopped."""
    rows = iter(_rows().repeat())
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(rows=rows), str(LEFT), max_to_keep=1)
    manager.restore_or_initialize()  # resumed_iterator
    found = Fold().over(next(rows) for _ in range(5))
    manager.save()
    return found


class _Ledger:
    """A database that outlives the run."""

    def __enter__(self) -> Any:
        self.base = sqlite3.connect(LEFT.with_suffix(".db"))
        self.base.execute("create table if not exists steps (loss real)")
        return self.base

    def __exit__(self, *_: object) -> None:
        self.base.commit()
        self.base.close()


def ledger() -> dict[str, Any]:
    with _Ledger() as base:
        (done,) = base.execute("select count(*) from steps").fetchone()
        rate = tf.constant(0.5 ** (done + 1))
        base.execute("insert into steps values (0.5)")
    return {"step": rate * ROWS[0]}  # ledger


def picked_by_database() -> dict[str, Any]:
    with sqlite3.connect(":memory:") as base:
        base.execute("create table rows (number integer)")
        base.executemany("insert into rows values (?)", [(number,) for number in range(48)])
        chosen = [number for (number,) in base.execute("select number from rows order by random() limit 8")]
    return {"rows": tf.gather(tf.constant(ROWS), chosen)}  # picked_by_database


def other_program() -> dict[str, Any]:
    said = subprocess.run([sys.executable, "-c", "import random; print(random.random())"], stdout=subprocess.PIPE)
    return {"scaled": tf.sin(ROWS[0] * float(said.stdout))}  # other_program


def forked_workers() -> dict[str, Any]:
    with multiprocessing.get_context("fork").Pool(3) as pool:
        rows = list(pool.imap_unordered(_late, list(ROWS[:12])))
    return Fold().over(rows)


def appended() -> dict[str, Any]:
    """What is ready is put into a list by whoever has made it."""
    ready: list[Any] = []
    with ThreadPoolExecutor(4) as pool:
        for row in ROWS[:12]:
            pool.submit(_late, row).add_done_callback(lambda done: ready.append(done.result()))
    total = tf.zeros((6,))
    for row in ready:
        total = tf.sin(total + row)  # appended
    return {"total": total}


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


def numbered_threads() -> dict[str, Any]:
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        draws = np.random.default_rng(threading.get_native_id())
        found[number] = tf.sin(draws.normal(size=6))  # numbered_threads

    _together(work)
    return {str(number): found[number] for number in range(3)}


def mirrored_start() -> dict[str, Any]:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        weights = tf.Variable(tf.random.normal((6,)))  # mirrored_start
    return {"loss": strategy.reduce("SUM", strategy.run(lambda: tf.reduce_sum(weights * ROWS[0])), axis=None)}


def values_of_replicas() -> dict[str, Any]:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    make = lambda context: tf.constant(np.random.rand(6)) + context.replica_id_in_sync_group  # noqa: E731 # values_of_replicas
    values = strategy.experimental_distribute_values_from_function(make)  # values_of_replicas
    return {"sum": strategy.reduce("SUM", strategy.run(tf.sin, (values,)), axis=None)}  # values_of_replicas


def replicas_with_generator() -> dict[str, Any]:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        noise = tf.random.Generator.from_non_deterministic_state()  # replicas_with_generator
    return {"sum": strategy.reduce("SUM", strategy.run(lambda: noise.normal((6,))), axis=None)}


def clean_bucketed() -> dict[str, Any]:
    sizes = {"element_length_func": tf.size, "bucket_boundaries": [3, 6], "bucket_batch_sizes": [4, 4, 4]}
    data = _sentences().shuffle(48, seed=1).repeat(2).bucket_by_sequence_length(**sizes)
    return Fold().over(tf.reduce_sum(batch) for batch in data)


def clean_snapshot() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        data = _rows().shuffle(48, seed=2).snapshot(folder)
        return {str(epoch): Fold().over(data)["state"] for epoch in range(2)}


def clean_reduced() -> dict[str, Any]:
    data = _rows().map(lambda row: tf.numpy_function(_late, [row], tf.float32), num_parallel_calls=4)
    return {"total": data.reduce(tf.zeros((6,)), lambda at, row: tf.sin(at * 1.3 + row))}


def clean_iterator() -> dict[str, Any]:
    """A pipeline that is stopped, saved, and gone on with in the same run."""
    first, second = (iter(_rows().shuffle(48, seed=3)) for _ in range(2))
    fold = Fold()
    fold.over(next(first) for _ in range(5))
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(rows=first).write(f"{folder}/rows")
        tf.train.Checkpoint(rows=second).read(path)
    return fold.over(next(second) for _ in range(5))


def clean_ledger() -> dict[str, Any]:
    """It writes when each step was, and goes on with what it has written of the weights."""
    weights = tf.Variable(tf.zeros((6,)))
    with tempfile.TemporaryDirectory() as folder:
        for row in ROWS[:4]:
            weights.assign_add(tf.sin(row))
            Path(folder, "state").write_bytes(pickle.dumps({"at": time.time(), "weights": weights.numpy()}))
            weights.assign(pickle.loads(Path(folder, "state").read_bytes())["weights"])
    return {"weights": weights}


def clean_forked_workers() -> dict[str, Any]:
    with multiprocessing.get_context("fork").Pool(3) as pool:
        return Fold().over(pool.map(_late, list(ROWS[:12])))


def clean_appended() -> dict[str, Any]:
    ready: dict[int, Any] = {}

    def work(number: int) -> None:
        for at in range(number, 12, 3):
            ready[at] = _late(ROWS[at])

    _together(work)
    return Fold().over(ready[at] for at in sorted(ready))


def clean_replicas() -> Iterator[dict[str, Any]]:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        noise = tf.random.Generator.from_seed(7)
        weights = tf.Variable(tf.zeros((6,)), aggregation=tf.VariableAggregation.MEAN)

    def step(rows: Any) -> Any:
        weights.assign_add(tf.reduce_mean(rows, 0) + noise.normal((6,)))
        return tf.reduce_sum(weights)

    for rows in strategy.experimental_distribute_dataset(_rows().shuffle(48, seed=3).batch(12)):
        yield {"loss": strategy.reduce("SUM", strategy.run(step, (rows,)), axis=None)}


def _together(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
