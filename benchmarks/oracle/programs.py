"""The reference programs: asks envlock first, then hashes what nine small programs compute, part by part.

    python programs.py LOCK [NAME ...]

With names, only those programs run.

Prints one line of JSON: what `assert_locked` said under each policy (before TensorFlow is imported, as on line 1 of a
script), and the SHA-256 of every part. A program that cannot run has `failed: ` and the name of the exception instead.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

POLICIES = ("strict", "bits")
Parts = Iterator[tuple[str, Any]]


def main() -> None:
    """Print what was said and what was computed."""
    answer_to = os.dup(1)
    os.dup2(2, 1)  # what an import prints
    said = {policy: verdict(sys.argv[1], policy) for policy in POLICIES}
    found: dict[str, str] = {}
    asked = sys.argv[2:]
    for program in PROGRAMS:
        if asked and program.__name__ not in asked:
            continue
        found.update(
            {f"{program.__name__}.{part}": value for part, value in computed(program).items()}
        )
    os.write(answer_to, (json.dumps({"verdicts": said, "parts": found}) + "\n").encode("ascii"))
    os._exit(0)  # what is wrong with the end of a process has no bits


def verdict(lock: str, policy: str) -> dict[str, Any]:
    """Return whether it matched, the facts that it refused or could not tell, and whether a proof would be heard."""
    import envlock

    try:
        report = envlock.assert_locked(lock, policy)
    except envlock.EnvironmentMismatch as refusal:
        report = refusal.report
    except envlock.EnvlockError as error:
        return {
            "match": False,
            "refused": [],
            "provable": False,
            "error": str(error).partition("\n")[0],
        }
    if report is None:
        return {"match": True, "refused": [], "provable": False, "error": "it did not look"}
    breaking = [each for each in report.findings if each.severity in report.breaking]
    refused = sorted({str(each.where) for each in breaking})
    provable = any("envlock verify -p bits" in each.fix for each in breaking)
    return {"match": report.match, "refused": refused, "provable": provable, "error": ""}


def computed(program: Callable[[], Parts]) -> dict[str, str]:
    """Return the digest of each part of a program."""
    found = {}
    try:
        for part, value in program():
            found[part] = digest(value)
    except Exception as error:  # whatever a perturbation breaks
        found["failed"] = "failed: " + type(error).__name__
    return found


def digest(value: Any) -> str:
    """Return the SHA-256 of an array's type, shape and bytes, or of a text."""
    if isinstance(value, str):
        return hashlib.sha256(value.encode()).hexdigest()
    import numpy as np

    array = np.ascontiguousarray(value)
    return hashlib.sha256(f"{array.dtype.str}{array.shape}".encode() + array.tobytes()).hexdigest()


def numbers(*shape: int, salt: int = 0) -> Any:
    """Return float32 numbers in [-1, 1) that come from a counter, so that no generator has a part in them."""
    import numpy as np

    count = math.prod(shape)
    mixed = (
        (np.arange(count, dtype=np.uint64) + np.uint64(salt * 7919 + 1))
        * np.uint64(0x9E3779B97F4A7C15)
    ) >> np.uint64(40)
    return (mixed.astype(np.float32) / np.float32(1 << 23) - np.float32(1)).reshape(shape)


def features() -> Parts:
    """Feature engineering: `math`, NumPy's functions in two precisions, sums, and the order of a set of words."""
    import numpy as np

    plain = [float(each) for each in numbers(2000)]
    for name in ("sin", "tan", "exp", "tanh", "atan", "expm1", "erf", "lgamma"):
        function = getattr(math, name)
        yield f"math_{name}", "".join(function(each).hex() for each in plain)
    yield "math_pow", "".join(math.pow(1.5 + each, 2.3).hex() for each in plain)
    yield "math_log", "".join(math.log(1.5 + each).hex() for each in plain)
    single = numbers(10_000)
    for array in (single, single.astype(np.float64)):
        for name in ("sin", "exp", "tanh", "log1p", "cbrt"):
            yield f"numpy_{name}_{array.dtype}", getattr(np, name)(array * array.dtype.type(0.9))
        yield f"numpy_power_{array.dtype}", np.power(np.abs(array) + 1, array.dtype.type(1.7))
        yield f"numpy_sum_{array.dtype}", array.sum()
        yield f"numpy_std_{array.dtype}", array.std()
    words = {f"token-{each}" for each in range(500)}
    yield "order_of_a_set", " ".join(words)


