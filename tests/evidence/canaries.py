"""Canaries for tests, as the section of a lockfile and as what a child process says."""

from __future__ import annotations

import json
from typing import Any

from envlock.data.canary_tables import load_canary_table
from envlock.guest.battery import BATTERY
from envlock.lock.numerics import Numerics

ONEDNN = (
    "matmul",
    "matmul_big",
    "conv_forward",
    "conv_input_gradient",
    "conv_filter_gradient",
    "depthwise",
    "batch_norm",
)
ALONE = {"train": "cpu-graph", "train_xla": "xla", "matmul_bf16": "bf16"}
EXECUTION = {"numpy": "library", "libm": "library", "cpu-graph": "graph", "xla": "xla"}
MARK = "envlock-answer:"
COUNT = len(load_canary_table().operation)


def group_of(operation: str) -> str:
    """Return the group in which the battery computes an operation on a processor."""
    if operation.startswith("np_"):
        return "numpy"
    if operation.startswith(("math_", "libm_")):
        return "libm"
    return ALONE.get(operation, "cpu-onednn" if operation in ONEDNN else "cpu-eigen")


def conditions(group: str, **changes: Any) -> dict[str, Any]:
    """Return the header of a group, with fields changed."""
    library = group in ("numpy", "libm")
    head = {
        "device": "cpu",
        "execution": EXECUTION.get(group, "eager"),
        "intra_op_threads": 1 if library else 2,
        "inter_op_threads": 1 if library else 2,
        "determinism": "environment" if library else "on",
        "onednn": "environment",
        "xla": "environment",
    }
    return {**head, **changes}


def result(value: float = 1.0) -> dict[str, Any]:
    """Return the result of an operation that gave one value."""
    return {"dtype": "<f4", "shape": [1], "sha256": f"{abs(hash(value)):064x}"[:64], "sample": value.hex()}


def section(other: tuple[str, ...] = (), *, without: tuple[str, ...] = (), value: float = 1.5, **fields: Any) -> Any:
    """Return a canary with all operations; those in `other` have the value given, those in `without` are not there."""
    groups: dict[str, Any] = {}
    for row in load_canary_table().operation:
        name = group_of(row.name)
        groups.setdefault(name, {"conditions": conditions(name), "operations": {}})
        if row.name not in without:
            groups[name]["operations"][row.name] = result(value if row.name in other else 1.0)
    return {"battery": BATTERY, "tensorflow": "2.21.0", "numpy": "2.4.6", "groups": groups, **fields}


def numerics(*other: str, **fields: Any) -> Numerics:
    """Return the same as a model."""
    return Numerics.model_validate(section(other, **fields))


def program(*said: dict[str, Any], ending: str = "") -> str:
    """Return a program in the battery's place, which says these things and then ends."""
    lines = "".join(f"print({MARK + json.dumps(each)!r}, flush=True)\n" for each in said)
    return f"import json, os, sys\nasked = json.loads(sys.argv[1])\n{lines}{ending}\n"


def with_program(numerics: dict[str, Any], value: float = 1.0) -> dict[str, Any]:
    """Return a canary that also has one operation of a program, which gave this value."""
    tensor = {"dtype": "float32", "shape": [2, 2]}
    attributes = {"transpose_a": False, "transpose_b": False}
    operation = {"type": "MatMul", "inputs": [tensor, tensor], "attributes": attributes, "result": result(value)}
    covered = {"distinct": 2, "covered": 1, "left_out": {"random": {"RandomUniform": 1}}}
    program = {
        "conditions": conditions("cpu-eigen"),
        "targets": {"train.py:step": covered},
        "operations": {"mat_mul_1": operation},
    }
    return json.loads(json.dumps({**numerics, "program": program}))  # type: ignore[no-any-return]
