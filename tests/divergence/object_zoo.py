"""Modules, layers, losses, agents and graphs as objects, with one planted cause each; and clean ones.

Lines marked `# <name>` may be named.
"""

from __future__ import annotations

import contextvars
import json
import os
import random
import signal
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timezone
from functools import reduce
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
WIDTHS = {"query": 4, "key": 6, "value": 8, "gate": 10, "skip": 12}
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


def noisy_gradient() -> Iterator[dict[str, Any]]:
    """The way forward is clean; the way back is not."""

    def back(upstream: Any) -> Any:
        return upstream + 0.01 * tf.random.normal(upstream.shape)  # noisy_gradient

    jittered = tf.custom_gradient(lambda logits: (tf.identity(logits), back))
    head = Head(jittered)
    yield from ({"loss": head.learn(ROWS[at : at + 16])} for at in (0, 16, 32))


def recomputed() -> Iterator[dict[str, Any]]:
    head = Head(tf.recompute_grad(lambda logits: tf.nn.dropout(logits, 0.4)))  # recomputed
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


def scanned_walk() -> dict[str, Any]:
    @tf.function  # type: ignore[untyped-decorator]
    def walk(rows: Any) -> Any:
        return tf.scan(lambda at, row: tf.sin(at + row + tf.random.normal((8,))), rows)  # scanned_walk

    return {"walk": walk(tf.constant(ROWS))}


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


def batches_of_index() -> dict[str, Any]:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")
    for _ in range(4):
        rows = np.random.choice(64, 16, replace=False)
        model.train_on_batch(ROWS[rows], TARGETS[rows])  # batches_of_index
    return {"weights": model.get_weights()[0]}


def kept_backup() -> None:
    """It finds the backup of the last run, and has less left to do."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")
    model.build((None, 8))
    kept = tf.keras.callbacks.BackupAndRestore(str(LEFT), delete_checkpoint=False)
    model.fit(ROWS, TARGETS, batch_size=16, epochs=2, shuffle=False, verbose=0, callbacks=[kept])  # kept_backup


def in_session() -> dict[str, Any]:
    """A graph of TensorFlow 1, whose result goes on eagerly."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        drawn = session.run(tf.compat.v1.random_normal((8,)))
    return {"sum": tf.reduce_sum(tf.constant(drawn) * ROWS)}  # in_session


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


def phase_of_day() -> dict[str, Any]:
    now = datetime.now(timezone.utc)
    return {"phase": tf.sin(ROWS * (now.second + now.microsecond / 1e6))}  # phase_of_day


def paid_seconds() -> Iterator[dict[str, Any]]:
    """The rate falls with the processor time that was used."""
    weights = tf.Variable(tf.ones((8, 1)))
    for at in (0, 16, 32):
        rate = 0.1 / (1.0 + time.process_time())
        weights.assign_sub(rate * tf.reduce_mean(ROWS[at : at + 16], 0)[:, None])  # paid_seconds
        yield {"norm": tf.norm(weights)}


def age_of_file() -> dict[str, Any]:
    with tempfile.NamedTemporaryFile() as file:
        changed = Path(file.name).stat().st_mtime_ns
    return {"noise": tf.random.stateless_normal((8,), [changed % 2**31, 0])}  # age_of_file


def batch_that_fits() -> dict[str, Any]:
    """The size of a batch is what the machine did in the time."""
    end, count = time.perf_counter() + 0.001, 1
    while time.perf_counter() < end:
        count += 1
    batch = np.resize(ROWS, (count % 997 + 2, 8))
    return {"mean": tf.reduce_mean(tf.sin(batch), 0)}  # batch_that_fits


def alarmed() -> dict[str, Any]:
    """A signal comes when it comes, and makes the steps smaller."""
    rate, weights = [1.0], tf.Variable(tf.zeros((8,)))
    before = signal.signal(signal.SIGALRM, lambda *_: rate.append(rate[-1] * 0.5))
    signal.setitimer(signal.ITIMER_REAL, 0.004, 0.004)
    for row in islice(cycle(ROWS), 200):
        weights.assign(tf.sin(weights + rate[-1] * row))  # alarmed
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    return {"weights": weights}


def pool_of_entropy() -> dict[str, Any]:
    with Path("/dev/urandom").open("rb") as source:
        drawn = np.frombuffer(source.read(8), "uint8")
    return {"scaled": tf.cast(drawn, tf.float32) * ROWS[0]}  # pool_of_entropy


def reseeded() -> dict[str, Any]:
    """A helper of others takes the seed back."""
    tf.keras.utils.set_random_seed(3)
    np.random.seed()
    return {"rows": tf.gather(ROWS, np.random.permutation(64)[:8])}  # reseeded


class Sampler:
    """An iterator with weights."""

    def __init__(self, weights: list[float]) -> None:
        self.draws, self.weights = random.Random(), weights

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return self.draws.choices(range(64), self.weights)[0]  # weighted: maker


def weighted() -> Iterator[dict[str, Any]]:
    sampler, weights = Sampler(list(np.abs(TARGETS[:, 0]))), tf.Variable(tf.zeros((8,)))
    for number in islice(sampler, 5):
        weights.assign_add(tf.tanh(tf.constant(ROWS[number])))  # weighted
        yield {"weights": weights}


TEMPERATURE: contextvars.ContextVar[float] = contextvars.ContextVar("temperature")


