"""Find out the state of TensorFlow by experiments: a standalone program that prints one line of
JSON.

It runs in the interpreter of the examined environment, where envlock is not installed, so it
imports only TensorFlow. Argument: JSON with `setup` (the first lines of the user's program, or
null) and `mark` (the beginning of the answer).

An experiment that cannot be run (an old TensorFlow, no GPU) gives null and a reason; the others are
still run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable, Dict, List, Optional, Set, Tuple

    from tensorflow import Tensor

THREAD_SECONDS = 0.4
"""Seconds of work for the pool whose threads are counted."""
LEAST_WORK = 200_000
"""Nanoseconds: a thread that has run for less was only woken."""
REPEATS = 8
"""How often a sum is computed whose order can differ."""


def main() -> None:
    """Run the user's lines, then the experiments."""
    asked = json.loads(sys.argv[1])
    # Output of the user's lines goes to stderr, so that it cannot mix with the answer.
    answer_to = os.dup(1)
    os.dup2(2, 1)
    sys.argv[1:] = []
    if asked["setup"] is None:
        sys.path[:] = [folder for folder in sys.path if folder]
    answer: Dict[str, object] = {}
    try:
        setup = compile(asked["setup"] or "", "<the lines given with --with>", "exec")
        exec(setup, {"__name__": "__main__"})  # noqa: S102
        answer = observe()
    except BaseException as error:
        answer["failed"] = describe_error(error, 200)
    os.write(answer_to, (asked["mark"] + json.dumps(answer) + "\n").encode("ascii"))
    # Without the atexit functions of TensorFlow and of the user's lines.
    os._exit(0)


def describe_error(error: BaseException, most: int) -> str:
    """Return the type and the first line of an error, of at most `most` characters."""
    message = str(error).strip().partition("\n")[0][:most]
    return "{}: {}".format(type(error).__name__, message)


def observe() -> Dict[str, object]:
    """Return the result of every experiment."""
    # Only now: the lines of the user's program come before its import of TensorFlow.
    import tensorflow as tf

    reasons: Dict[str, str] = {}
    results: Dict[str, object] = {"tensorflow": tf.__version__, "reasons": reasons}
    for name, experiment in EXPERIMENTS:
        try:
            results[name] = experiment(tf)
        except Exception as error:
            results[name] = None
            reasons[name] = describe_error(error, 160)
    return results


def read_clock(tf: ModuleType) -> str:
    """Return `raised` or `ran`: op determinism refuses to read the clock (from 2.7 on)."""
    try:
        tf.timestamp().numpy()
    except tf.errors.FailedPreconditionError:
        return "raised"
    return "ran"


def count_scatter_sums(tf: ModuleType) -> int:
    """Return how many different sums result when threads add 200,000 rows into 50."""
    with tf.device("/CPU:0"):
        rows = tf.random.stateless_uniform((200_000,), seed=(1, 2), maxval=50, dtype=tf.int32)
        updates = tf.random.stateless_normal((200_000, 16), seed=(3, 4))
        return len({_hash(_add_rows(tf, rows, updates)) for _ in range(REPEATS)})


def _add_rows(tf: ModuleType, rows: Tensor, updates: Tensor) -> Tensor:
    total = tf.Variable(tf.zeros((50, 16)))
    total.scatter_add(tf.IndexedSlices(updates, rows))
    return total


def count_crop_gradients(tf: ModuleType) -> int:
    """Return how many different gradients crop_and_resize has for one image on the CPU."""
    with tf.device("/CPU:0"):
        image = tf.random.stateless_uniform((4, 64, 64, 8), seed=(1, 2))
        corners = tf.random.stateless_uniform((256, 2), seed=(3, 4), maxval=0.5)
        boxes = tf.concat([corners, corners + 0.5], 1)
        index = tf.random.stateless_uniform((256,), seed=(5, 6), maxval=4, dtype=tf.int32)
        weights = tf.random.stateless_normal((256, 24, 24, 8), seed=(7, 8))

        def compute_gradient() -> Tensor:
            with tf.GradientTape() as tape:
                tape.watch(image)
                crops = tf.image.crop_and_resize(image, boxes, index, (24, 24))
                loss = tf.reduce_sum(crops * weights)
            return tape.gradient(loss, image)

        return len({_hash(compute_gradient()) for _ in range(REPEATS)})


def find_operations(tf: ModuleType) -> List[str]:
    """Return the operations that a product, a convolution and a softmax become in a function that
    XLA does not compile.
    """

    def compute(a: Tensor, image: Tensor, kernel: Tensor) -> Tuple[Tensor, Tensor]:
        return tf.nn.softmax(a @ a), tf.nn.conv2d(image, kernel, 1, "SAME")

    with tf.device("/CPU:0"):
        function = _make_uncompiled(tf, compute)
        inputs = tf.ones((64, 64)), tf.ones((2, 16, 16, 8)), tf.ones((3, 3, 8, 8))
        return _run_for_operations(function, *inputs)


