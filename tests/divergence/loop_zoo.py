"""Scripts with loops of their own, agents, threads and event loops, each with one planted cause; and clean ones.

Lines marked `# <name>` are those that may be named; `# <name>: maker` marks the line of Python or NumPy that made the
value, where that is another one.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import queue
import random
import tempfile
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
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
ROADS = [(a, b) for a, b in itertools.combinations(CITIES, 2) if (len(a) + len(b)) % 3]


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


def sampled_action() -> Iterator[dict[str, Any]]:
    """A policy gradient: the action is drawn by NumPy from the probabilities of the network."""
    policy = tf.Variable(tf.zeros((16, 3)))
    for state in STATES[:5]:
        with tf.GradientTape() as tape:
            chances = tf.nn.softmax(tf.constant(state[None]) @ policy)[0]
            weights = chances.numpy().astype("float64")
            action = np.random.choice(3, p=weights / weights.sum())  # sampled_action: maker
            loss = -tf.math.log(tf.gather(chances, action))  # sampled_action
        policy.assign_sub(0.5 * tape.gradient(loss, policy))
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


def skip_grams() -> dict[str, Any]:
    """Keras draws negative samples with Python's generator."""
    make = tf.keras.preprocessing.sequence.skipgrams
    pairs, labels = make(list(range(1, 20)), 20, window_size=2)  # skip_grams: maker
    table = tf.random.stateless_normal((20, 4), (1, 2))
    left, right = (tf.gather(table, [pair[side] for pair in pairs]) for side in (0, 1))  # skip_grams
    logits = tf.reduce_sum(left * right, 1)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(labels, tf.float32), logits)
    return {"loss": tf.reduce_mean(losses)}


def label_numbers() -> dict[str, Any]:
    classes = {city: number for number, city in enumerate({name.lower() for name in CITIES})}  # label_numbers: maker
    numbers = np.array([classes[city.lower()] for city in CITIES])
    one_hot = tf.keras.utils.to_categorical(numbers, 12)
    return {"loss": tf.reduce_sum(tf.constant(one_hot) * STATES[:12, :12])}  # label_numbers


def roads_of_set() -> dict[str, Any]:
    """The sum of a graph network is taken in the order of a set of edges."""
    edges = {frozenset(road) for road in ROADS}
    ends = [tuple(sorted(edge)) for edge in edges]
    places = [[CITIES.index(a), CITIES.index(b)] for a, b in ends]
    features = tf.constant(STATES[:12])
    for _ in range(2):
        sent = tf.gather(features, [a for a, _ in places])  # roads_of_set
        features = tf.tanh(tf.math.unsorted_segment_sum(sent, [b for _, b in places], 12) * 0.3)
    return {"features": features}


def tied_words() -> dict[str, Any]:
    """Words that are equally frequent come in the order in which the set gave them."""
    counts = Counter(word for word in {*CITIES, "Bern", "Riga"})
    vocabulary = [word for word, _ in counts.most_common(8)]
    known = {word: number for number, word in enumerate(vocabulary)}
    codes = tf.constant([known.get(city, 8) for city in CITIES])
    return {"rows": tf.gather(tf.random.stateless_normal((9, 4), (3, 4)), codes)}  # tied_words


def named_run() -> dict[str, Any]:
    """The seed is made of the name of the run, so that each can be made again."""
    run = uuid.uuid4()  # named_run: maker
    seed = run.int % 2**31
    return {"start": tf.random.stateless_normal((16, 1), [seed, 0])}  # named_run


def process_seed() -> dict[str, Any]:
    noise = np.random.default_rng([7, os.getpid()])  # process_seed: maker
    return {"hidden": tf.nn.relu(STATES @ noise.normal(size=(16, 4)).astype("float32"))}  # process_seed


def first_done() -> dict[str, Any]:
    """`wait` gives a set of futures."""

    def load(number: int) -> Any:
        _waited(0.002)
        return STATES[number]

    total = tf.zeros((16,))
    with ThreadPoolExecutor(4) as pool:
        done, _ = wait([pool.submit(load, number) for number in range(16)])
        for future in done:
            total = tf.tanh(total + future.result())  # first_done
    return {"total": total}


class _Prefetcher:
    """Workers put batches into a queue, and whoever comes first is first."""

    def __init__(self, workers: int = 3) -> None:
        self.ready: queue.Queue[Any] = queue.Queue(8)
        for number in range(workers):
            threading.Thread(target=self._work, args=(number, workers), daemon=True).start()

    def _work(self, first: int, step: int) -> None:
        for number in range(first, 12, step):
            _waited()
            self.ready.put((STATES[number * 4 : number * 4 + 4], REWARDS[number * 4 : number * 4 + 4]))

    def __iter__(self) -> Iterator[Any]:
        for _ in range(12):
            yield self.ready.get()  # prefetched: maker


def prefetched() -> Iterator[dict[str, Any]]:
    weights = tf.Variable(tf.zeros((16, 1)))
    for states, rewards in _Prefetcher():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(states, weights)[:, 0] - rewards))  # prefetched
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        yield {"loss": loss}


