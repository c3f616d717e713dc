"""Find outputs that TensorFlow's kernels leave unwritten, for replay.toml.

Run it with an interpreter that has TensorFlow: python tools/undefined_outputs.py FILE [OPERATION...]. It calls each
stateless operation on inputs of many shapes, with each
value of each attribute that has few, in two child processes whose fresh memory is filled with different bytes
(MALLOC_PERTURB_; https://man7.org/linux/man-pages/man3/mallopt.3.html, M_PERTURB). An output that holds those bytes in
both was not written.

FILE gets a line of JSON for each operation at once, so a scan that was stopped goes on where it ended. An operation
that ends its process (a division by zero in a kernel) or takes too long goes on in a new one, with other inputs.
"""

from __future__ import annotations

import inspect
import itertools
import json
import os
import queue
import random
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

POISON = (
    "85",
    "170",
)  # allocated memory holds the complement, freed memory the byte: each is the other's complement
TRIES, ENOUGH = (
    240,
    4,
)  # calls of an operation with one set of attributes, and how many of them must succeed
SHAPES: tuple[tuple[int, ...], ...] = (
    (4,),
    (),
    (4, 4),
    (1, 8, 8, 4),
    (2, 4, 4),
    (0,),
    (2,),
    (1, 4, 8, 8, 4),
)
TYPES = ("float32", "int32", "int64", "float64", "complex64", "half", "bool", "uint8")
LISTS = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "dilations": [1, 1, 1, 1]}
SKIPPED = (
    "_",
    "Abort",
    "Tpu",
    "TPU",
    "Xla",
    "Collective",
    "Nccl",
    "Recv",
    "Send",
    "Ref",
    "Nondeterministic",
)
ENOUGH_SECONDS = 6.0  # after them, an operation is not called again
LATE_SECONDS = 40.0  # after them, a call is not waited for
START_SECONDS = 300.0  # for `import tensorflow` on a busy machine
ATTEMPTS = 5  # processes that an operation may end

Calls = dict[str, dict[str, "int | None"]]
"""A call as JSON -> each of its outputs, and the byte that fills one of its elements."""


def main() -> None:
    """Go on with a scan, and print a row for each operation with an output that was found unwritten."""
    file, wanted = Path(sys.argv[1]), sys.argv[2:]
    known = (
        {row["operation"]: row for row in map(json.loads, file.read_text().splitlines())}
        if file.exists()
        else {}
    )
    children = {POISON[0]: _Child(POISON[0])}
    children[POISON[0]].ask(None)
    every = children[POISON[0]].answer(START_SECONDS)
    if isinstance(every, str):
        sys.exit(f"the first process says nothing of operations: {every}")
    kinds = [kind for kind in every if not wanted or kind in wanted]
    with file.open("a") as out:
        for kind in (kind for kind in kinds if kind not in known):
            known[kind] = {"operation": kind, **_look(kind, children)}
            out.write(json.dumps(known[kind]) + "\n")
            out.flush()
    for child in children.values():
        child.end()
    rows = [known[kind] for kind in kinds]
    for row in rows:
        for found in row["unwritten"]:
            print(f"{row['operation']}.{found}", flush=True)
    ends = {
        end: sum(row["end"] == end for row in rows) for end in ("called", "refused", "died", "late")
    }
    print(f"# {len(rows)} operations: {ends}", file=sys.stderr)


def _look(kind: str, children: dict[str, _Child]) -> dict[str, Any]:
    """Return what both children say about an operation; a child that ends or is late is replaced by
    a new one.
    """
    found: dict[str, Calls] = {poison: {} for poison in POISON}
    end = "called"
    for attempt in range(ATTEMPTS):
        for poison in POISON:  # both work at the same time
            if poison not in children:
                children[poison] = _Child(poison)
            children[poison].ask([kind, attempt])
        ends = [_calls(children, poison, found[poison]) for poison in POISON]
        if ends == [None, None]:
            break
        end = "died" if "died" in ends else "late"
    first, second = found.values()
    both = first.keys() & second.keys()
    end = "refused" if end == "called" and not both else end
    return {"end": end, "calls": len(both), "unwritten": _unwritten(first, second)}


def _calls(children: dict[str, _Child], poison: str, found: Calls) -> str | None:
    """Add the calls that a child made; return how it ended, or None where it did not."""
    while True:
        answer = children[poison].answer()
        if answer is None:
            return None
        if isinstance(answer, str):
            children.pop(poison).end()
            return answer
        found[answer[0]] = answer[1]


def _unwritten(first: Calls, second: Calls) -> list[str]:
    """Return a sentence for each output that held the one byte in one process and the other in the other."""
    rows: dict[str, list[tuple[dict[str, Any], bool]]] = defaultdict(list)
    for key in sorted(first.keys() & second.keys()):
        attributes, _ = json.loads(key)
        for name, byte in first[key].items():
            rows[name].append(
                (attributes, byte is not None and second[key].get(name) not in (None, byte))
            )
    said = []
    for name, calls in rows.items():
        bad = [attributes for attributes, unwritten in calls if unwritten]
        if bad:
            fine = [attributes for attributes, unwritten in calls if not unwritten]
            said.append(f"{name}: {len(bad)} of {len(calls)} calls; when {_when(bad, fine)}")
    return said


def _when(bad: list[dict[str, Any]], fine: list[dict[str, Any]]) -> str:
    """Return the attribute with which an output is never written; what has none depends on the inputs."""
    if not fine:
        return "always"
    for name, value in bad[0].items():
        if all(each[name] == value for each in bad) and all(each[name] != value for each in fine):
            return f"{name} = {json.dumps(value)}"
    return f"it depends, e.g. {json.dumps(bad[0])}"


