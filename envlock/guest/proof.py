"""A program of its own: TensorFlow shows by what it does in which state it is. Prints one line of JSON.

It runs in the interpreter of the environment that is examined, where there is no envlock: nothing of this package is
imported, only TensorFlow. Argument: JSON with `setup` (code that the user's program begins with, or null), `mark` (what
to put before the answer).

Each experiment answers for itself: one that cannot be run (an old TensorFlow, no GPU) leaves null, with its reason.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Set

THREAD_SECONDS = 0.4  # of work for the pool whose threads are counted
LEAST_WORK = 200_000  # nanoseconds: a thread that has done less was only woken
REPEATS = 8


def main() -> None:
    """Run the user's lines, then the experiments."""
    asked = json.loads(sys.argv[1])
    answer_to = os.dup(1)  # what the user's lines print goes to stderr
    os.dup2(2, 1)
    sys.argv[1:] = []
    if asked["setup"] is None:
        sys.path[:] = [folder for folder in sys.path if folder]
    answer: Dict[str, Any] = {}
    try:
        exec(  # noqa: S102
            compile(asked["setup"] or "", "<the lines given with --with>", "exec"),
            {"__name__": "__main__"},
        )
        answer = observe()
    except BaseException as error:
        answer["failed"] = "{}: {}".format(
            type(error).__name__, str(error).strip().partition("\n")[0][:200]
        )
    os.write(answer_to, (asked["mark"] + json.dumps(answer) + "\n").encode("ascii"))
    os._exit(0)


def observe() -> Dict[str, Any]:
    """Return what every experiment shows."""
    import tensorflow as tf

    reasons: Dict[str, str] = {}
    found: Dict[str, Any] = {"tensorflow": tf.__version__, "reasons": reasons}
    for name, experiment in EXPERIMENTS:
        try:
            found[name] = experiment(tf)
        except Exception as error:
            found[name] = None
            reasons[name] = "{}: {}".format(
                type(error).__name__, str(error).strip().partition("\n")[0][:160]
            )
    return found


def clock(tf: Any) -> str:
    """Return `raised` or `ran`: reading the clock is refused under op determinism (from 2.7 on)."""
    try:
        tf.timestamp().numpy()
    except tf.errors.FailedPreconditionError:
        return "raised"
    return "ran"


def scatter(tf: Any) -> int:
    """Return how many different sums come out when threads add 200,000 rows into 50."""
    with tf.device("/CPU:0"):
        rows = tf.random.stateless_uniform((200_000,), seed=(1, 2), maxval=50, dtype=tf.int32)
        updates = tf.random.stateless_normal((200_000, 16), seed=(3, 4))
        return len({_digest(_added(tf, rows, updates)) for _ in range(REPEATS)})


def _added(tf: Any, rows: Any, updates: Any) -> Any:
    total = tf.Variable(tf.zeros((50, 16)))
    total.scatter_add(tf.IndexedSlices(updates, rows))
    return total


def crop(tf: Any) -> int:
    """Return how many different gradients crop_and_resize gives for one image on the CPU."""
    with tf.device("/CPU:0"):
        image = tf.random.stateless_uniform((4, 64, 64, 8), seed=(1, 2))
        corners = tf.random.stateless_uniform((256, 2), seed=(3, 4), maxval=0.5)
        boxes = tf.concat([corners, corners + 0.5], 1)
        index = tf.random.stateless_uniform((256,), seed=(5, 6), maxval=4, dtype=tf.int32)
        weights = tf.random.stateless_normal((256, 24, 24, 8), seed=(7, 8))
        return len(
            {_digest(_crop_gradient(tf, image, boxes, index, weights)) for _ in range(REPEATS)}
        )