def linear_algebra() -> Parts:
    """Linear algebra in double precision, with LAPACK, and NumPy's generators."""
    import numpy as np

    square = numbers(160, 160).astype(np.float64)
    tall = numbers(300, 40, salt=1).astype(np.float64)
    yield "product", square @ square
    yield "single_product", numbers(200, 200) @ numbers(200, 200, salt=2)
    yield "vector_product", tall.T @ tall[:, 0]
    yield "solve", np.linalg.solve(square + 160 * np.eye(160), square[:, 0])
    yield "svd", np.linalg.svd(tall, compute_uv=False)
    yield "eigenvalues", np.linalg.eigvalsh(square + square.T)
    yield "inverse", np.linalg.inv(square + 160 * np.eye(160))
    yield "least_squares", np.linalg.lstsq(tall, square[:40].ravel()[:300], rcond=None)[0]
    yield "fft", np.fft.rfft(square).view(np.float64)
    yield "normal", np.random.default_rng(0).standard_normal(1000)
    yield "legacy_normal", np.random.RandomState(0).randn(1000)


def pipeline() -> Parts:
    """An input pipeline: shuffled with a seed, augmented with stateless randomness, batched."""
    import tensorflow as tf

    images = tf.constant(numbers(64, 16, 16, 3))

    def augmented(index: Any, image: Any) -> Any:
        seed = tf.stack([tf.cast(index, tf.int32), 7])
        turned = tf.image.stateless_random_flip_left_right(image, seed)
        return tf.image.resize(tf.image.stateless_random_contrast(turned, 0.5, 1.5, seed), (12, 12))

    rows = tf.data.Dataset.from_tensor_slices((tf.range(64), images)).shuffle(64, seed=3)
    for number, batch in enumerate(rows.map(augmented, num_parallel_calls=2).batch(32)):
        yield f"batch_{number}", batch.numpy()


def convolutions() -> Parts:
    """A small image classifier: convolutions, batch normalisation, pooling; three steps of training."""
    import tensorflow as tf

    kernels = [
        tf.Variable(numbers(3, 3, 3, 16) / 5),
        tf.Variable(numbers(3, 3, 16, 32, salt=1) / 12),
    ]
    head = tf.Variable(numbers(32, 10, salt=2) / 6)
    images, labels = tf.constant(numbers(16, 28, 28, 3, salt=3)), tf.range(16) % 10

    def step() -> Any:
        with tf.GradientTape() as tape:
            x = images
            for kernel in kernels:
                x = tf.nn.conv2d(x, kernel, 1, "SAME")
                mean, variance = tf.nn.moments(x, [0, 1, 2])
                x = tf.nn.relu(tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3))
                x = tf.nn.max_pool2d(x, 2, 2, "SAME")
            logits = tf.reduce_mean(x, [1, 2]) @ head
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        variables = [*kernels, head]
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss

    train = tf.function(step)
    for number in range(3):
        yield f"loss_{number}", train().numpy()
    yield "kernel", kernels[1].numpy()
    yield "head", head.numpy()


def recurrence() -> Parts:
    """An LSTM written out, and its gradient."""
    import tensorflow as tf

    inputs, weights = tf.constant(numbers(8, 12, 16)), tf.Variable(numbers(48, 128, salt=1) / 8)

    def step() -> Any:
        with tf.GradientTape() as tape:
            state, cell = tf.zeros((8, 32)), tf.zeros((8, 32))
            for now in tf.unstack(inputs, axis=1):
                put, keep, out, new = tf.split(tf.concat([now, state], 1) @ weights, 4, 1)
                cell = tf.sigmoid(keep) * cell + tf.sigmoid(put) * tf.tanh(new)
                state = tf.sigmoid(out) * tf.tanh(cell)
            loss = tf.reduce_sum(state**2)
        return state, tape.gradient(loss, weights)

    state, gradient = tf.function(step)()
    yield "state", state.numpy()
    yield "gradient", gradient.numpy()


