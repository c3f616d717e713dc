"""A program of its own: prints whether TensorFlow's graphs, XLA and numpy give the same fingerprints."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import tensorflow as tf

from envlock.guest.tracing.in_graph import build_fingerprint, hash_array, pack_words

TYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int32", "int64", "uint8", "int8")
SHAPES = ((), (0,), (7,), (4, 6), (3, 1001), (4096,), (5, 5, 1003), (8192, 3))
UNKNOWN_TO_XLA = ("complex64", "complex128")  # as integers
COMPILED = ((), (3, 1001), (8192, 3))


def main() -> None:
    """Print the cases in which they are not the same, and what small changes leave equal."""
    source = np.random.RandomState(0)
    wrong = []
    for name in TYPES:
        for shape in SHAPES:
            tensor = tf.cast(tf.constant(source.randn(*shape) * 50), name)
            found = {hash_array(tensor.numpy())}
            with_xla = name not in UNKNOWN_TO_XLA and shape in COMPILED
            for compiled in (False, True) if with_xla else (False,):
                graph = tf.function(lambda x: build_fingerprint(tf, pack_words(tf, x)), jit_compile=compiled)
                found.add(int(graph(tensor)[0]) % 2**64)
            wrong += [] if len(found) == 1 and 0 not in found else [f"{name}{shape}: {found}"]
    array = source.randn(10_001).astype("float32")
    changed = {hash_array(array)}
    for number in range(0, 10_000, 7):
        exchanged, signs, nearest = array.copy(), array.copy(), array.copy()
        exchanged[[number, number + 1]] = array[[number + 1, number]]
        signs[[number, (number * 13) % 10_001]] *= -1
        nearest[number] = np.nextafter(array[number], np.float32(np.inf))
        changed |= {hash_array(exchanged), hash_array(signs), hash_array(nearest)}
    print(json.dumps({"wrong": wrong, "changed": len(changed), "alike": alike()}))


def alike() -> list[str]:
    """Return arrays of the same shape that are different, of one pattern, and have one fingerprint."""
    found = []
    for name in ("float16", "float32", "float64"):
        for size in (2, 3, 4, 8, 64, 96, 4096, 8192, 12_288):
            arrays: list[Any] = [
                np.full(size, value, name) for value in (0, 1, -1, 2, -2, 0.5, -0.5, 3, 1024, -1024, 0.1, -0.1)
            ]
            arrays += [np.where(np.arange(size) // 2**n % 2 == 0, 1, -1).astype(name) for n in range(13) if 2**n < size]
            arrays += [-array for array in arrays[12:]]
            arrays += [np.eye(1, size, place, dtype=name) for place in range(0, size, max(size // 64, 1))]
            arrays += [array * 2 for array in arrays[12:]] + [
                np.arange(size).astype(name),
                -np.arange(size).astype(name),
            ]
            different = {array.tobytes(): hash_array(array) for array in arrays}
            if len(set(different.values())) < len(different):
                found.append(f"{name}[{size}]")
    return found


if __name__ == "__main__":
    main()
