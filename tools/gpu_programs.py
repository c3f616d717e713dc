"""A program of its own: calls one small computation several times, and prints the SHA-256 of each result.

It runs in the interpreter whose TensorFlow is measured, without envlock. Argument: JSON with `program` (a key of
PROGRAMS), `calls`, `device` (`GPU:0` or `CPU:0`) and what `prepare` sets. It prints JSON: the digests, or the error.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

Results = Any
"""A tensor or several."""

TOLD: dict[str, str] = {}
"""What a program says besides its results."""

UNSEEDED = ("unseeded", "fractional_pool", "free_generator")
"""Programs whose point is that they have no seed."""

NUMBERS = np.random.RandomState(0)
IMAGES = NUMBERS.randn(8, 32, 32, 16).astype("float32")
FILTERS = NUMBERS.randn(3, 3, 16, 32).astype("float32")
ROWS = NUMBERS.randn(100_000, 8).astype("float32")
PLACES = NUMBERS.randint(0, 50, 100_000).astype("int32")
LOGITS = NUMBERS.randn(2048, 100).astype("float32")
LABELS = NUMBERS.randint(0, 100, 2048).astype("int32")
BOXES = np.concatenate([NUMBERS.rand(256, 2) / 2, 0.5 + NUMBERS.rand(256, 2) / 2], 1).astype(
    "float32"
)


def _gradient(function: Callable[..., Any], *values: Any) -> Results:
    variables = [tf.constant(each) for each in values]
    with tf.GradientTape() as tape:
        tape.watch(variables)
        result = function(*variables)
        loss = tf.reduce_sum(
            result
            * tf.reshape(tf.cos(tf.range(tf.size(result), dtype=tf.float32)), tf.shape(result))
        )
    return [tf.convert_to_tensor(each) for each in tape.gradient(loss, variables)]


def _compiled(function: Callable[..., Any], *values: Any) -> Results:
    return tf.function(function, jit_compile=True)(*[tf.constant(each) for each in values])


def _ref_scatter() -> Results:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        table = tf.compat.v1.get_variable(
            "table", initializer=tf.zeros((50, 8)), use_resource=False
        )
        changed = tf.compat.v1.scatter_add(table, tf.constant(PLACES), tf.constant(ROWS))
        session.run(tf.compat.v1.global_variables_initializer())
        return session.run(changed)


def _ctc() -> Results:
    labels, lengths = LABELS[:64].reshape(8, 8) % 19 + 1, np.full(8, 8, "int32")
    logits, frames = LOGITS[: 8 * 40, :20].reshape(40, 8, 20), np.full(8, 40, "int32")
    return _gradient(lambda x: tf.nn.ctc_loss(labels, x, lengths, frames, blank_index=0), logits)


def _frozen_norm() -> Results:
    mean, variance = tf.zeros(16), tf.ones(16)

    def frozen(image: Any, scale: Any) -> Any:
        return tf.compat.v1.nn.fused_batch_norm(
            image, scale, mean, mean, variance, is_training=False
        )[0]

    return _gradient(frozen, IMAGES, np.ones(16, "float32"))


def _block(image: Any, first: Any, second: Any) -> Any:
    """A block of a residual network."""
    inner = tf.nn.relu(tf.nn.conv2d(image, first, 1, "SAME"))
    return tf.nn.relu(image + tf.nn.conv2d(inner, second, 1, "SAME"))


def _residual() -> Results:
    """Five steps of training a residual block."""
    filters = [tf.Variable(0.05 * FILTERS[..., :16]), tf.Variable(0.05 * FILTERS[..., 16:])]
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(_block(tf.constant(IMAGES), *filters)))
        for variable, gradient in zip(filters, tape.gradient(loss, filters), strict=True):
            variable.assign_sub(0.1 * gradient)
    return [each.value() for each in filters]


def trained() -> dict[str, Any]:
    """What `envlock repeat` and `envlock diverge` run."""
    tf.keras.utils.set_random_seed(1)
    first, second = _residual()
    return {
        "first": first,
        "second": second,
        "pooled": _gradient(lambda x: tf.nn.max_pool2d(x, 3, 1, "SAME"), IMAGES)[0],
    }


def _recurrent() -> Results:
    tf.keras.utils.set_random_seed(1)
    layer = tf.keras.layers.LSTM(32)
    sequence = tf.constant(IMAGES[:, :, :, :].reshape(8, 32, -1)[:, :, :64])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(layer(sequence)))
    return tape.gradient(loss, layer.trainable_variables)


def _fitted() -> Results:
    """A Keras model that decides about XLA by itself."""
    tf.keras.utils.set_random_seed(1)
    layers = [
        tf.keras.layers.Conv2D(8, 3, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(1),
    ]
    model = tf.keras.Sequential(layers)
    model.compile("sgd", "mse")
    model.fit(IMAGES, IMAGES[:, 0, 0, :1], epochs=2, batch_size=4, shuffle=False, verbose=0)
    TOLD["jit_compile"] = str(getattr(model, "jit_compile", None))
    return model.get_weights()


def _attention() -> Results:
    def attention(query: Any, key: Any, value: Any) -> Any:
        return tf.nn.softmax(query @ tf.transpose(key, (0, 2, 1)) / 8.0) @ value

    values = [tf.cast(IMAGES.reshape(8, -1, 64)[:, :128], tf.float16) for _ in range(3)]

    def gradients(*given: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(given)
            loss = tf.reduce_sum(attention(*given))
        return tape.gradient(loss, given)

    return tf.function(gradients, jit_compile=True)(*values)


def _mirrored() -> Results:
    """Gradients that all devices add up, with each way of packing them."""
    kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    strategy = tf.distribute.MirroredStrategy(
        [each.name[-5:] for each in tf.config.list_logical_devices(kind)]
    )
    if strategy.num_replicas_in_sync < 2:
        raise RuntimeError("one device only")

    def step() -> Any:
        number = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
        return tf.distribute.get_replica_context().all_reduce(
            "SUM", tf.sin(tf.constant(ROWS[:4096]) + number)
        )

    return strategy.experimental_local_results(strategy.run(tf.function(step)))


PROGRAMS: dict[str, Callable[[], Results]] = {
    "conv_forward": lambda: tf.nn.conv2d(IMAGES, FILTERS, 1, "SAME"),
    "conv_filter_gradient": lambda: _gradient(
        lambda f: tf.nn.conv2d(IMAGES, f, 1, "SAME"), FILTERS
    ),
    "conv_input_gradient": lambda: _gradient(lambda x: tf.nn.conv2d(x, FILTERS, 1, "SAME"), IMAGES),
    "residual_block": _residual,
    "max_pool_gradient": lambda: _gradient(lambda x: tf.nn.max_pool2d(x, 3, 1, "SAME"), IMAGES),
    "bias_gradient": lambda: _gradient(lambda b: tf.nn.bias_add(tf.constant(ROWS), b), ROWS[0]),
    "bilinear_gradient": lambda: _gradient(lambda x: tf.image.resize(x, (77, 77)), IMAGES),
    "nearest_gradient": lambda: _gradient(
        lambda x: tf.image.resize(x, (77, 77), "nearest"), IMAGES
    ),
    "segment_sum": lambda: tf.math.segment_sum(ROWS, np.sort(PLACES)),
    "unsorted_segment_sum": lambda: tf.math.unsorted_segment_sum(ROWS, PLACES, 50),
    "indexed_slices": lambda: tf.convert_to_tensor(
        tf.IndexedSlices(tf.constant(ROWS), PLACES, tf.constant([50, 8]))
    ),
    "gather_gradient": lambda: _gradient(lambda t: tf.gather(t, PLACES), ROWS[:50]),
    "softmax_gradient": lambda: _gradient(
        lambda x: tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(LABELS, 100), x), LOGITS
    ),
    "sparse_softmax_gradient": lambda: _gradient(
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(LABELS, x), LOGITS
    ),
    "ctc_gradient": _ctc,
    "frozen_norm_gradient": _frozen_norm,
    "depthwise_filter_gradient": lambda: _gradient(
        lambda f: tf.nn.depthwise_conv2d(IMAGES, f, [1, 1, 1, 1], "SAME"), FILTERS[..., :1]
    ),
    "adjust_contrast": lambda: tf.image.adjust_contrast(IMAGES[..., :3], 1.7),
    "crop_gradient": lambda: _gradient(
        lambda x: tf.image.crop_and_resize(x, BOXES, np.arange(256) % 8, (24, 24)), IMAGES
    ),
    "bincount_weights": lambda: tf.math.bincount(PLACES, weights=ROWS[:, 0], minlength=50),
    "sparse_matmul": lambda: tf.sparse.sparse_dense_matmul(
        tf.sparse.SparseTensor(
            np.stack([np.sort(PLACES[:4000]), np.arange(4000)], 1).astype("int64"),
            ROWS[:4000, 0],
            (50, 4000),
        ),
        ROWS[:4000],
    ),
    "scatter_nd": lambda: tf.scatter_nd(PLACES[:, None], ROWS, (50, 8)),
    "ref_scatter": _ref_scatter,
    "debug_summary": lambda: tf.raw_ops.DebugNumericSummaryV2(input=ROWS, tensor_debug_mode=8),
    "dilation_gradient": lambda: _gradient(
        lambda x: tf.nn.dilation2d(x, FILTERS[..., 0], [1] * 4, "SAME", "NHWC", [1] * 4), IMAGES
    ),
    "argmax_pool_gradient": lambda: _gradient(
        lambda x: tf.nn.max_pool_with_argmax(x, 3, 1, "SAME")[0], IMAGES
    ),
    "svd_one_column": lambda: tf.linalg.svd(tf.constant(ROWS[:64, :1]))[0],
    "fake_quant_gradient": lambda: _gradient(
        lambda x, low, high: tf.quantization.fake_quant_with_min_max_vars(x, low, high),
        *(ROWS, np.float32(-1), np.float32(1)),
    ),
    "xla_reduction": lambda: _compiled(lambda x: tf.reduce_sum(tf.tanh(x), 0), ROWS),
    "xla_scatter": lambda: _compiled(lambda x: tf.scatter_nd(PLACES[:, None], x, (50, 8)), ROWS),
    "xla_pool_gradient": lambda: _compiled(
        lambda x: tf.gradients(tf.reduce_sum(tf.nn.max_pool2d(x, 3, 2, "SAME")), x)[0], IMAGES
    ),
    "xla_block": lambda: _compiled(_block, IMAGES, FILTERS[..., :16], FILTERS[..., 16:]),
    "recurrent": _recurrent,
    "keras_fit": _fitted,
    "attention": _attention,
    "unseeded": lambda: tf.random.normal((100,)),
    "fractional_pool": lambda: tf.nn.fractional_max_pool(
        IMAGES, (1, 1.4, 1.4, 1), pseudo_random=True
    )[0],
    "free_generator": lambda: tf.random.Generator.from_non_deterministic_state().normal((100,)),
    "timestamp": lambda: tf.timestamp(),
    "matmul": lambda: tf.matmul(LOGITS.T, LOGITS),
    "all_reduce": _mirrored,
}


def digest(results: Results) -> str:
    """Return the SHA-256 of type, shape and bytes of all results, shortened."""
    found = hashlib.sha256()
    for each in results if isinstance(results, (list, tuple)) else [results]:
        array = np.asarray(each)
        found.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return found.hexdigest()[:16]


def observe(tf: Any) -> None:
    """Look at the outputs of every operation, as `envlock diverge` does."""
    from tensorflow.python.framework import op_callbacks

    def look(
        kind: Any,
        inputs: Any,
        attributes: Any,
        outputs: Any,
        op_name: Any = None,
        graph: Any = None,
    ) -> None:
        for each in outputs if graph is None else ():
            if each.dtype not in (tf.resource, tf.variant):
                each.numpy()

    op_callbacks.add_op_callback(look)


def prepare(asked: dict[str, Any]) -> None:
    """Set what a case asks for."""
    if asked["replicas"]:  # virtual ones, where there is no second device
        parts = [tf.config.LogicalDeviceConfiguration() for _ in range(asked["replicas"])]
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], parts)
    if asked["memory_mib"]:
        for each in tf.config.list_physical_devices("GPU"):
            limit = [tf.config.LogicalDeviceConfiguration(memory_limit=asked["memory_mib"])]
            tf.config.set_logical_device_configuration(each, limit)
    if asked["program"] not in UNSEEDED:
        tf.keras.utils.set_random_seed(1)
    if asked["determinism"]:
        tf.config.experimental.enable_op_determinism()
    if asked["tf32"] is not None:
        tf.config.experimental.enable_tensor_float_32_execution(asked["tf32"])
    if asked["observed"]:
        observe(tf)


def main() -> None:
    """Call, and print."""
    asked = json.loads(sys.argv[1])
    answer: dict[str, Any] = {"digests": [], "error": None}
    try:
        prepare(asked)
        with tf.device(asked["device"]):
            for _ in range(asked["calls"]):
                answer["digests"].append(digest(PROGRAMS[asked["program"]]()))
    except Exception as error:
        answer["error"] = f"{type(error).__name__}: {str(error).strip()}"[:600]
    print("\nanswer:" + json.dumps({**answer, "told": TOLD}), flush=True)


if __name__ == "__main__":
    main()