class _Child:
    """A process whose memory is filled with a byte, and which answers questions."""

    def __init__(self, poison: str) -> None:
        tunables = "glibc.malloc.tcache_count=0"
        environ = {
            **os.environ,
            "MALLOC_PERTURB_": poison,
            "GLIBC_TUNABLES": tunables,
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        environ |= {
            "CUDA_VISIBLE_DEVICES": "",
            "TF_NUM_INTEROP_THREADS": "1",
            "TF_NUM_INTRAOP_THREADS": "1",
        }
        command = [sys.executable, __file__, "child"]
        self._process = subprocess.Popen(
            command, stdin=-1, stdout=-1, stderr=-3, env=environ, text=True
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put('"died"')

    def ask(self, question: list[Any] | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()

    def answer(self, seconds: float = LATE_SECONDS) -> Any:
        """Return the next answer: `died` where the process ended, `late` where none came in time."""
        try:
            return json.loads(self._lines.get(timeout=seconds))
        except queue.Empty:
            return "late"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def child() -> None:
    """Answer null with the names of all operations that can be called, and a name with a line for
    each of its calls.
    """
    import tensorflow as tf
    from tensorflow.python.framework import op_def_registry

    for line in sys.stdin:
        question = json.loads(line)
        if question is None:
            definitions = [op_def_registry.get(each) for each in sorted(dir(tf.raw_ops))]
            print(
                json.dumps(
                    [each.name for each in definitions if each is not None and _is_fit(each)]
                ),
                flush=True,
            )
            continue
        kind, attempt = question
        for call in _call(tf, op_def_registry.get(kind), random.Random(f"{kind} {attempt}")):
            print(json.dumps(call), flush=True)
        print("null", flush=True)


def _is_fit(definition: Any) -> bool:
    if definition.is_stateful or not definition.output_arg or definition.name.startswith(SKIPPED):
        return False
    return not any(each.type in ("func", "list(func)", "tensor") for each in definition.attr)


def _call(
    tf: Any, definition: Any, choose: random.Random
) -> Iterator[tuple[str, dict[str, int | None]]]:
    """Yield the calls of an operation that succeed."""
    begun, function = time.monotonic(), getattr(tf.raw_ops, definition.name)
    renamed = _renamed(definition, function)
    counts = {each.number_attr for each in definition.input_arg}
    types = {each.type_attr for each in definition.input_arg}
    free = [
        [(each.name, value) for value in _values(tf, each)]
        for each in definition.attr
        if each.name not in counts
    ]
    sets = list(itertools.islice(itertools.product(*free), 4096))
    for chosen in choose.sample(sets, min(len(sets), 24)):
        attributes, good = dict(chosen), 0
        given = {
            name: value
            for name, value in attributes.items()
            if name not in types and value is not None
        }
        for shapes in _shapes(len(definition.input_arg), choose):
            if time.monotonic() - begun > ENOUGH_SECONDS:
                return
            try:
                inputs = {
                    each.name: _input(tf, each, attributes, one)
                    for each, one in zip(definition.input_arg, shapes, strict=True)
                }
                results = function(
                    **{renamed.get(name, name): value for name, value in (inputs | given).items()}
                )
                named = (
                    results._asdict()
                    if hasattr(results, "_asdict")
                    else {definition.output_arg[0].name: results}
                )
                outputs = {
                    name: _poison(each) for name, each in named.items() if hasattr(each, "numpy")
                }
            except Exception:  # an input or a type that it does not take
                continue
            yield json.dumps([attributes, shapes]), outputs
            good += 1
            if good == ENOUGH:
                break


def _renamed(definition: Any, function: Any) -> dict[str, str]:
    """Return the names of arguments that TensorFlow's Python has otherwise than the operation (`axis`)."""
    names = [each.name for each in (*definition.input_arg, *definition.attr)]
    taken = [name for name in inspect.signature(function).parameters if name != "name"]
    ours, theirs = (
        [name for name in names if name not in taken],
        [name for name in taken if name not in names],
    )
    return dict(zip(ours, theirs, strict=False))


def _shapes(inputs: int, choose: random.Random) -> list[tuple[tuple[int, ...], ...]]:
    """Return shapes for the inputs of an operation: first one for all and one for all but the first, then any."""
    usual = [(first, *[other] * (inputs - 1)) for first in SHAPES for other in SHAPES][
        : None if inputs > 1 else 0
    ]
    alike = [(shape,) * inputs for shape in SHAPES]
    every = list(itertools.islice(itertools.product(SHAPES, repeat=inputs), 200_000))
    return [
        *alike,
        *choose.sample(usual, len(usual)),
        *choose.sample(every, min(len(every), TRIES)),
    ]


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
    values = [
        (number * 7 % 5 + 1) / 2 if dtype.is_floating else number % 3 for number in range(count)
    ]
    made = tf.cast(tf.constant(values, tf.float32, shape), dtype)
    return [made, made] if argument.number_attr else made


def _poison(tensor: Any) -> int | None:
    """Return the byte that some element wholly consists of, if it is one of those that memory was filled with."""
    array = tensor.numpy()
    if array.dtype.hasobject or array.dtype.itemsize < 4:
        return None
    for byte in map(int, POISON):
        if (
            (array.reshape(-1).view("u1").reshape(-1, array.dtype.itemsize) == byte)
            .all(axis=1)
            .any()
        ):
            return byte
    return None


if __name__ == "__main__":
    child() if sys.argv[1:2] == ["child"] else main()