def has_clusters(tf: ModuleType) -> bool:
    """Return whether a part of a plain function is moved to XLA."""

    @tf.function  # type: ignore[untyped-decorator]
    def compute(image: Tensor, kernel: Tensor) -> List[Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([image, kernel])
            out = tf.nn.conv2d(image, kernel, 1, "SAME")
            loss = tf.reduce_sum(tf.tanh(out * out) + tf.exp(-out) * 2.0)
        gradients: List[Tensor] = tape.gradient(loss, [image, kernel])
        return gradients

    names = _run_for_operations(compute, tf.ones((2, 16, 16, 8)), tf.ones((3, 3, 8, 8)))
    return any(name.startswith(("_Xla", "Xla")) for name in names)


def _run_for_operations(function: Callable[..., object], *arguments: Tensor) -> List[str]:
    """Call a function, and return the types of the operations in its graph when it runs."""
    context = import_module("tensorflow.python.eager.context")
    context.context().enable_run_metadata()
    try:
        function(*arguments)
        graphs = context.context().export_run_metadata().partition_graphs
    finally:
        context.context().disable_run_metadata()
    names: Set[str] = {node.op for graph in graphs for node in graph.node}
    return sorted(names - {"_Arg", "_Retval", "Const", "Identity"})


def _make_uncompiled(tf: ModuleType, function: Callable[..., object]) -> Callable[..., object]:
    """Return the graph of a function that XLA does not compile as a whole."""
    graph: Callable[..., object]
    try:
        graph = tf.function(function, jit_compile=False)
    except TypeError:  # TensorFlow before 2.5 has no such argument
        graph = tf.function(function)
    return graph


def is_compiled(tf: ModuleType) -> bool:
    """Return whether XLA, which has no strings, compiles a plain tf.function."""

    @tf.function  # type: ignore[untyped-decorator]
    def compute_length(x: Tensor) -> Tensor:
        return tf.strings.length(tf.strings.as_string(x))

    return _is_refused_by_xla(lambda: compute_length(tf.constant([1.0])))


def is_compiled_by_keras(tf: ModuleType) -> bool:
    """Return whether Keras compiles the training step with XLA, which cannot call Python."""

    class Calls(tf.keras.layers.Layer):  # type: ignore[misc,name-defined]
        def call(self, inputs: Tensor) -> Tensor:
            out = tf.numpy_function(lambda array: array, [inputs], tf.float32)
            out.set_shape(inputs.shape)
            return out

    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(4), Calls()])
    model.compile("sgd", "mse")
    return _is_refused_by_xla(lambda: model.predict_on_batch(tf.ones((2, 4))))


def _is_refused_by_xla(call: Callable[[], object]) -> bool:
    """Return whether a call fails because XLA compiles it; raise any other error."""
    try:
        call()
    except Exception as error:
        if "XLA" in str(error) or "compil" in str(error).lower():
            return True
        raise
    return False


def has_tensor_float_32(tf: ModuleType) -> Optional[bool]:
    """Return whether a GPU rounds 1 + 2**-12 to 10 bits in a matrix product; None without a GPU."""
    if not tf.config.list_physical_devices("GPU"):
        return None
    with tf.device("/GPU:0"):
        product = tf.fill((256, 256), 1.0 + 2.0**-12) @ tf.eye(256)
    return bool(float(product[0, 0]) == 1.0)


def count_threads(tf: ModuleType) -> List[int]:
    """Return how many threads of the intra-op pool and how many of the inter-op pool do work."""
    with tf.device("/CPU:0"):
        values = tf.random.stateless_uniform((4_000_000,), seed=(1, 2))
        few = tf.random.stateless_uniform((20_000,), seed=(1, 2))

        def compute_chains(few: Tensor) -> List[Tensor]:
            # 64 independent chains, so that every inter-op thread gets one.
            ends = []
            for number in range(64):
                chain = few + float(number)
                for _ in range(3):
                    chain = tf.cumsum(chain) * 1e-4
                ends.append(tf.reduce_max(chain[:10]))
            return ends

        inside = _find_working_threads(lambda: tf.exp(values))
        function = _make_uncompiled(tf, compute_chains)
        between = _find_working_threads(lambda: function(few)) - inside
    return [max(len(inside), 1), max(len(between), 1)]


def _find_working_threads(call: Callable[[], object]) -> Set[int]:
    """Return the threads other than this one that spend time on a call, which is repeated for
    `THREAD_SECONDS`.
    """
    call()
    before = _read_thread_times()
    end = time.monotonic() + THREAD_SECONDS
    while time.monotonic() < end:
        call()
    working = set()
    for thread, spent in _read_thread_times().items():
        if thread != os.getpid() and spent - before.get(thread, 0) > LEAST_WORK:
            working.add(thread)
    return working


def _read_thread_times() -> Dict[int, int]:
    """Return the nanoseconds that each thread of this process has run."""
    times: Dict[int, int] = {}
    for name in os.listdir("/proc/self/task"):
        try:
            with open("/proc/self/task/{}/schedstat".format(name)) as file:
                times[int(name)] = int(file.read().split()[0])
        except (OSError, ValueError, IndexError):
            continue
    return times


def _hash(tensor: Tensor) -> str:
    return hashlib.sha256(tensor.numpy().tobytes()).hexdigest()


EXPERIMENTS = (
    ("threads", count_threads),
    ("clock", read_clock),
    ("scatter", count_scatter_sums),
    ("crop", count_crop_gradients),
    ("operations", find_operations),
    ("clusters", has_clusters),
    ("compiled", is_compiled),
    ("keras_compiled", is_compiled_by_keras),
    ("tensor_float_32", has_tensor_float_32),
)
"""The key of each result and the function that computes it, in the order in which they run."""

if __name__ == "__main__":
    main()