def context_of_call() -> dict[str, Any]:
    TEMPERATURE.set(random.uniform(0.5, 2.0))  # context_of_call: maker
    return contextvars.copy_context().run(lambda: {"soft": tf.nn.softmax(ROWS / TEMPERATURE.get())})  # context_of_call


class Part:
    """Part of a model, which has no order of its own."""

    def __init__(self, number: int) -> None:
        self.number = number


def set_of_objects() -> dict[str, Any]:
    kept = [bytearray(random.SystemRandom().randrange(64, 4096)) for _ in range(64)]
    parts = {Part(number) for number in range(24) if kept}
    folded = lambda at, part: tf.sin(at * 1.3 + ROWS[part.number])  # noqa: E731 # set_of_objects
    return {"total": reduce(folded, parts, tf.zeros((8,)))}


def weak_registry() -> dict[str, Any]:
    kept = [bytearray(random.SystemRandom().randrange(64, 4096)) for _ in range(64)]
    parts = [Part(number) for number in range(24) if kept]
    total = tf.zeros((8,))
    for part in weakref.WeakSet(parts):
        total = tf.sin(total * 1.3 + ROWS[part.number])  # weak_registry
    return {"total": total}


def columns_of_union() -> dict[str, Any]:
    columns = {"age", "income", "city", "rent"} | {f"past {year}" for year in range(4)}
    table = {name: ROWS[:, number] for number, name in enumerate(sorted(columns))}
    return {"out": tf.stack([table[name] for name in columns], 1) @ ROWS[:8]}  # columns_of_union


def table_of_set() -> dict[str, Any]:
    words = list({"the", "cat", "sat", "on", "a", "mat", "hat", "rat"})
    start = tf.lookup.KeyValueTensorInitializer(words, np.arange(8))  # table_of_set
    codes = tf.lookup.StaticHashTable(start, -1).lookup(tf.constant(["cat", "mat", "sat"]))  # table_of_set
    return {"rows": tf.gather(ROWS, codes)}


def parts_of_set() -> dict[str, Any]:
    seeds = iter(range(9))
    parts = {
        name: tf.Variable(tf.random.stateless_normal((8, WIDTHS[name]), (next(seeds), 1)))  # parts_of_set
        for name in set(WIDTHS)
    }
    return {name: ROWS @ part for name, part in sorted(parts.items())}


def hash_of_settings() -> dict[str, Any]:
    settings = json.dumps({"layers": 3, "rate": 0.1})
    return {"start": tf.random.stateless_normal((8,), [hash(settings) % 2**31, 0])}  # hash_of_settings


def clean_custom_gradient() -> Iterator[dict[str, Any]]:
    noise = tf.random.Generator.from_seed(2)
    jittered = tf.custom_gradient(lambda logits: (tf.identity(logits), lambda up: up + noise.normal(up.shape)))
    head = Head(jittered)
    yield from ({"loss": head.learn(ROWS[at : at + 16])} for at in (0, 16, 32))


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


def clean_filled() -> dict[str, Any]:
    """Memory that nobody has written, and that is written before it is read."""
    empty = tf.raw_ops.Empty(shape=[64, 8], dtype=tf.float32, init=False)
    return {"sum": tf.reduce_sum(tf.raw_ops.InplaceUpdate(x=empty, i=tf.range(64), v=ROWS), 0)}


def clean_decomposed() -> dict[str, Any]:
    @tf.function  # type: ignore[untyped-decorator]
    def values(square: Any) -> Any:
        return tf.linalg.svd(square, compute_uv=False), tf.linalg.eigvalsh(square), tf.linalg.eigvals(square)

    singular, symmetric, others = values(tf.constant(ROWS[:8] + ROWS[:8].T))
    return {"singular": singular, "symmetric": symmetric, "all": tf.sort(tf.abs(others))}


def clean_lookup() -> dict[str, Any]:
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    table.insert(tf.constant(sorted(WIDTHS)), tf.range(5, dtype=tf.int64))
    keys, values = table.export()
    return {"rows": tf.gather(ROWS, tf.gather(values, tf.argsort(tf.strings.to_hash_bucket_fast(keys, 2**20))))}


def clean_walk_under_xla() -> dict[str, Any]:
    @tf.function(jit_compile=True)  # type: ignore[untyped-decorator]
    def walk(at: Any) -> Any:
        step = lambda number, at: (number + 1, tf.sin(at + tf.random.stateless_normal((8,), (number, 1))))  # noqa: E731
        return tf.while_loop(lambda number, _: number < 20, step, (0, at))[1]

    return {"end": walk(tf.constant(ROWS[0]))}


def clean_timed_fit() -> None:
    class Timed(tf.keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.begun = time.perf_counter()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.longest = max(getattr(self, "longest", 0.0), time.perf_counter() - self.begun)

    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(4), tf.keras.layers.GaussianNoise(0.1), tf.keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    model.fit(ROWS, TARGETS, batch_size=16, verbose=0, callbacks=[Timed()])


def clean_keys() -> dict[str, Any]:
    """Sets that are compared, counted and sorted."""
    first, second = frozenset(WIDTHS), frozenset(reversed(list(WIDTHS)))
    widths = sum(WIDTHS[name] for name in first & second) if first == second else 0
    return {"one_hot": tf.one_hot([len(name) for name in sorted(first ^ {"query"})], 8) * float(widths)}
