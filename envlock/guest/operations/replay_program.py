"""Compute recorded operations again, each on its own, with inputs from a counter: a program that
prints one line for each.

It runs in the interpreter of the examined environment. Its operations can come from anyone's
lockfile, so it runs only operations of replay.toml whose result sizes TensorFlow can compute
beforehand, and limits those sizes.
"""

from __future__ import annotations

import inspect
import json
import os
import resource
import sys
import time
from importlib import import_module

from envlock.guest import battery
from envlock.guest.operations.inputs import count_all_bytes, list_arguments, make_arrays
from envlock.guest.operations.inventory import LISTED, MOST_BYTES
from envlock.guest.tracing import private, undefined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable, Dict, List, Sequence, Set, Tuple, Union

    from numpy import generic
    from numpy.typing import NDArray
    from tensorflow import Tensor
    from tensorflow.core.framework.op_def_pb2 import OpDef

    from envlock.guest.operations.inventory import Attribute, Input, Operation

    Array = NDArray[generic]
    Results = Union[Tensor, Sequence["Results"]]
    Call = Callable[[List[Tensor]], Results]

    class Asked(battery.Computer):
        file: str
        mark: str
        skip: List[str]
        seconds: float


MOST_MEMORY = 4 << 30
"""Bytes: inputs and results of 512 MB each, and what a kernel and its threads need in addition."""
MOST_OUTPUTS = 10_000
"""Outputs of one operation; TensorFlow creates them all to compute their sizes, and `Unpack`
accepts 2**31.
"""
# A digest says whether results differ; these say by how much, of up to 500 operations in one lockfile.
SAMPLES = 8
DEVICES = {"cpu": "/CPU:0", "gpu": "/GPU:0"}


class NotReplayed(Exception):  # noqa: N818 (it says why)
    """An operation is not computed; the message is the reason, as a word."""


def main() -> None:
    """Compute the operations in the file that the JSON in `sys.argv[1]` names, and print each
    result as soon as it is known.

    file: {name: operation}; mark; device: `cpu` or `gpu`; skip: names; seconds: after which no
    operation begins; intra_op_threads, inter_op_threads, determinism: as in the battery.
    """
    asked: Asked = json.loads(sys.argv[1])
    battery.set_variables(asked, asked["device"] == "cpu")
    # Output of an import goes to stderr, so that it cannot mix with the answer.
    answer_to = os.dup(1)
    os.dup2(2, 1)
    sys.argv[1:] = []

    def say(answer: Dict[str, object]) -> None:
        os.write(answer_to, (asked["mark"] + json.dumps(answer) + "\n").encode("ascii"))

    try:
        _run(asked, say)
    except BaseException as error:
        say({"failed": type(error).__name__})
    os._exit(0)


def _run(asked: Asked, say: Callable[[Dict[str, object]], None]) -> None:
    with open(asked["file"], encoding="utf-8") as file:
        operations: Dict[str, Operation] = json.load(file)
    tf, np = import_module("tensorflow"), import_module("numpy")
    battery.set_threads(tf, asked)
    gpus = tf.config.list_physical_devices("GPU") if asked["device"] == "gpu" else []
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if gpus:
        device = "gpu"
        say({"device": battery.get_gpu_name(tf, gpus[0])})
    else:
        device = "cpu"
        say({"device": "cpu"})
        # Not with a GPU: CUDA reserves more address space than any machine has memory.
        _set_memory_limit()
    end = time.monotonic() + asked["seconds"]
    with tf.device(DEVICES[device]):
        for name, operation in operations.items():
            if name in asked["skip"]:
                continue
            if time.monotonic() > end:
                say({"name": name, "left_out": "time"})
                continue
            say({"begin": name})
            say({"name": name, **_compute(tf, np, operation)})
    say({"done": True})


def _set_memory_limit() -> None:
    """Let this process grow by at most `MOST_MEMORY`: some kernels need tables besides their inputs
    and results.
    """
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    wanted = now + MOST_MEMORY
    # -1 (RLIM_INFINITY) means that there is no limit.
    if hard >= 0:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def _compute(tf: ModuleType, np: ModuleType, operation: Operation) -> Dict[str, object]:
    """Return the result of an operation, computed twice, or the reason why there is no result."""
    try:
        call, inputs = _prepare(tf, np, operation)
        first = _describe_result(np, _select_defined(call(inputs), operation))
        second = _describe_result(np, _select_defined(call(inputs), operation))
    except NotReplayed as reason:
        return {"left_out": str(reason)}
    except Exception:
        return {"left_out": "failed"}
    if first != second:
        return {"left_out": "unstable"}
    return {"result": first}


def _prepare(tf: ModuleType, np: ModuleType, operation: Operation) -> Tuple[Call, List[Tensor]]:
    """Return a function that computes an operation, and its inputs, after checking that it is
    harmless and of limited size.

    Raises:
        NotReplayed: it is not.
    """
    definition = private.find_definition(operation["type"])
    if operation["type"] not in LISTED or definition is None or definition.is_stateful:
        raise NotReplayed("unlisted")
    call = _make_call(tf, definition, operation)
    for argument in definition.output_arg:
        count = operation["attributes"].get(argument.number_attr, 1)
        if argument.number_attr and count > MOST_OUTPUTS:  # type: ignore[operator]
            raise NotReplayed("large")
    if count_all_bytes(operation["inputs"]) > MOST_BYTES:
        raise NotReplayed("large")
    _check_sizes(tf, call, operation)
    arrays = make_arrays(np, tf, operation, list_arguments(definition, operation))
    return call, [tf.constant(array) for array in arrays]