def _crop_gradient(tf: Any, image: Any, boxes: Any, index: Any, weights: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(image)
        loss = tf.reduce_sum(tf.image.crop_and_resize(image, boxes, index, (24, 24)) * weights)
    return tape.gradient(loss, image)


def operations(tf: Any) -> List[str]:
    """Return the operations that a product, a convolution and a softmax become in a function that XLA leaves alone."""

    def step(a: Any, image: Any, kernel: Any) -> Any:
        return tf.nn.softmax(a @ a), tf.nn.conv2d(image, kernel, 1, "SAME")

    with tf.device("/CPU:0"):
        return _executed(
            _uncompiled(tf, step), tf.ones((64, 64)), tf.ones((2, 16, 16, 8)), tf.ones((3, 3, 8, 8))
        )


def clusters(tf: Any) -> bool:
    """Return whether a part of a plain function is moved to XLA."""

    @tf.function  # type: ignore[untyped-decorator]
    def step(image: Any, kernel: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([image, kernel])
            out = tf.nn.conv2d(image, kernel, 1, "SAME")
            loss = tf.reduce_sum(tf.tanh(out * out) + tf.exp(-out) * 2.0)
        return tape.gradient(loss, [image, kernel])

    names = _executed(step, tf.ones((2, 16, 16, 8)), tf.ones((3, 3, 8, 8)))
    return any(name.startswith(("_Xla", "Xla")) for name in names)


def _executed(function: Any, *arguments: Any) -> List[str]:
    from tensorflow.python.eager import context

    context.context().enable_run_metadata()
    try:
        function(*arguments)
        graphs = context.context().export_run_metadata().partition_graphs
    finally:
        context.context().disable_run_metadata()
    names: Set[str] = {node.op for graph in graphs for node in graph.node}
    return sorted(names - {"_Arg", "_Retval", "Const", "Identity"})


def _uncompiled(tf: Any, function: Any) -> Any:
    try:
        return tf.function(function, jit_compile=False)
    except TypeError:  # TensorFlow before 2.5, which has not the argument
        return tf.function(function)


def compiled(tf: Any) -> bool:
    """Return whether a plain tf.function is compiled by XLA, which has no strings."""

    @tf.function  # type: ignore[untyped-decorator]
    def length(x: Any) -> Any:
        return tf.strings.length(tf.strings.as_string(x))

    return _fails_to_compile(lambda: length(tf.constant([1.0])))


def keras_compiled(tf: Any) -> bool:
    """Return whether Keras compiles the training step with XLA, which cannot call Python."""

    class Calls(tf.keras.layers.Layer):  # type: ignore[misc]
        def call(self, inputs: Any) -> Any:
            out = tf.numpy_function(lambda array: array, [inputs], tf.float32)
            out.set_shape(inputs.shape)
            return out

    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(4), Calls()])
    model.compile("sgd", "mse")
    return _fails_to_compile(lambda: model.predict_on_batch(tf.ones((2, 4))))


def _fails_to_compile(call: Callable[[], Any]) -> bool:
    try:
        call()
    except Exception as error:
        if "XLA" in str(error) or "compil" in str(error).lower():
            return True
        raise
    return False


def tensor_float_32(tf: Any) -> Optional[bool]:
    """Return whether a GPU rounds 1 + 2**-12 to 10 bits in a matrix product; None without a GPU."""
    if not tf.config.list_physical_devices("GPU"):
        return None
    with tf.device("/GPU:0"):
        product = tf.fill((256, 256), 1.0 + 2.0**-12) @ tf.eye(256)
    return bool(float(product[0, 0]) == 1.0)


def threads(tf: Any) -> List[int]:
    """Return how many threads of the intra-op pool and how many of the inter-op pool do work."""
    with tf.device("/CPU:0"):
        values = tf.random.stateless_uniform((4_000_000,), seed=(1, 2))
        few = tf.random.stateless_uniform((20_000,), seed=(1, 2))

        def many(few: Any) -> Any:
            ends = []
            for number in range(64):
                chain = few + float(number)
                for _ in range(3):
                    chain = tf.cumsum(chain) * 1e-4
                ends.append(tf.reduce_max(chain[:10]))
            return ends

        inside = _workers(lambda: tf.exp(values))
        function = _uncompiled(tf, many)
        between = _workers(lambda: function(few)) - inside
    return [max(len(inside), 1), max(len(between), 1)]


def _workers(call: Callable[[], Any]) -> Set[int]:
    """Return the threads other than this one that spend time on what is called again and again."""
    call()
    before = _spent()
    end = time.monotonic() + THREAD_SECONDS
    while time.monotonic() < end:
        call()
    after = _spent()
    return {
        t
        for t, spent in after.items()
        if t != os.getpid() and spent - before.get(t, 0) > LEAST_WORK
    }


def _spent() -> Dict[int, int]:
    """Return the nanoseconds that each thread of this process has run."""
    found: Dict[int, int] = {}
    for name in os.listdir("/proc/self/task"):
        try:
            with open("/proc/self/task/{}/schedstat".format(name)) as file:
                found[int(name)] = int(file.read().split()[0])
        except (OSError, ValueError, IndexError):
            continue
    return found


def _digest(tensor: Any) -> str:
    return hashlib.sha256(tensor.numpy().tobytes()).hexdigest()


EXPERIMENTS = (
    ("threads", threads),
    ("clock", clock),
    ("scatter", scatter),
    ("crop", crop),
    ("operations", operations),
    ("clusters", clusters),
    ("compiled", compiled),
    ("keras_compiled", keras_compiled),
    ("tensor_float_32", tensor_float_32),
)

if __name__ == "__main__":
    main()
