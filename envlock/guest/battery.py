"""Compute a fixed battery of operations and print their exact results, one line a group: a
standalone program.

It runs in the interpreter of the examined environment, where envlock is not installed, so it
imports only NumPy and TensorFlow. Argument: JSON with

    mark            the beginning of every line of the answer
    device          `cpu`, or the number of a visible GPU
    skip            groups that are not computed (an earlier child crashed in them)
    intra_op_threads, inter_op_threads    a number, or null: as the environment has it
    determinism     true, false, or null: as the environment has it

Inputs are made of integers (a counter, mixed, as a multiple of 2**-23), so neither a random
generator nor a mathematical library has a part in them. The functions of the C library come first,
then those of NumPy: programs prepare their data with both. Every operation is computed several times:
one that differs from itself is `unstable`. Where an operation fails, the type of its error is the
result; bfloat16 comes last, as it can end the process.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable, Dict, List, Optional, Tuple, TypedDict, Union

    from numpy import float32, generic
    from numpy.typing import NDArray
    from tensorflow import Tensor, Variable
    from tensorflow.config import PhysicalDevice

    Array = NDArray[generic]
    Operation = Callable[[], object]
    Layer = Tuple[Variable, Variable, Variable]

    class Computer(TypedDict):
        device: Union[int, str]
        intra_op_threads: Optional[int]
        inter_op_threads: Optional[int]
        determinism: Optional[bool]

    class Asked(Computer):
        mark: str
        skip: List[str]


BATTERY = 2
"""It grows by one when operations are added, or an operation or its input changes.

The column `since` of envlock/data/canary.toml says from which number on each operation is what it
is: the results of older lockfiles are compared as far as that. The code that computes has a digest
in tests/evidence/test_battery_number.py.
"""

BEGAN_AGAIN = "ENVLOCK_BATTERY_BEGAN_AGAIN"
"""A variable that is set when this program starts itself again."""

SAMPLES = 64
"""Values of a result that are printed, to show the distance of two results."""
MIX = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def main() -> None:
    """Compute the groups in order, and print each as soon as it is done: a crash loses only one."""
    asked: Asked = json.loads(sys.argv[1])
    set_variables(asked, asked["device"] == "cpu")
    # Output of an import goes to stderr, so that it cannot mix with the answer.
    answer_to = os.dup(1)
    os.dup2(2, 1)
    sys.argv[1:] = []
    sys.path[:] = [folder for folder in sys.path if folder]

    def say(answer: Dict[str, object]) -> None:
        os.write(answer_to, (asked["mark"] + json.dumps(answer) + "\n").encode("ascii"))

    try:
        _run(asked, say)
    except BaseException as error:
        say({"failed": describe_error(error)})
    # Without the shutdown of TensorFlow.
    os._exit(0)


def _run(asked: Asked, say: Callable[[Dict[str, object]], None]) -> None:
    on_cpu = asked["device"] == "cpu"
    # Imported here: only now are the variables set that it reads during the import.
    import numpy as np

    head: Dict[str, object] = {"battery": BATTERY, "numpy": np.__version__, "groups": []}
    libraries: List[Tuple[str, Dict[str, Operation]]] = []
    if on_cpu:
        own = {**make_numpy_operations(np), **make_double_operations(np)}
        libraries = [("libm", make_math_operations(np)), ("numpy", own)]
    for group, operations in libraries:
        if group not in asked["skip"]:
            say({"begin": [group, "library"]})
            results = _compute_all(np, operations, 2)
            say({"group": group, "execution": "library", "operations": results})
    # After NumPy's group: where TensorFlow cannot be imported, that one is still known.
    import tensorflow as tf

    start, spent = time.perf_counter(), time.process_time()
    set_threads(tf, asked)
    gpus: List[PhysicalDevice] = tf.config.list_physical_devices("GPU") if not on_cpu else []
    head["tensorflow"] = tf.__version__
    head["devices"] = [get_gpu_name(tf, gpu) for gpu in gpus]
    device, repeats = "/CPU:0", 2
    if isinstance(asked["device"], int):
        if asked["device"] >= len(gpus):
            say({"head": head})
            return
        # Only this GPU, and no more of its memory than needed: other processes may be using it.
        tf.config.set_visible_devices(gpus[asked["device"]], "GPU")
        tf.config.experimental.set_memory_growth(gpus[asked["device"]], True)
        device, repeats = "/GPU:0", 3
    with tf.device(device):
        groups = _make_groups(tf, np, asked["device"])
        head["groups"] = [group for group, _, _ in groups]
        say({"head": head})
        for group, execution, operations in groups:
            if group in asked["skip"]:
                continue
            say({"begin": [group, execution]})
            results = _compute_all(np, operations, repeats)
            say({"group": group, "execution": execution, "operations": results})
    say({"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - spent})


def set_variables(asked: Computer, on_cpu: bool) -> None:
    """Set the variables that are read during imports; BLAS gets one thread, because OpenBLAS never
    uses more than there are processors.

    If sitecustomize or a .pth file has already imported NumPy, its BLAS has created its threads,
    and on a processor without AVX-512 their number changes the bits of a product: this program then
    starts itself again with the variables set. This must be called before standard output is
    redirected, which a new start would undo.
    """
    wanted: Dict[str, str] = {}
    if on_cpu:
        wanted["CUDA_VISIBLE_DEVICES"] = "-1"
    if asked["intra_op_threads"] is not None:
        wanted.update({"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"})
    if asked["determinism"] is not None:
        wanted["TF_DETERMINISTIC_OPS"] = "1" if asked["determinism"] else "0"
    began_again = os.environ.pop(BEGAN_AGAIN, None) is not None
    is_late = "numpy" in sys.modules and any(
        os.environ.get(name) != value for name, value in wanted.items()
    )
    os.environ.update(wanted)
    if is_late and not began_again:  # once: sitecustomize can set the variables, too
        os.environ[BEGAN_AGAIN] = "1"
        with open("/proc/self/cmdline", "rb") as file:
            os.execv(sys.executable, file.read().split(b"\0")[:-1])  # noqa: S606 (its own command)


def set_threads(tf: ModuleType, asked: Computer) -> None:
    """Set TensorFlow's numbers of threads, if they are requested."""
    threading = tf.config.threading
    if asked["intra_op_threads"] is not None:
        threading.set_intra_op_parallelism_threads(asked["intra_op_threads"])
    if asked["inter_op_threads"] is not None:
        threading.set_inter_op_parallelism_threads(asked["inter_op_threads"])