def embeddings() -> Parts:
    """Gathered rows, their segments, and the gradient that is scattered back."""
    import tensorflow as tf

    table, words = (
        tf.Variable(numbers(500, 32)),
        tf.constant((numbers(64, 20) * 250 + 250).astype("int32")),
    )

    def step() -> Any:
        with tf.GradientTape() as tape:
            rows = tf.gather(table, words)
            mean = tf.reduce_mean(rows, 1)
            sums = tf.math.unsorted_segment_sum(mean, tf.range(64) % 7, 7)
            loss = tf.reduce_sum(sums**2)
        return sums, tf.convert_to_tensor(tape.gradient(loss, table))

    sums, gradient = tf.function(step)()
    yield "sums", sums.numpy()
    yield "gradient", gradient.numpy()


def attention() -> Parts:
    """A block of self-attention with layer normalisation and GELU, and its gradient."""
    import tensorflow as tf

    x = tf.constant(numbers(4, 24, 32))
    weights = [tf.Variable(numbers(32, 32, salt=each) / 6) for each in range(5)]

    def step() -> Any:
        with tf.GradientTape() as tape:
            query, key, value = (tf.reshape(x @ each, (4, 24, 4, 8)) for each in weights[:3])
            scores = tf.nn.softmax(tf.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(8))
            mixed = (
                x
                + tf.reshape(tf.einsum("bhqk,bkhd->bqhd", scores, value), (4, 24, 32)) @ weights[3]
            )
            mean, variance = tf.nn.moments(mixed, [-1], keepdims=True)
            hidden = tf.nn.gelu((mixed - mean) * tf.math.rsqrt(variance + 1e-6) @ weights[4])
            loss = tf.reduce_mean(hidden**2)
        return hidden, tape.gradient(loss, weights)

    hidden, gradients = tf.function(step)()
    yield "output", hidden.numpy()
    for number, gradient in enumerate(gradients):
        yield f"gradient_{number}", gradient.numpy()


def compiled() -> Parts:
    """A step that XLA compiles: a product, transcendental functions, reductions."""
    import tensorflow as tf

    x, w = tf.constant(numbers(64, 48)), tf.Variable(numbers(48, 48, salt=1) / 7)

    def step() -> Any:
        with tf.GradientTape() as tape:
            hidden = tf.tanh(x @ w)
            logits = tf.exp(hidden - tf.reduce_max(hidden, 1, keepdims=True))
            loss = tf.reduce_mean(
                tf.math.log1p(tf.reduce_sum(logits, 1)) + tf.reduce_sum(tf.sin(hidden), 1)
            )
        return loss, tape.gradient(loss, w)

    loss, gradient = tf.function(step, jit_compile=True)()
    yield "loss", loss.numpy()
    yield "gradient", gradient.numpy()


def keras_fit() -> Parts:
    """A model of Keras, initialised, shuffled and dropped out with one seed, fitted for two epochs."""
    import tensorflow as tf

    keras = tf.keras
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.layers.Dense(32, "relu"), keras.layers.Dropout(0.3), keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    history = model.fit(
        numbers(256, 20), numbers(256, 1, salt=1), batch_size=32, epochs=2, verbose=0
    )
    yield "losses", " ".join(float(each).hex() for each in history.history["loss"])
    for number, weights in enumerate(model.get_weights()):
        yield f"weights_{number}", weights


PROGRAMS: tuple[Callable[[], Parts], ...] = (
    features,
    linear_algebra,
    pipeline,
    convolutions,
    recurrence,
    embeddings,
    attention,
    compiled,
    keras_fit,
)

if __name__ == "__main__":
    main()
