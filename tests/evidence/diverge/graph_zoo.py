"""Operations, graphs, XLA and threads, each with one planted cause at the line marked `# <name>`; and clean ones."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import tensorflow as tf

with suppress(RuntimeError):  # the process stays, and has them already
    two = [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()]
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], two)
    tf.config.threading.set_intra_op_parallelism_threads(4)
    tf.config.threading.set_inter_op_parallelism_threads(4)

ROWS = np.random.RandomState(0).randn(64, 64).astype("float32")
PLACES = np.random.RandomState(1).randint(0, 50, 200_000).astype("int32")
UPDATES = np.random.RandomState(2).randn(200_000, 16).astype("float32")


def _pause() -> None:
    time.sleep(random.SystemRandom().random() * 0.01)


def free_generator() -> dict[str, Any]:
    generator = tf.random.Generator.from_non_deterministic_state()  # free_generator
    return {"noise": generator.normal((4,))}


def unseeded_layer() -> dict[str, Any]:
    kernel = tf.random.truncated_normal((64, 4), stddev=0.1)  # unseeded_layer
    return {"out": tf.nn.relu(ROWS @ kernel)}


def sampled_tokens() -> dict[str, Any]:
    logits, token, said = tf.constant(ROWS), tf.constant([0]), []
    for _ in range(5):
        token = tf.random.categorical(tf.gather(logits, token), 1)[0]  # sampled_tokens
        said.append(token)
    return {"tokens": tf.concat(said, 0)}


def negative_samples() -> dict[str, Any]:
    labels = tf.constant([[1], [2], [3]], tf.int64)
    loss = tf.nn.nce_loss(ROWS, tf.zeros((64,)), labels, ROWS[:3], num_sampled=8, num_classes=64)  # negative_samples
    return {"loss": loss}


def fractional_pool() -> dict[str, Any]:
    image = tf.reshape(tf.constant(ROWS), (1, 16, 16, 16))
    pooled, _, _ = tf.nn.fractional_max_pool(image, (1.0, 1.4, 1.7, 1.0), pseudo_random=True)  # fractional_pool
    return {"pooled": tf.reduce_sum(pooled)}


def stamped() -> dict[str, Any]:
    decay = tf.exp(-tf.cast(tf.timestamp() % 1.0, tf.float32))  # stamped
    return {"decayed": decay * ROWS[0]}


def shuffle_queue() -> dict[str, Any]:
    rows = tf.queue.RandomShuffleQueue(64, 0, [tf.float32], [(64,)])
    rows.enqueue_many([tf.constant(ROWS)])
    total = tf.zeros((64,))
    for _ in range(4):
        total = tf.sin(total + rows.dequeue())  # shuffle_queue
    return {"total": total}


def graph_shuffle() -> dict[str, Any]:
    @tf.function  # type: ignore[untyped-decorator]
    def train(x: Any) -> Any:
        x = tf.tanh(x)
        rows = tf.random.shuffle(x)  # graph_shuffle
        return tf.reduce_sum(rows[:8])

    return {"loss": train(tf.constant(ROWS))}


def graph_clock() -> dict[str, Any]:
    def scale(x: Any) -> Any:
        return x * np.float32(time.time() % 1)  # graph_clock

    @tf.function  # type: ignore[untyped-decorator]
    def train(x: Any) -> Any:
        return tf.reduce_sum(tf.py_function(scale, [tf.sin(x)], tf.float32))  # graph_clock

    return {"loss": train(tf.constant(ROWS))}


def graph_scatter() -> Iterator[dict[str, Any]]:
    table = tf.Variable(tf.zeros((50, 16)))

    @tf.function  # type: ignore[untyped-decorator]
    def step(rows: Any, updates: Any) -> Any:
        table.scatter_add(tf.IndexedSlices(updates * 0.1, rows))  # graph_scatter
        return tf.reduce_sum(table)

    for _ in range(3):
        yield {"loss": step(tf.constant(PLACES), tf.constant(UPDATES))}


def xla_dropout() -> dict[str, Any]:
    @tf.function(jit_compile=True)  # type: ignore[untyped-decorator]
    def forward(x: Any) -> Any:
        hidden = tf.nn.relu(x @ tf.transpose(x))
        return tf.reduce_mean(tf.nn.dropout(hidden, 0.3))  # xla_dropout

    return {"loss": forward(tf.constant(ROWS))}


def loop_noise() -> dict[str, Any]:
    tf.keras.utils.set_random_seed(0)

    @tf.function  # type: ignore[untyped-decorator]
    def walk(steps: Any) -> Any:
        states = tf.TensorArray(tf.float32, steps)
        for number in tf.range(steps):
            states = states.write(number, tf.random.normal((64,)) * tf.random.uniform((64,)))  # loop_noise
        return states.stack()

    return {f"walk {number}": walk(64) for number in range(5)}


def queue_of_tensors() -> dict[str, Any]:
    rows: queue.Queue[Any] = queue.Queue()

    def load(number: int) -> None:
        _pause()
        rows.put(tf.sin(ROWS[number]))  # queue_of_tensors: loaded

    threads = [threading.Thread(target=load, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    total = tf.zeros((64,))
    for _ in threads:
        total = tf.tanh(total * 0.9 + rows.get())  # queue_of_tensors
    return {"total": total}


def stale_reader() -> dict[str, Any]:
    weights, seen = tf.Variable(tf.zeros((64,)), name="weights"), []

    def train(_: int) -> None:
        for number in range(20):
            weights.assign_add(ROWS[number])  # stale_reader
            time.sleep(0.002)

    trainer = threading.Thread(target=train, args=(0,))
    trainer.start()
    for _ in range(4):
        _pause()
        seen.append(tf.reduce_sum(weights))  # stale_reader
    trainer.join()
    return {"seen": tf.stack(seen), "weights": weights}


def thread_branch() -> dict[str, Any]:
    found = {}

    def work(number: int) -> None:
        state = tf.constant(ROWS[number])
        for _ in range(8):
            if random.SystemRandom().random() < 0.5:
                state = tf.sin(state)  # thread_branch
            state = tf.exp(-state)  # thread_branch
        found[number] = state

    _together(work, 2)
    return {str(number): found[number] for number in sorted(found)}


def mirrored_shuffle() -> Iterator[dict[str, Any]]:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    data = tf.data.Dataset.from_tensor_slices(ROWS).shuffle(64).batch(16)
    with strategy.scope():
        weights = tf.Variable(tf.zeros((64,)))

    def step(batch: Any) -> Any:
        weights.assign_add(tf.reduce_mean(batch, 0))
        return tf.reduce_sum(tf.sin(weights))

    for batch in strategy.experimental_distribute_dataset(data):  # mirrored_shuffle
        yield {"loss": strategy.reduce("SUM", strategy.run(step, (batch,)), axis=None)}


def clean_counter() -> dict[str, Any]:
    """Threads count in any order: whole numbers do not mind."""
    count = tf.Variable(0, name="count")

    def work(_: int) -> None:
        for _ in range(5):
            _pause()
            count.assign_add(1)

    _together(work, 3)
    return {"count": count}


def clean_normalized() -> dict[str, Any]:
    """Outputs of operations that nothing writes: batch normalization of an inference, values without vectors."""
    image = tf.reshape(tf.constant(ROWS), (4, 16, 16, 4))
    scale, offset, mean, variance = tf.ones((4,)), tf.zeros((4,)), tf.fill((4,), 0.1), tf.fill((4,), 0.9)
    layer = tf.keras.layers.BatchNormalization()
    plain, _, _ = tf.compat.v1.nn.fused_batch_norm(image, scale, offset, mean, variance, is_training=False)
    return {"plain": plain, "layer": layer(image, training=False), "values": tf.linalg.svd(ROWS, compute_uv=False)}


def clean_noise_unused() -> dict[str, Any]:
    """What is drawn decides nothing."""
    noise = tf.random.uniform((64,))  # clean_noise_unused: drawn
    return {"sum": tf.reduce_sum(ROWS), "shape": tf.shape(noise)}


def _together(work: Any, count: int) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