def get_gpu_name(tf: ModuleType, gpu: PhysicalDevice) -> str:
    """Return the driver's name of a GPU."""
    return str(tf.config.experimental.get_device_details(gpu).get("device_name", "unknown"))


def _make_groups(
    tf: ModuleType, np: ModuleType, device: Union[int, str]
) -> List[Tuple[str, str, Dict[str, Operation]]]:
    inputs = Inputs(tf, np)
    onednn, eigen = make_onednn_operations(tf, inputs), make_eigen_operations(tf, np, inputs)
    graph, compiled = make_training(tf, np, inputs, False), make_training(tf, np, inputs, True)
    half = {"matmul_bf16": lambda: compute_matmul_bf16(tf, inputs)}
    if device == "cpu":
        first = [
            ("cpu-onednn", "eager", onednn),
            ("cpu-eigen", "eager", eigen),
            ("cpu-graph", "graph", {"train": graph}),
        ]
        return [*first, ("xla", "xla", {"train_xla": compiled}), ("bf16", "eager", half)]
    name = "gpu-{}".format(device)
    return [
        (name, "eager", {**onednn, **eigen}),
        (name + "-graph", "graph", {"train": graph}),
        (name + "-xla", "xla", {"train_xla": compiled}),
        (name + "-bf16", "eager", half),
    ]


def make_numbers(np: ModuleType, count: int, salt: int) -> NDArray[float32]:
    """Return float32 in [-1, 1), multiples of 2**-23, by splitmix64: integers only."""
    golden, other, first, second = (np.uint64(each) for each in MIX)
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * golden + np.uint64(salt) * other
        z = (z ^ (z >> np.uint64(30))) * first
        z = (z ^ (z >> np.uint64(27))) * second
        z = z ^ (z >> np.uint64(31))
    integers = (z >> np.uint64(40)).astype(np.int64) - (1 << 23)
    return integers.astype(np.float32) * np.float32(2.0**-23)  # type: ignore[no-any-return]


class Inputs:
    """Tensors from `make_numbers`, each computed once."""

    def __init__(self, tf: ModuleType, np: ModuleType) -> None:
        self.tf = tf
        self.np = np
        self.made: Dict[Tuple[Tuple[int, ...], int], Tensor] = {}

    def __call__(self, shape: Tuple[int, ...], salt: int) -> Tensor:
        """Return the tensor of a shape; another `salt` gives other numbers."""
        if (shape, salt) not in self.made:
            count = 1
            for size in shape:
                count *= size
            self.made[shape, salt] = self.tf.constant(
                make_numbers(self.np, count, salt).reshape(shape)
            )
        return self.made[shape, salt]


