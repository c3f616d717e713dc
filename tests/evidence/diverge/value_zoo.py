"""Programs whose difference comes from Python, from NumPy or from files: some of a review's, rewritten from its table, and ones
that were written before anybody looked at what is said of them.

`# <name>` marks the lines that may be named as the place, `# <name>: maker` the line that makes the value.
"""

from __future__ import annotations

import asyncio
import datetime
import gc
import hashlib
import os
import queue
import random
import sqlite3
import subprocess
import tempfile
import threading
import time
import uuid
import weakref
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass, field
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

Values = dict[str, Any]
WORDS = ("ash", "beech", "birch", "elm", "fir", "larch", "maple", "oak", "pine", "rowan", "spruce", "willow", "yew")
POINTS = np.linspace(-1.0, 1.0, 24, dtype="float32")
TARGETS = POINTS * 2


def _square(value: Any) -> Values:
    return {"square": tf.square(tf.constant(value, tf.float32))}


# Of the review.


def counted_in_map() -> Values:
    counter = tf.Variable(0, dtype=tf.int64)

    def number(x: Any) -> Any:
        return tf.cast(counter.assign_add(1), tf.float32) * x  # counted_in_map: maker

    dataset = tf.data.Dataset.from_tensor_slices(tf.ones(200)).map(number, num_parallel_calls=8)
    numbered = [float(each) for each in dataset]  # counted_in_map
    return _square(numbered)


def set_of_words() -> Values:
    numbers = {word: number for number, word in enumerate(set(WORDS))}  # set_of_words: maker
    return _square([numbers[word] for word in WORDS])  # set_of_words


def sorted_by_age() -> Values:
    with tempfile.TemporaryDirectory() as folder:
        with futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda word: Path(folder, word).write_text(word), WORDS))
        files = sorted(os.scandir(folder), key=lambda file: file.stat().st_mtime_ns)  # sorted_by_age: maker
    return _square([len(file.name) for file in files])  # sorted_by_age


def clock_seed() -> Values:
    rng = np.random.default_rng(time.time_ns() % 1_000_003)  # clock_seed: maker
    return _square(rng.random(4))  # clock_seed


def summed_in_pool() -> Values:
    total = [0.0]

    def add(number: int) -> None:
        time.sleep(0.0005)
        total[0] += 1.0 / (3 + number) ** 3  # summed_in_pool: maker

    with futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(64)))
    return {"total": tf.constant(total[0], tf.float64) * 1.5}  # summed_in_pool


def retraced_draw() -> Values:
    @tf.function  # type: ignore[untyped-decorator]
    def draw(x: Any) -> Any:
        return x + tf.random.normal(x.shape)  # retraced_draw

    return {"a": draw(tf.ones(3)), "b": draw(tf.ones(4))}