def locked_workers() -> dict[str, Any]:
    """Workers share weights under a lock, which leaves their order open."""
    weights, lock = tf.Variable(tf.zeros((16, 1)), name="shared"), threading.Lock()

    def worker(number: int) -> None:
        for first in range(number * 16, number * 16 + 16, 4):
            _waited()
            with lock, tf.GradientTape() as tape:
                rows = STATES[first : first + 4]
                loss = tf.reduce_mean(tf.square(tf.matmul(rows, weights)[:, 0] - REWARDS[first : first + 4]))
                weights.assign_sub(0.1 * tape.gradient(loss, weights))  # locked_workers

    _together([partial(worker, number) for number in range(3)])
    return {"weights": weights}


def decayed_by_timer() -> Iterator[dict[str, Any]]:
    """Another thread halves the rate whenever its time has come."""
    rate, weights = tf.Variable(0.5, name="rate"), tf.Variable(tf.ones((16,)))
    over = threading.Event()

    def decay() -> None:
        while not over.wait(random.SystemRandom().random() * 0.01):
            rate.assign(rate * 0.5)  # decayed_by_timer

    thread = threading.Thread(target=decay)
    thread.start()
    for state in STATES[:8]:
        time.sleep(0.005)
        weights.assign_sub(rate * tf.sin(weights + state))  # decayed_by_timer
    over.set()
    thread.join()
    yield {"weights": weights}


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


def downloaded() -> dict[str, Any]:
    async def fetch(number: int) -> Any:
        await asyncio.sleep(random.SystemRandom().random() * 0.02)
        return STATES[number]

    async def train() -> Any:
        total = tf.zeros((16,))
        for each in asyncio.as_completed([fetch(number) for number in range(8)]):
            state = await each  # downloaded: maker
            total = tf.sin(total + state)  # downloaded
        return total

    return {"total": asyncio.run(train())}


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


def clean_reordered() -> dict[str, Any]:
    """Threads deliver in any order, and what they deliver has a number."""
    ready: queue.Queue[Any] = queue.Queue()

    def load(numbers: range) -> None:
        for number in numbers:
            _waited()
            ready.put((number, tf.sin(STATES[number])))

    _together([partial(load, range(first, 12, 3)) for first in range(3)])
    rows = sorted((ready.get() for _ in range(12)), key=lambda pair: pair[0])
    return {"total": tf.add_n([row for _, row in rows])}


def clean_models_of_threads() -> dict[str, Any]:
    """Each thread trains a model of its own, from a seed of its own."""
    found: dict[int, Any] = {}

    def train(number: int) -> None:
        draws, weights = np.random.default_rng(number), tf.Variable(tf.zeros((16,)))
        for _ in range(5):
            _waited(0.003)
            weights.assign_add(STATES[draws.integers(64)] * 0.1)
        found[number] = tf.identity(weights)

    _together([partial(train, number) for number in range(3)])
    return {str(number): found[number] for number in range(3)}


def clean_gathered() -> dict[str, Any]:
    """An event loop whose results keep their order."""

    async def fetch(number: int) -> Any:
        await asyncio.sleep(random.SystemRandom().random() * 0.01)
        return tf.cos(STATES[number])

    async def all_of_them() -> Any:
        return await asyncio.gather(*[fetch(number) for number in range(8)])

    return {"total": tf.reduce_sum(tf.stack(asyncio.run(all_of_them())) * STATES[8:16])}


def clean_run_name() -> dict[str, Any]:
    """The name of the run is that of a folder, and of nothing else."""
    weights = tf.Variable(STATES[0])
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/{uuid.uuid4()}"
        for number in range(3):
            weights.assign_sub(0.1 * tf.tanh(weights))
            tf.io.write_file(f"{log}/{number}", tf.strings.format("{} at {}", (tf.norm(weights), time.time())))
    return {"weights": weights}


def clean_stop_words() -> dict[str, Any]:
    """Sets that are only asked whether they hold something."""
    stop, seen = {"the", "a", "of"} | set(CITIES[:2]), set()
    kept = []
    for city in CITIES * 2:
        if city not in stop and city not in seen:
            kept.append(len(city))
        seen.add(city)
    return {"lengths": tf.one_hot(kept, 8) @ STATES[:8], "words": tf.constant(len(seen))}


def clean_agent() -> Iterator[dict[str, Any]]:
    """An agent with generators of its own, all of them seeded."""
    draws, agent, noise = np.random.default_rng(1), random.Random(2), tf.random.Generator.from_seed(3)
    values = tf.Variable(tf.zeros((16,)))
    for state in STATES[draws.permutation(64)[:8]]:
        change = tf.tanh(state + noise.normal((16,))) if agent.random() < 0.5 else tf.nn.relu(tf.constant(state))
        values.assign_add(change)
        yield {"norm": tf.norm(values)}


def clean_parallel_seeds() -> dict[str, Any]:
    @tf.function  # type: ignore[untyped-decorator]
    def walks(numbers: Any) -> Any:
        one = lambda number: tf.reduce_sum(tf.random.stateless_normal((64,), (number, 9)))  # noqa: E731
        return tf.map_fn(one, numbers, parallel_iterations=8, fn_output_signature=tf.float32)

    return {"walks": walks(tf.range(32))}


def clean_counted() -> dict[str, Any]:
    """Threads count whole numbers, and the main thread waits for all of them."""
    counts = tf.Variable(tf.zeros((4,), tf.int64), name="counts")

    def work() -> None:
        for number in range(4):
            _waited(0.003)
            counts.scatter_nd_add([[number]], tf.constant([1], tf.int64))

    _together([work] * 3)
    return {"share": tf.cast(counts, tf.float32) / 12.0}


def _together(works: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
