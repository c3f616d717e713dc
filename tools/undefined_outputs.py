"""Find outputs that TensorFlow's kernels leave unwritten, for replay.toml: python tools/undefined_outputs.py [TYPE...]

Run it with an interpreter that has TensorFlow. It calls each stateless operation on inputs of many shapes, with each
value of each attribute that has few, in two child processes whose fresh memory is filled with different bytes
(MALLOC_PERTURB_; https://man7.org/linux/man-pages/man3/mallopt.3.html, M_PERTURB). An output that holds those bytes in
both was not written.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import threading
from collections import defaultdict
from typing import Any

POISON = ("85", "170")  # allocated memory holds the complement, freed memory the byte: each is the other's complement
TRIES, ENOUGH = 240, 4  # calls of an operation with one set of attributes, and how many of them must succeed
SHAPES: tuple[tuple[int, ...], ...] = ((4,), (), (4, 4), (1, 8, 8, 4), (2, 4, 4), (0,), (2,), (1, 4, 8, 8, 4))
TYPES = ("float32", "int32", "int64", "float64", "complex64", "half", "bool", "uint8")
LISTS = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "dilations": [1, 1, 1, 1]}
SKIPPED = ("_", "Abort", "Tpu", "TPU", "Xla", "Collective", "Nccl", "Recv", "Send", "Ref", "Nondeterministic")
SECONDS = 20.0  # of one operation


def main() -> None:
    """Print a row for each operation with an output that was found unwritten."""
    first, second = (_results(poison) for poison in POISON)
    rows: dict[tuple[str, str], list[tuple[dict[str, Any], bool]]] = defaultdict(list)
    for key, outputs in first.items():
        kind, attributes, _ = json.loads(key)
        for name, byte in outputs.items():
            unwritten = byte is not None and second.get(key, {}).get(name) not in (None, byte)
            rows[kind, name].append((attributes, unwritten))
    for (kind, name), calls in sorted(rows.items()):
        bad = [attributes for attributes, unwritten in calls if unwritten]
        if bad:
            fine = [attributes for attributes, unwritten in calls if not unwritten]
            print(f"{kind}.{name}: {len(bad)} of {len(calls)} calls; when {_when(bad, fine)}", flush=True)


def _when(bad: list[dict[str, Any]], fine: list[dict[str, Any]]) -> str:
    """Return the attribute with which an output is never written; what has none depends on the inputs."""
    if not fine:
        return "always"
    for name, value in bad[0].items():
        if all(each[name] == value for each in bad) and all(each[name] != value for each in fine):
            return f"{name} = {json.dumps(value)}"
    return f"it depends, e.g. {json.dumps(bad[0])}"


def _results(poison: str) -> dict[str, dict[str, int | None]]:
    """Return what children say of every call; an operation that ends its process is left out, and another goes on."""
    found: dict[str, dict[str, int | None]] = {}
    begun: list[str] = []
    tunables = "glibc.malloc.tcache_count=0"
    environ = {**os.environ, "MALLOC_PERTURB_": poison, "GLIBC_TUNABLES": tunables, "TF_CPP_MIN_LOG_LEVEL": "3"}
    environ["CUDA_VISIBLE_DEVICES"] = ""
    while True:
        command = [sys.executable, __file__, "child", *sys.argv[1:]]
        with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-3, env=environ, text=True) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(json.dumps(begun))
            child.stdin.close()
            done = False
            for line in child.stdout:
                match json.loads(line):
                    case str(kind):
                        begun.append(kind)
                    case [str(key), dict(outputs)]:
                        found[key] = outputs
                    case _:
                        done = True
        if done:
            return found
        print(f"# {begun[-1]} ended its process", file=sys.stderr)


def child() -> None:
    """Call what has not been called."""
    import tensorflow as tf
    from tensorflow.python.framework import op_def_registry

    done = frozenset(json.load(sys.stdin))
    for kind in sorted(dir(tf.raw_ops)):
        definition = op_def_registry.get(kind)
        if kind in done or definition is None or not _is_fit(definition) or (sys.argv[2:] and kind not in sys.argv[2:]):
            continue
        print(json.dumps(kind), flush=True)
        watch = threading.Timer(SECONDS, os._exit, (3,))
        watch.daemon = True
        watch.start()
        _call(tf, definition)
        watch.cancel()
    print("null", flush=True)


def _is_fit(definition: Any) -> bool:
    if definition.is_stateful or not definition.output_arg or definition.name.startswith(SKIPPED):
        return False
    return not any(each.type in ("func", "list(func)", "tensor") for each in definition.attr)


def _call(tf: Any, definition: Any) -> None:
    choose = random.Random(definition.name)
    counts = {each.number_attr for each in definition.input_arg}
    types = {each.type_attr for each in definition.input_arg}
    free = [each for each in definition.attr if each.name not in counts]
    sets = list(itertools.product(*([(each.name, value) for value in _values(tf, each)] for each in free)))
    for chosen in choose.sample(sets, min(len(sets), 24)):
        attributes, good = dict(chosen), 0
        shapes = list(itertools.islice(itertools.product(SHAPES, repeat=len(definition.input_arg)), 200_000))
        for shape in choose.sample(shapes, min(len(shapes), TRIES)):
            try:
                inputs = {
                    each.name: _input(tf, each, attributes, one)
                    for each, one in zip(definition.input_arg, shape, strict=True)
                }
                given = {name: value for name, value in attributes.items() if name not in types and value is not None}
                results = getattr(tf.raw_ops, definition.name)(**inputs, **given)
                named = results._asdict() if hasattr(results, "_asdict") else {definition.output_arg[0].name: results}
                outputs = {name: _poison(each) for name, each in named.items() if hasattr(each, "numpy")}
            except Exception:  # an input or a type that it does not take
                continue
            print(json.dumps([json.dumps([definition.name, attributes, shape]), outputs]), flush=True)
            good += 1
            if good == ENOUGH:
                break


def _values(tf: Any, attribute: Any) -> list[Any]:
    """Return values for an attribute: of few that it can have, all."""
    allowed = attribute.allowed_values.list
    if attribute.type == "bool":
        return [False, True]
    if attribute.type == "type":
        names = [tf.as_dtype(each).name for each in allowed.type] or list(TYPES)
        return [each for each in TYPES if each.replace("half", "float16") in names][:2] or names[:1]
    if attribute.type == "string" and allowed.s:
        return [each.decode() for each in allowed.s][:3]
    if attribute.type == "int":
        return [attribute.default_value.i] if attribute.HasField("default_value") else [2]
    plain = {"float": 0.5, "string": "", "shape": [4], "list(int)": LISTS.get(attribute.name, [1])}
    return [plain.get(attribute.type)] if not attribute.HasField("default_value") else [None]


def _input(tf: Any, argument: Any, attributes: dict[str, Any], shape: tuple[int, ...]) -> Any:
    dtype = tf.as_dtype(argument.type or attributes.get(argument.type_attr) or "float32")
    count = 1
    for each in shape:
        count *= each
    values = [(number * 7 % 5 + 1) / 2 if dtype.is_floating else number % 3 for number in range(count)]
    made = tf.cast(tf.constant(values, tf.float32, shape), dtype)
    return [made, made] if argument.number_attr else made


def _poison(tensor: Any) -> int | None:
    """Return the byte that some element wholly consists of, if it is one of those that memory was filled with."""
    array = tensor.numpy()
    if array.dtype.hasobject or array.dtype.itemsize < 4:
        return None
    for byte in map(int, POISON):
        if (array.reshape(-1).view("u1").reshape(-1, array.dtype.itemsize) == byte).all(axis=1).any():
            return byte
    return None


if __name__ == "__main__":
    child() if sys.argv[1:2] == ["child"] else main()
