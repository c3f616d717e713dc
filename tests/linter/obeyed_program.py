"""Runs programs in children of one process with TensorFlow, and prints a digest of what each has made.

    python obeyed_program.py FOLDER forwards|backwards < {"name": "code", ...}

Folders list their files in the order that is asked for, as file systems do.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import config

TEXT = "the quick brown fox jumps over a lazy dog"


class Listed(list[Any]):
    """What `os.scandir` gives, in another order."""

    def __enter__(self) -> Listed:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def list_backwards() -> None:
    """Let folders list their files the other way round."""
    scan, names = os.scandir, os.listdir
    os.scandir = lambda path=".": Listed(sorted(scan(path), key=lambda each: each.name, reverse=True))  # type: ignore[assignment]
    os.listdir = lambda path=".": sorted(names(path), reverse=True)  # type: ignore[assignment]


def load(name: str) -> int:
    """Return a number, later or sooner than asked for before it."""
    time.sleep(os.urandom(1)[0] / 2000)
    return len(name)


def slow(value: Any) -> Any:
    """Return what is given after a time that nothing decides."""
    time.sleep(os.urandom(1)[0] / 4000)
    return value


def describe(value: Any) -> object:
    """Return what tells one result from another."""
    if isinstance(value, tf.data.Dataset):
        return [describe(each) for each in value]
    if isinstance(value, tf.keras.Model):
        if not value.built:
            value(np.ones([1, 2], "float32"))
        return [describe(each) for each in value.get_weights()]
    if isinstance(value, tf.random.Generator):
        return describe(value.uniform([3]))
    if isinstance(value, np.random.Generator):
        return value.random(3).tolist()
    if isinstance(value, tf.Tensor | tf.Variable | np.ndarray | np.generic):
        return np.asarray(value).tolist()
    return value if isinstance(value, int | float | str | list | dict) else None


def run(code: str) -> str:
    """Return a digest of what a program leaves: its values, its files, and the switch; or its error."""
    for name in "abcdefgh":
        np.save(name, np.full(2, ord(name)))
    x, y = np.ones([4, 2], "float32"), np.ones([4, 1], "float32")
    names = [letter * (at + 1) for at, letter in enumerate("abcdefgh")]
    given = {"x": x, "y": y, "text": TEXT, "names": names, "load": load, "slow": slow, "__name__": "__main__"}
    scope = dict(given)
    try:
        exec(compile(code, "program.py", "exec"), scope)
    except Exception as error:
        return type(error).__name__
    left = {name: describe(value) for name, value in scope.items() if name not in given and name != "__builtins__"}
    files = {each.name: np.load(each, allow_pickle=True).tolist() for each in sorted(Path().glob("*.npy"))}
    state = json.dumps([left, files], sort_keys=True, default=str)
    return f"{hashlib.sha256(state.encode()).hexdigest()[:16]} {config.is_op_determinism_enabled()}"


def main() -> None:
    """Run each program in a child, as what one seeds must not reach another."""
    if sys.argv[2] == "backwards":
        list_backwards()
    found = {}
    for name, code in json.load(sys.stdin).items():
        folder = Path(sys.argv[1]) / name.replace(" ", "_")
        folder.mkdir(parents=True)
        end, start = os.pipe()
        child = os.fork()
        if not child:
            os.chdir(folder)
            os.write(start, run(code).encode())
            os._exit(0)
        os.close(start)
        with os.fdopen(end) as stream:
            found[name] = stream.read()
        os.waitpid(child, 0)
    print("answer", json.dumps(found))


if __name__ == "__main__":
    main()
