"""Scripts with loops of their own, agents, threads and event loops, each with one planted cause; and clean ones.

Lines marked `# <name>` are those that may be named; `# <name>: maker` marks the line of Python or NumPy that made the
value, where that is another one.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import tensorflow as tf

with suppress(RuntimeError):  # the process stays, and has them already
    tf.config.threading.set_intra_op_parallelism_threads(4)
    tf.config.threading.set_inter_op_parallelism_threads(4)

STATES = np.random.RandomState(0).randn(64, 16).astype("float32")
REWARDS = STATES.sum(1)
RATINGS = [(int(u), int(i)) for u, i in np.random.RandomState(3).randint(0, 40, (60_000, 2))]
CITIES = ["Oslo", "Rome", "Lima", "Cairo", "Quito", "Perth", "Paris", "Delhi", "Accra", "Minsk", "Tunis", "Seoul"]


def _waited(most: float = 0.01) -> None:
    time.sleep(random.SystemRandom().random() * most)


class _Memory:
    """What an agent has seen."""

    def __init__(self, size: int = 64) -> None:
        self.rows: deque[tuple[Any, float]] = deque(maxlen=size)

    def add(self, state: Any, reward: float) -> None:
        self.rows.append((state, reward))

    def sample(self, count: int) -> Any:
        states, rewards = zip(*random.sample(list(self.rows), count), strict=True)  # replayed: maker
        return np.stack(states), np.array(rewards, "float32")


def replayed() -> Iterator[dict[str, Any]]:
    memory, weights = _Memory(), tf.Variable(tf.zeros((16, 1)))
    for state, reward in zip(STATES, REWARDS, strict=True):
        memory.add(state, reward)
    for _ in range(4):
        states, rewards = memory.sample(16)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(states, weights)[:, 0] - rewards))  # replayed
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        yield {"loss": loss}


def explorer() -> Iterator[dict[str, Any]]:
    """Epsilon-greedy: it explores by one operation and exploits by another."""
    values = tf.Variable(tf.zeros((16,)))
    agent = random.Random()
    for state in STATES[:12]:
        if agent.random() < 0.3:
            values.assign_add(0.1 * tf.roll(tf.constant(state), 1, 0))  # explorer
        else:
            values.assign_add(0.1 * tf.nn.relu(tf.constant(state)))  # explorer
        yield {"norm": tf.norm(values)}


def label_numbers() -> dict[str, Any]:
    classes = {city: number for number, city in enumerate({name.lower() for name in CITIES})}  # label_numbers: maker
    numbers = np.array([classes[city.lower()] for city in CITIES])
    one_hot = tf.keras.utils.to_categorical(numbers, 12)
    return {"loss": tf.reduce_sum(tf.constant(one_hot) * STATES[:12, :12])}  # label_numbers


def named_run() -> dict[str, Any]:
    """The seed is made of the name of the run, so that each can be made again."""
    run = uuid.uuid4()  # named_run: maker
    seed = run.int % 2**31
    return {"start": tf.random.stateless_normal((16, 1), [seed, 0])}  # named_run


def enqueued() -> dict[str, Any]:
    """Threads fill TensorFlow's own queue."""
    rows = tf.queue.FIFOQueue(32, [tf.float32], [(16,)])

    def fill(numbers: range) -> None:
        for number in numbers:
            _waited()
            rows.enqueue(STATES[number])  # enqueued

    threads = [threading.Thread(target=fill, args=(range(first, 12, 3),)) for first in range(3)]
    for each in threads:
        each.start()
    total = tf.zeros((16,))
    for _ in range(12):
        total = tf.tanh(total + rows.dequeue())  # enqueued
    return {"total": total}


def recommender() -> Iterator[dict[str, Any]]:
    """Matrix factorization, with the gradients of the rows of a batch scattered into the table."""
    users, items = (tf.Variable(tf.fill((40, 16), 0.1), name=name) for name in ("users", "items"))
    rows = tf.constant(RATINGS, tf.int32)
    stars = tf.random.stateless_normal((len(RATINGS),), (1, 2))

    @tf.function  # type: ignore[untyped-decorator]
    def step() -> Any:
        of_user, of_item = tf.gather(users, rows[:, 0]), tf.gather(items, rows[:, 1])
        error = tf.reduce_sum(of_user * of_item, 1) - stars
        users.scatter_sub(tf.IndexedSlices(0.01 * error[:, None] * of_item, rows[:, 0]))  # recommender
        items.scatter_sub(tf.IndexedSlices(0.01 * error[:, None] * of_user, rows[:, 1]))  # recommender
        return tf.reduce_mean(tf.square(error))

    for _ in range(3):
        yield {"loss": step()}


def word_weights() -> dict[str, Any]:
    """Weighted counts of the words of a corpus."""
    corpus = tf.constant(np.random.RandomState(5).randint(0, 100, 400_000).astype("int32"))
    weights = tf.random.stateless_uniform((400_000,), (3, 4))
    counts = tf.math.bincount(corpus, weights, minlength=100)  # word_weights
    return {"rarest": tf.math.log(1e5 / counts)}


def drawn_in_graph() -> Iterator[dict[str, Any]]:
    def mask(rows: Any) -> Any:
        return rows * (np.random.default_rng().random(rows.shape) > 0.2).astype("float32")  # drawn_in_graph: maker

    @tf.function  # type: ignore[untyped-decorator]
    def step(rows: Any) -> Any:
        kept = tf.numpy_function(mask, [rows], tf.float32)  # drawn_in_graph
        return tf.reduce_sum(tf.nn.gelu(kept))

    for first in (0, 16):
        yield {"loss": step(tf.constant(STATES[first : first + 16]))}


def clean_gathered() -> dict[str, Any]:
    """An event loop whose results keep their order."""

    async def fetch(number: int) -> Any:
        await asyncio.sleep(random.SystemRandom().random() * 0.01)
        return tf.cos(STATES[number])

    async def all_of_them() -> Any:
        return await asyncio.gather(*[fetch(number) for number in range(8)])

    return {"total": tf.reduce_sum(tf.stack(asyncio.run(all_of_them())) * STATES[8:16])}