def make_numpy_operations(np: ModuleType) -> Dict[str, Operation]:
    """Return NumPy's operations: its BLAS, its sums, its SIMD loops, its generators."""
    a, b = (
        make_numbers(np, 127 * 257, 1).reshape(127, 257),
        make_numbers(np, 257 * 65, 2).reshape(257, 65),
    )
    return {
        "np_dot": lambda: a @ b,
        "np_sum": lambda: a.sum(),
        "np_exp": lambda: np.exp(a * np.float32(8)),
        "np_exp64": lambda: np.exp(a.astype("f8") * 8),
        "np_random_legacy": lambda: np.random.RandomState(0).randn(1000),
        "np_random": lambda: np.random.default_rng(0).standard_normal(1000),
    }


def make_double_operations(np: ModuleType) -> Dict[str, Operation]:
    """Return NumPy's functions of float64, and its tanh of float32.

    By the processor, NumPy takes loops of its own or the functions of the C library.
    """
    x = make_numbers(np, 8192, 28).astype("f8")
    positive = np.abs(x) + 0.01
    single = make_numbers(np, 8192, 29) * np.float32(4)
    return {
        "np_sin64": lambda: np.sin(x * 50),
        "np_cos64": lambda: np.cos(x * 50),
        "np_log64": lambda: np.log(positive),
        "np_pow64": lambda: np.power(positive, x * 3),
        "np_tanh64": lambda: np.tanh(x * 3),
        "np_tanh32": lambda: np.tanh(single),
    }


def make_math_operations(np: ModuleType) -> Dict[str, Operation]:
    """Return the functions of the C library, as Python's `math` calls them; those of float32 directly."""
    values = [float(each) for each in make_numbers(np, 8192, 30)]

    def apply(function: Callable[[float], float], scale: float, shift: float = 0.0) -> Operation:
        return lambda: np.array([function(each * scale + shift) for each in values])

    def compute_others() -> Array:
        parts = []
        for name in (
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "asinh",
            "expm1",
            "erf",
            "erfc",
        ):
            function = getattr(math, name)
            parts.append([function(each) for each in values[:2048]])
        for name in ("acosh", "log2", "log10", "log1p"):
            function = getattr(math, name)
            parts.append([function(each + 2) for each in values[:2048]])
        return np.array(parts)  # type: ignore[no-any-return]

    def find_single(name: str) -> Callable[[float], float]:
        # Of the process, not of a file: a preloaded library is what a program would call.
        function = getattr(ctypes.CDLL(None), name)
        function.restype = ctypes.c_float
        function.argtypes = [ctypes.c_float]
        return function  # type: ignore[no-any-return]

    def compute_single(*names: str) -> Array:
        parts = []
        for name in names:
            function = find_single(name)
            parts.append([function(each * 3) for each in values[:4096]])
        return np.array(parts, dtype=np.float32)  # type: ignore[no-any-return]

    return {
        "math_sin": apply(math.sin, 50),
        "math_cos": apply(math.cos, 50),
        "math_exp": apply(math.exp, 8),
        "math_log": apply(math.log, 0.99, 1),
        "math_pow": lambda: np.array([math.pow(abs(each) + 0.01, each * 3) for each in values]),
        "math_tanh": apply(math.tanh, 3),
        "math_lgamma": apply(math.lgamma, 4, 4.5),
        "math_others": compute_others,
        "libm_tanhf": lambda: compute_single("tanhf"),
        "libm_others": lambda: compute_single(
            *("sinf", "cosf", "tanf", "atanf", "expf", "exp2f", "expm1f", "sinhf", "coshf"),
            *("asinhf", "erff", "erfcf", "cbrtf"),
        ),
    }