def _make_call(tf: ModuleType, definition: OpDef, operation: Operation) -> Call:
    """Return a function that calls an operation with its inputs and attributes.

    Raises:
        NotReplayed: this TensorFlow declares it in another way.
    """
    values = operation["attributes"]
    kinds = {attribute.name: attribute.type for attribute in definition.attr}
    inferred = {argument.number_attr for argument in definition.input_arg}
    if not set(values) <= set(kinds):
        raise NotReplayed("unlisted")
    function = getattr(tf.raw_ops, operation["type"])
    keywords = _match_keywords(definition, function)
    attributes: Dict[str, Attribute] = {}
    for name, value in values.items():
        if name in inferred:
            continue
        attributes[keywords[name]] = tf.as_dtype(value) if kinds[name] == "type" else value

    def call(inputs: List[Tensor]) -> Results:
        rest = list(inputs)
        arguments: Dict[str, object] = {}
        for argument in definition.input_arg:
            keyword = keywords[argument.name]
            if argument.number_attr:
                count = int(values[argument.number_attr])  # type: ignore[arg-type]
                arguments[keyword], rest = rest[:count], rest[count:]
            else:
                arguments[keyword] = rest.pop(0)
        return function(**arguments, **attributes)

    return call


def _match_keywords(definition: OpDef, function: Callable[..., object]) -> Dict[str, str]:
    """Return Python's name of each argument and attribute: `reduction_indices` of a sum is `axis`
    there.

    Raises:
        NotReplayed: more than one has a different name.
    """
    names = [declared.name for declared in [*definition.input_arg, *definition.attr]]
    inferred: Set[str] = set()
    for argument in definition.input_arg:
        inferred.update((argument.type_attr, argument.number_attr, argument.type_list_attr))
    keywords = [keyword for keyword in inspect.signature(function).parameters if keyword != "name"]
    unmatched = [name for name in names if name not in keywords and name not in inferred]
    unused = [keyword for keyword in keywords if keyword not in names]
    if len(unmatched) > 1 or len(unmatched) != len(unused):
        raise NotReplayed("unlisted")
    matches = {name: name for name in names}
    matches.update(zip(unmatched, unused))
    return matches


def _check_sizes(tf: ModuleType, call: Call, operation: Operation) -> None:
    """Compute the sizes of the results in a graph that is never run.

    Raises:
        NotReplayed: they are too large, or depend on more than shapes.
    """
    graph = tf.Graph()
    with graph.as_default():
        results = call([_make_symbol(tf, described) for described in operation["inputs"]])
    total = 0
    for tensor in _select_defined(results, operation):
        if not tensor.shape.is_fully_defined():
            raise NotReplayed("shape")
        total += tensor.shape.num_elements() * tensor.dtype.size
    if total > MOST_BYTES:
        raise NotReplayed("large")


def _make_symbol(tf: ModuleType, described: Input) -> Tensor:
    dtype = tf.as_dtype(described["dtype"])
    if "values" in described:
        return tf.constant(described["values"], dtype, described["shape"])
    return tf.compat.v1.placeholder(dtype, described["shape"])


def _flatten(results: Results) -> List[Tensor]:
    if not isinstance(results, (list, tuple)):
        return [results]
    tensors = []
    for result in results:
        tensors += _flatten(result)
    return tensors


def _select_defined(results: Results, operation: Operation) -> List[Tensor]:
    """Return the results that have a meaning."""
    left_out = undefined.find_undefined(operation["type"], operation["attributes"].get)
    tensors = enumerate(_flatten(results))
    return [tensor for number, tensor in tensors if number not in left_out]


def _describe_result(np: ModuleType, results: List[Tensor]) -> Dict[str, object]:
    """Return the digest of all results, and a sample of their numbers, in the form of the battery.

    Raises:
        NotReplayed: there is not a single number.
    """
    arrays = [np.asarray(tensor.numpy(), order="C") for tensor in results]
    dtype, kind = (np.float64, "<f8") if any(map(_is_wide, arrays)) else (np.float32, "<f4")
    numbers = np.concatenate([_split_complex(np, array).astype(dtype) for array in arrays])
    if not numbers.size:
        raise NotReplayed("empty")
    return {
        "dtype": kind,
        "shape": [int(numbers.size)],
        "sha256": battery.compute_digest(*arrays),
        "sample": battery.take_sample(numbers, SAMPLES),
    }


def _is_wide(array: Array) -> bool:
    """Return whether the numbers of an array have more bits than a float32 can show."""
    if array.dtype.kind == "c":
        return array.dtype.name == "complex128"
    return array.dtype.itemsize > 4


def _split_complex(np: ModuleType, array: Array) -> Array:
    """Return the numbers in a one-dimensional array, a complex one as two."""
    numbers: Array = np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array
    return numbers.reshape(-1)