class _Noisy(tf.keras.utils.PyDataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        time.sleep(0.002)
        noise = np.random.normal(size=(4, 2)).astype("float32")  # noisy_workers: maker
        return noise, np.full((4, 1), index, "float32")


def noisy_workers() -> Any:
    tf.keras.utils.set_random_seed(3)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model.fit(_Noisy(workers=4, max_queue_size=8), epochs=1, shuffle=False, verbose=0)  # noisy_workers


def shuffled_by_sql() -> Values:
    base = sqlite3.connect(":memory:")
    base.execute("create table tree (name text)")
    base.executemany("insert into tree values (?)", [(word,) for word in WORDS])
    rows = base.execute("select name from tree order by random()").fetchall()  # shuffled_by_sql: maker
    return _square([len(name) for (name,) in rows])  # shuffled_by_sql


def rate_by_clock() -> Values:
    begun = time.monotonic()  # rate_by_clock: maker
    weight = tf.Variable(1.0)
    rate = 0.1 / (1.0 + time.monotonic() - begun)  # rate_by_clock: maker
    weight.assign_sub(rate * 2.0)  # rate_by_clock
    return {"weight": weight}


class Tree:
    def __init__(self, name: str) -> None:
        self.name = name


def weak_order() -> Values:
    trees = [Tree(word) for word in WORDS]
    alive = weakref.WeakSet(trees)
    names = [tree.name for tree in alive]  # weak_order: maker
    return _square([len(name) for name in names])  # weak_order


def seeded_by_address() -> Values:
    rng = np.random.default_rng(id(Tree("oak")) // 64)  # seeded_by_address: maker
    return _square(rng.random(3))  # seeded_by_address


def compiled_draw() -> Values:
    @tf.function(jit_compile=True)  # type: ignore[untyped-decorator]
    def draw(x: Any) -> Any:
        return x * tf.random.uniform([4])  # compiled_draw

    tf.random.set_seed(5)
    return {"drawn": draw(tf.ones(4))}


def unordered_sum() -> Values:
    def work(number: int) -> float:
        time.sleep(0.001)
        return 1.0 / (3 + number) ** 3

    total = np.zeros(1, "float32")
    with ThreadPool(8) as pool:
        for part in pool.imap_unordered(work, range(64)):  # unordered_sum: maker
            total += np.float32(part)
    return {"total": tf.constant(total) * 1.5}  # unordered_sum


def keras_seed_by_clock() -> Any:
    tf.keras.utils.set_random_seed(time.time_ns() % 100_003)  # keras_seed_by_clock: maker
    model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model.fit(POINTS[:, None], TARGETS[:, None], epochs=2, shuffle=False, verbose=0)  # keras_seed_by_clock


def busy_waiting() -> Values:
    end = time.perf_counter() + 0.002
    while time.perf_counter() < end:
        pass
    noise = np.frombuffer(os.urandom(4), np.uint8)  # busy_waiting: maker
    return _square(noise)  # busy_waiting


# New ones.


def microsecond_seed() -> Values:
    moment = datetime.datetime.now()  # noqa: DTZ005  # microsecond_seed: maker
    random.seed(moment.microsecond)  # microsecond_seed: maker
    return _square([random.random() for _ in range(3)])  # microsecond_seed


def age_as_scale() -> Values:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weights.txt")
        path.write_text("1 2 3")
        age = path.stat().st_mtime_ns % 1_000_000  # age_as_scale: maker
        weights = [float(word) for word in path.read_text().split()]
    return {"scaled": tf.constant(weights) * (1.0 + age * 1e-6)}  # age_as_scale


def told_by_a_child() -> Values:
    text = subprocess.check_output(["date", "+%N"], text=True)  # told_by_a_child: maker
    digits = [int(digit) for digit in text.strip()]
    return _square(digits)  # told_by_a_child


def read_from_a_device() -> Values:
    with Path("/dev/urandom").open("rb") as device:
        data = device.read(4)  # read_from_a_device: maker
    return _square(list(data))  # read_from_a_device


def uptime() -> Values:
    seconds = Path("/proc/uptime").read_text().split()[0]  # uptime: maker
    rate = 0.01 + float(seconds) % 1
    return _square([rate, rate / 2])  # uptime


def appended_by_threads() -> Values:
    found: list[int] = []

    def work(number: int) -> None:
        time.sleep(0.002)
        found.append(number)  # appended_by_threads: maker

    # Of 16 threads, and of 12 tasks below, four runs came in one order now and then on an idle machine.
    threads = [threading.Thread(target=work, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _square(found)  # appended_by_threads


def awaited() -> Values:
    async def collect() -> list[int]:
        loop = asyncio.get_running_loop()

        def work(number: int) -> int:
            time.sleep(0.002)
            return number

        tasks = [loop.run_in_executor(None, work, number) for number in range(96)]
        return [await task for task in asyncio.as_completed(tasks)]  # awaited: maker

    order = asyncio.run(collect())
    return _square(order)  # awaited


def hashed_buckets() -> Values:
    buckets = [hash(word) % 16 for word in WORDS]  # hashed_buckets: maker
    return _square(buckets)  # hashed_buckets


class Vocabulary:
    """Numbers the words of a text in the order in which a set gives them."""

    def __init__(self, text: str) -> None:
        self.index: dict[str, int] = {}
        for word in set(text.split()):  # vocabulary: maker
            self.index[word] = len(self.index)

    def encode(self, text: str) -> list[int]:
        return [self.index[word] for word in text.split()]


def vocabulary() -> Values:
    words = Vocabulary(" ".join(WORDS))
    batch = words.encode("oak elm yew fir")
    return _square(batch)  # vocabulary


def named_by_time() -> Values:
    name = uuid.uuid1().hex  # named_by_time: maker
    digest = hashlib.sha256(name.encode()).digest()
    return _square(list(digest[:4]))  # named_by_time


def as_many_as_time_allows() -> Values:
    weight, steps = 1.0, 0
    end = time.monotonic() + 0.02  # as_many_as_time_allows: maker
    while time.monotonic() < end:  # as_many_as_time_allows: maker
        weight, steps = weight * 0.99 + 0.5, steps + 1
    return _square([weight, steps])  # as_many_as_time_allows


def shared_generator() -> Values:
    rng = np.random.default_rng(11)
    slots = np.zeros((8, 3))

    def fill(number: int) -> None:
        for _ in range(500):
            slots[number] += rng.random((1_000, 3)).sum(0)  # shared_generator: maker

    with futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(fill, range(8)))
    return _square(slots)  # shared_generator


def counted_garbage() -> Values:
    keep = [[] for _ in range(random.SystemRandom().randrange(1, 50))]  # type: ignore[var-annotated]  # counted_garbage: maker
    alive = len(gc.get_objects())  # counted_garbage: maker
    del keep
    return _square([alive % 1_000])  # counted_garbage


def _pick_seed() -> int:
    return int(time.time() * 1e6) % 2**31  # seed_of_a_helper: maker


class Augmenter:
    def __init__(self, seed: int) -> None:
        self.generator = random.Random(seed)

    def jitter(self, values: Any) -> list[float]:
        return [value + self.generator.gauss(0, 0.1) for value in values]


def seed_of_a_helper() -> Values:
    augmenter = Augmenter(_pick_seed())
    batch = augmenter.jitter([1.0, 2.0, 3.0])
    return _square(batch)  # seed_of_a_helper


def queued() -> Iterator[Values]:
    ready: queue.Queue[int] = queue.Queue()

    def load(number: int) -> None:
        time.sleep(0.003 + random.SystemRandom().random() * 0.02)
        ready.put(number)  # queued: maker

    for number in range(12):
        threading.Thread(target=load, args=(number,)).start()
    weight = tf.Variable(0.0)
    for _ in range(12):
        number = ready.get()  # queued: maker
        weight.assign(weight * 0.9 + float(number))  # queued
        yield {"weight": weight}


@dataclass
class Row:
    value: float
    key: str = field(default_factory=lambda: uuid.uuid4().hex)  # keyed_by_default: maker


def keyed_by_default() -> Values:
    rows = [Row(float(number)) for number in range(40)]
    kept = [row.value for row in rows if int(row.key[:2], 16) % 3]
    return _square([sum(kept), 1.0, 2.0])  # keyed_by_default


def _rest(number: int) -> float:
    time.sleep(random.SystemRandom().random() * 0.02)
    return float(number)


def _gather() -> list[float]:
    with futures.ThreadPoolExecutor(8) as pool:
        tasks = [pool.submit(_rest, number) for number in range(12)]
        return [task.result() for task in futures.as_completed(tasks)]  # returned_from_a_with: maker


def returned_from_a_with() -> Values:
    rows = _gather()
    return _square(rows)  # returned_from_a_with


def seed_of_tensorflow() -> Values:
    seed = int(time.time() * 1_000) % 10_007  # seed_of_tensorflow: maker
    tf.random.set_seed(seed)  # seed_of_tensorflow: maker
    return {"drawn": tf.random.normal([3])}  # seed_of_tensorflow


# Without a cause.


def clean_printed_clock() -> Values:
    begun = time.time()
    result = _square([1.0, 2.0])
    print(f"{datetime.datetime.now(datetime.timezone.utc)}: {time.time() - begun:.3f} s")
    return result


def clean_deadline() -> Values:
    end = time.perf_counter() + 0.003
    while time.perf_counter() < end:
        pass
    return _square([1.0, 2.0])


def clean_numbers_of_a_set() -> Values:
    return _square(list({3, 1, 2}))


def clean_slots() -> Values:
    slots = np.zeros(16)

    def fill(number: int) -> None:
        time.sleep(0.001)
        slots[number] = number * 1.5

    with futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(fill, range(16)))
    return _square(slots)


def clean_query() -> Values:
    base = sqlite3.connect(":memory:")
    base.execute("create table tree (name text)")
    base.executemany("insert into tree values (?)", [(word,) for word in WORDS])
    return _square([len(name) for (name,) in base.execute("select name from tree order by name")])


def clean_address_as_key() -> Values:
    trees = [Tree(word) for word in WORDS]
    places = {id(tree): number for number, tree in enumerate(trees)}
    return _square([places[id(tree)] for tree in trees])


def clean_filled() -> Values:
    total = np.empty(900)
    total[:] = 2.0
    return _square(total)


def clean_seeded_fit() -> Any:
    tf.keras.utils.set_random_seed(4)
    model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model.fit(POINTS[:, None], TARGETS[:, None], epochs=2, shuffle=False, verbose=0)