def make_onednn_operations(tf: ModuleType, x: Inputs) -> Dict[str, Operation]:
    """Return the operations that oneDNN computes on a processor, by the widest instruction set it
    finds.
    """
    raw = tf.raw_ops
    one = [1, 1, 1, 1]

    def compute_depthwise() -> Tensor:
        image, kernel, out = x((2, 20, 20, 12), 15), x((3, 3, 12, 2), 16), x((2, 20, 20, 24), 17)
        a = raw.DepthwiseConv2dNative(input=image, filter=kernel, strides=one, padding="SAME")
        b = raw.DepthwiseConv2dNativeBackpropFilter(
            input=image, filter_sizes=[3, 3, 12, 2], out_backprop=out, strides=one, padding="SAME"
        )
        return tf.concat([tf.reshape(a, [-1]), tf.reshape(b, [-1])], 0)

    def compute_batch_norm() -> Tensor:
        found = raw.FusedBatchNormV3(
            x=x((4, 14, 14, 16), 20),
            scale=x((16,), 21),
            offset=x((16,), 22),
            mean=[],
            variance=[],
            is_training=True,
        )
        return tf.concat([tf.reshape(found[0], [-1]), found[1], found[2]], 0)

    image, kernel, out = x((4, 28, 28, 8), 7), x((3, 3, 8, 16), 8), x((4, 28, 28, 16), 9)
    return {
        "matmul": lambda: tf.matmul(x((127, 257), 1), x((257, 65), 2)),
        "matmul_big": lambda: tf.matmul(x((384, 512), 3), x((512, 320), 4)),
        "conv_forward": lambda: tf.nn.conv2d(image, kernel, 1, "SAME"),
        "conv_input_gradient": lambda: raw.Conv2DBackpropInput(
            input_sizes=[4, 28, 28, 8], filter=kernel, out_backprop=out, strides=one, padding="SAME"
        ),
        "conv_filter_gradient": lambda: raw.Conv2DBackpropFilter(
            input=image, filter_sizes=[3, 3, 8, 16], out_backprop=out, strides=one, padding="SAME"
        ),
        "depthwise": compute_depthwise,
        "batch_norm": compute_batch_norm,
    }


def make_eigen_operations(tf: ModuleType, np: ModuleType, x: Inputs) -> Dict[str, Operation]:
    """Return the operations that TensorFlow's own kernels compute."""
    raw = tf.raw_ops
    rows = tf.constant((np.arange(20000) * 7919 % 113).astype(np.int32))

    def reduce() -> Tensor:
        values = x((1000003,), 11)
        square = tf.reshape(values[:1000000], (1000, 1000))
        sums = [tf.reduce_sum(values), tf.reduce_mean(values * values)]
        return tf.concat([tf.stack(sums), tf.reduce_sum(square, 0), tf.reduce_sum(square, 1)], 0)

    def compute_cross_entropy() -> Tensor:
        labels = tf.one_hot([i * 37 % 101 for i in range(64)], 101)
        loss, slope = raw.SoftmaxCrossEntropyWithLogits(
            features=x((64, 101), 12) * 8, labels=labels
        )
        return tf.concat([loss[:, None], slope], 1)

    def compute_layer_norm() -> Tensor:
        values = x((64, 200), 23)
        mean = tf.reduce_mean(values, 1, keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(values, mean), 1, keepdims=True)
        return (values - mean) * tf.math.rsqrt(variance + 1e-5)

    def draw_stateful() -> Tensor:
        tf.random.set_seed(7)
        shape = (500,)
        return tf.concat(
            [tf.random.uniform(shape), tf.random.normal(shape), tf.random.truncated_normal(shape)],
            0,
        )

    return {
        "bias_gradient": lambda: raw.BiasAddGrad(out_backprop=x((16, 28, 28, 32), 10)),
        "reduce": reduce,
        "cross_entropy": compute_cross_entropy,
        "segment_sum": lambda: tf.math.unsorted_segment_sum(x((20000, 4), 13), rows, 113),
        "scatter_add": lambda: tf.tensor_scatter_nd_add(
            tf.zeros((113, 4)), rows[:, None], x((20000, 4), 14)
        ),
        "resize_gradient": lambda: raw.ResizeBilinearGrad(
            grads=x((2, 37, 41, 3), 18),
            original_image=x((2, 16, 17, 3), 19),
            half_pixel_centers=True,
        ),
        "layer_norm": compute_layer_norm,
        "random_uniform": lambda: tf.random.stateless_uniform((2000,), [1, 2], alg="philox"),
        "random_normal": lambda: tf.random.stateless_normal((4000,), [1, 2], alg="philox"),
        "random_stateful": draw_stateful,
        "transcendental": lambda: compute_transcendental(tf, x((4096,), 24)),
    }


def compute_transcendental(tf: ModuleType, x: Tensor) -> Tensor:
    """Return ten functions of 4096 numbers."""
    positive = tf.abs(x) + 0.1
    return tf.concat(
        [
            *(tf.exp(x * 8), tf.math.log(tf.abs(x) + 1e-3), tf.tanh(x * 4), tf.math.erf(x * 2)),
            *(tf.math.rsqrt(positive), tf.pow(positive, x), tf.sin(x * 9)),
            *(tf.nn.softplus(x * 5), tf.sigmoid(x * 6), tf.nn.gelu(x * 3)),
        ],
        0,
    )


def compute_matmul_bf16(tf: ModuleType, x: Inputs) -> Tensor:
    """Return a product of bfloat16, which oneDNN computes if it is allowed to, else TensorFlow if
    the processor can.
    """
    a, b = tf.cast(x((64, 128), 5), tf.bfloat16), tf.cast(x((128, 48), 6), tf.bfloat16)
    return tf.cast(tf.matmul(a, b), tf.float32)


