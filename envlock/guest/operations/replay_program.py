"""The program that computes noted operations again, each alone, on inputs made of a counter; one line each.

It runs in the interpreter of the environment that is examined. What it is given can come from anyone's lockfile, so
only operations of replay.toml are run, whose results' sizes TensorFlow can tell beforehand, and are bounded.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
from importlib import import_module

from envlock.guest import battery
from envlock.guest.operations import making
from envlock.guest.operations.inventory import LISTED, MOST_BYTES
from envlock.guest.tracing import private, undefined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List

    Noted = Dict[str, Any]

MOST_MEMORY = 4 << 30
"""Bytes: inputs and results of 512 MB each, what a kernel needs besides, and what its threads reserve."""
MOST_OUTPUTS = 10_000
"""Of one operation; TensorFlow makes them all in order to tell their sizes, and `Unpack` takes 2**31."""
REPEATS = 2
SAMPLES = 8
DEVICES = {"cpu": "/CPU:0", "gpu": "/GPU:0"}


class NotReplayed(Exception):  # noqa: N818 (it says why)
    """An operation is not computed; the message is the reason, a word."""


def main() -> None:
    """Compute what the file named in the JSON of `sys.argv[1]` lists, and print each result as soon as it is there.

    file: {name: operation}; mark; device: `cpu` or `gpu`; skip: names; seconds: after which no operation begins;
    intra_op_threads, inter_op_threads, determinism: as the battery has them.
    """
    asked = json.loads(sys.argv[1])
    battery.set_variables(asked, asked["device"] == "cpu")
    answer_to = os.dup(1)
    os.dup2(2, 1)
    sys.argv[1:] = []

    def say(answer: Dict[str, Any]) -> None:
        os.write(answer_to, (asked["mark"] + json.dumps(answer) + "\n").encode("ascii"))

    try:
        _run(asked, say)
    except BaseException as error:
        say({"failed": type(error).__name__})
    os._exit(0)


def _run(asked: Dict[str, Any], say: Callable[[Dict[str, Any]], None]) -> None:
    with open(asked["file"], encoding="utf-8") as file:
        operations = json.load(file)
    tf, np = import_module("tensorflow"), import_module("numpy")
    battery.set_threads(tf, asked)
    gpus = tf.config.list_physical_devices("GPU") if asked["device"] == "gpu" else []
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    say({"device": battery.get_gpu_name(tf, gpus[0]) if gpus else "cpu"})
    if not gpus:  # CUDA reserves more address space than any machine has memory
        _limit_memory()
    end = time.monotonic() + asked["seconds"]
    with tf.device(DEVICES["gpu" if gpus else "cpu"]):
        for name, noted in operations.items():
            if name in asked["skip"]:
                continue
            if time.monotonic() > end:
                say({"name": name, "left_out": "time"})
                continue
            say({"begin": name})
            say({"name": name, **_computed(tf, np, noted)})
    say({"done": True})


def _limit_memory() -> None:
    """Let this process grow by `MOST_MEMORY` at most: some kernels keep tables beside their inputs and results."""
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    wanted = now + MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard < 0 else min(wanted, hard), hard))


def _computed(tf: Any, np: Any, noted: Noted) -> Noted:
    """Return the result of an operation, or the reason why there is none."""
    try:
        call, inputs = _prepared(tf, np, noted)
        results = [_result(np, _defined(call(inputs), noted)) for _ in range(REPEATS)]
    except NotReplayed as reason:
        return {"left_out": str(reason)}
    except Exception:
        return {"left_out": "failed"}
    return {"left_out": "unstable"} if results[0] != results[1] else {"result": results[0]}


def _prepared(tf: Any, np: Any, noted: Noted) -> Any:
    """Return what computes an operation, and its inputs, once it is known to be harmless and its results' sizes are.

    Raises:
        NotReplayed: it is not.
    """
    definition = private.definition(noted["type"])
    if noted["type"] not in LISTED or definition is None or definition.is_stateful:
        raise NotReplayed("unlisted")
    call = _call(tf, definition, noted)
    counts = [
        noted["attributes"].get(each.number_attr, 1)
        for each in definition.output_arg
        if each.number_attr
    ]
    if making.all_bytes(noted["inputs"]) > MOST_BYTES or any(
        count > MOST_OUTPUTS for count in counts
    ):
        raise NotReplayed("large")
    _bound(tf, call, noted)
    names = making.names(definition, noted)
    return call, [tf.constant(each) for each in making.arrays(np, tf, noted, names)]


def _call(tf: Any, definition: Any, noted: Noted) -> Callable[[List[Any]], Any]:
    kinds = {each.name: each.type for each in definition.attr}
    told = {each.number_attr for each in definition.input_arg}
    given = noted["attributes"]
    if not set(given) <= set(kinds):
        raise NotReplayed("unlisted")
    function = getattr(tf.raw_ops, noted["type"])
    called = _spelling(definition, function)
    attributes = {
        called[name]: tf.as_dtype(value) if kinds[name] == "type" else value
        for name, value in given.items()
        if name not in told
    }

    def call(inputs: List[Any]) -> Any:
        rest, arguments = list(inputs), {}
        for each in definition.input_arg:
            if each.number_attr:
                count = given[each.number_attr]
                arguments[called[each.name]], rest = rest[:count], rest[count:]
            else:
                arguments[called[each.name]] = rest.pop(0)
        return function(**arguments, **attributes)

    return call


def _spelling(definition: Any, function: Any) -> Dict[str, str]:
    """Return how Python calls each argument and attribute: `reduction_indices` of a sum is `axis` there.

    Raises:
        NotReplayed: more than one has another name.
    """
    names = [each.name for each in [*definition.input_arg, *definition.attr]]
    here = [name for name in inspect.signature(function).parameters if name != "name"]
    inferred = {
        each
        for one in definition.input_arg
        for each in (one.type_attr, one.number_attr, one.type_list_attr)
    }
    others = [name for name in names if name not in here and name not in inferred]
    left = [name for name in here if name not in names]
    if len(others) > 1 or len(others) != len(left):
        raise NotReplayed("unlisted")
    return {**{name: name for name in names}, **dict(zip(others, left))}


def _bound(tf: Any, call: Callable[[List[Any]], Any], noted: Noted) -> None:
    """Let TensorFlow tell the sizes of the results, in a graph that is never run.

    Raises:
        NotReplayed: they are too large, or depend on more than shapes.
    """
    graph = tf.Graph()
    with graph.as_default():
        results = call([_symbol(tf, each) for each in noted["inputs"]])
    total = 0
    for each in _defined(results, noted):
        if not each.shape.is_fully_defined():
            raise NotReplayed("shape")
        total += each.shape.num_elements() * each.dtype.size
    if total > MOST_BYTES:
        raise NotReplayed("large")


def _symbol(tf: Any, noted: Noted) -> Any:
    dtype = tf.as_dtype(noted["dtype"])
    if "values" in noted:
        return tf.constant(noted["values"], dtype, noted["shape"])
    return tf.compat.v1.placeholder(dtype, noted["shape"])


def _flat(results: Any) -> List[Any]:
    if not isinstance(results, (list, tuple)):
        return [results]
    return [tensor for each in results for tensor in _flat(each)]


def _defined(results: Any, noted: Noted) -> List[Any]:
    """Return the results that have a meaning."""
    left_out = undefined.outputs(noted["type"], noted["attributes"].get)
    return [each for place, each in enumerate(_flat(results)) if place not in left_out]


def _result(np: Any, results: List[Any]) -> Noted:
    """Return the digest of all results, and a sample of their numbers, as the battery has them.

    Raises:
        NotReplayed: there is not a single number.
    """
    arrays = [np.asarray(each.numpy(), order="C") for each in results]
    wide = any(
        (each.dtype.itemsize > 4 and each.dtype.kind != "c") or each.dtype.name == "complex128"
        for each in arrays
    )
    numbers = [_real(np, each).astype(np.float64 if wide else np.float32) for each in arrays]
    joined = np.concatenate(numbers)
    if not joined.size:
        raise NotReplayed("empty")
    digest = battery.digest(*arrays)
    kind = "<f8" if wide else "<f4"
    return {
        "dtype": kind,
        "shape": [int(joined.size)],
        "sha256": digest,
        "sample": battery.take_sample(joined, SAMPLES),
    }


def _real(np: Any, array: Any) -> Any:
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], -1).reshape(-1)
    return array.reshape(-1)