def make_training(tf: ModuleType, np: ModuleType, x: Inputs, compiled: bool) -> Operation:
    """Return a function that computes ten losses, and the weights after ten steps of Adam on two
    layers, without Keras.
    """
    made: List[Tuple[List[Tensor], List[Layer], Callable[[Tensor], Tensor]]] = []

    def run() -> Tensor:
        if not made:  # at the first call: a second call must not compile it again
            first = [x((20, 32), 26) * 0.25, x((32, 10), 27) * 0.25]
            state = [tuple(tf.Variable(tf.zeros_like(w)) for _ in range(3)) for w in first]
            made.append(
                (
                    first,
                    state,
                    _make_step(
                        tf, x((64, 20), 25), tf.constant(np.arange(64) % 10), state, compiled
                    ),
                )
            )
        first, state, step = made[0]
        for (w, m, v), start in zip(state, first):
            w.assign(start)
            m.assign(tf.zeros_like(start))
            v.assign(tf.zeros_like(start))
        losses = [step(tf.constant([0.9**k, 0.999**k], tf.float32)) for k in range(1, 11)]
        return tf.concat([tf.stack(losses), *(tf.reshape(each[0], [-1]) for each in state)], 0)

    return run


def _make_step(
    tf: ModuleType, images: Tensor, labels: Tensor, state: List[Layer], compiled: bool
) -> Callable[[Tensor], Tensor]:
    """Return a step; `state` has the weights of each layer, and Adam's two averages of them."""

    @tf.function(jit_compile=compiled)  # type: ignore[untyped-decorator]
    def run_step(powers: Tensor) -> Tensor:
        weights = [each[0] for each in state]
        with tf.GradientTape() as tape:
            logits = tf.matmul(tf.nn.relu(tf.matmul(images, weights[0])), weights[1])
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            )
        for (w, m, v), gradient in zip(state, tape.gradient(loss, weights)):
            tf.raw_ops.ResourceApplyAdam(
                var=w.handle,
                m=m.handle,
                v=v.handle,
                beta1_power=powers[0],
                beta2_power=powers[1],
                lr=0.01,
                beta1=0.9,
                beta2=0.999,
                epsilon=1e-7,
                grad=gradient,
            )
        return loss

    return run_step  # type: ignore[no-any-return]


def _compute_all(
    np: ModuleType, operations: Dict[str, Operation], repeats: int
) -> Dict[str, object]:
    return {name: _compute_result(np, operation, repeats) for name, operation in operations.items()}


def _compute_result(np: ModuleType, operation: Operation, repeats: int) -> Dict[str, object]:
    """Return digest, type, shape and sample of an operation's result, or that it is unstable, or
    why it failed.
    """
    try:
        arrays = [_read_array(np, operation()) for _ in range(repeats)]
    except Exception as error:
        return {
            "failed": type(error).__name__
        }  # and not the message, which may contain the name of a user's folder
    shape = list(arrays[0].shape)
    if len({array.tobytes() for array in arrays}) > 1:
        return {"unstable": True, "dtype": arrays[0].dtype.str, "shape": shape}
    return {
        "sha256": compute_digest(arrays[0]),
        "dtype": arrays[0].dtype.str,
        "shape": shape,
        "sample": take_sample(arrays[0]),
    }


def _read_array(np: ModuleType, value: object) -> Array:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value, order="C")  # type: ignore[no-any-return]


def compute_digest(*arrays: Array) -> str:
    """Return the SHA-256 of the types, shapes and bytes of arrays."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(
            "{}{}".format(array.dtype.str, list(array.shape)).encode("ascii") + array.tobytes()
        )
    return found.hexdigest()


def take_sample(array: Array, most: int = SAMPLES) -> str:
    """Return up to `most` values, evenly spaced and including the first and the last, as
    hexadecimal numbers.
    """
    flat = array.reshape(-1)
    count = min(len(flat), most)
    places = [k * (len(flat) - 1) // max(count - 1, 1) for k in range(count)]
    return " ".join(_format_hex(float(flat[place])) for place in places)


def _format_hex(value: float) -> str:
    text = value.hex()
    digits, p, exponent = text.partition("p")
    return digits.rstrip("0").rstrip(".") + p + exponent if p else text


def describe_error(error: BaseException) -> str:
    text = "{}: {}".format(type(error).__name__, str(error).strip().partition("\n")[0])
    return text.encode("ascii", "replace").decode("ascii")[:200]


if __name__ == "__main__":
    main()
