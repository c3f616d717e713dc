"""Operations that change get a new number: locks compare the results of one number as if they were of one battery."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Collection
from typing import Any

import pytest

from envlock.data.canary_tables import load_canary_table
from tests.ground import ROOT

CODE = (ROOT / "envlock/guest/battery.py").read_text(encoding="utf-8")

DIGESTS = {
    1: "3ba488a73e812c326846d529187d7947b3de3b944a63f81deefc9df3a411d439",
    2: "6d4cb112f6d55c576287c3ccaf93af12ea3dcc370f867ef743bf73c23dc6aedb",
}
"""Of the code that computes, for each number of the battery that there ever was. A new one is added, none changed."""

ADDED = {"make_double_operations": 2, "make_math_operations": 2}
"""The number of the battery that added a function of operations: results of older numbers have none of them."""

HOST = {"main", "_run", "get_gpu_name", "describe_error"}
"""Functions that start the battery and answer; they may change without a new number. All others compute."""

FORMER_NAMES = {
    "_make_groups": "_groups",
    "make_numbers": "numbers",
    "make_numpy_operations": "numpy_operations",
    "make_onednn_operations": "onednn_operations",
    "make_eigen_operations": "eigen_operations",
    "make_training": "training",
    "_make_step": "_step",
    "run_step": "step",
    "compute_depthwise": "depthwise",
    "compute_batch_norm": "batch_norm",
    "compute_cross_entropy": "cross_entropy",
    "compute_layer_norm": "layer_norm",
    "draw_stateful": "stateful",
    "compute_transcendental": "transcendental",
    "compute_matmul_bf16": "matmul_bf16",
    "_compute_all": "_computed",
    "_compute_result": "_result",
    "_read_array": "_array",
    "_format_hex": "_hex",
    "compute_digest": "digest",
    "take_sample": "sample",
}
"""What functions were called when their number was digested: a name decides no result, so it may change."""

IGNORED = {"annotation", "returns", "type_comment", "kind", "ctx", "type_params"}
"""Fields of the syntax tree that are not computed with, or that not every Python has."""


def normalize(node: Any) -> Any:
    """Return a syntax tree as nested lists, the same from every Python, without what is not computed with."""
    if isinstance(node, list):
        return [normalize(each) for each in node if not is_docstring(each)]
    if isinstance(node, str):
        return repr(FORMER_NAMES.get(node, node))
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [(name, value) for name, value in ast.iter_fields(node) if name not in IGNORED]
    return [type(node).__name__, *([name, normalize(value)] for name, value in fields if value not in (None, []))]


def is_docstring(node: Any) -> bool:
    """Return whether a statement is a text and nothing else."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def digest_battery(code: str, without: Collection[str] = ()) -> tuple[int, str]:
    """Return the number of a battery, and the SHA-256 of all that decides its results, but for some functions."""
    number, computing = 0, []
    for node in ast.parse(code).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "BATTERY":
            number = ast.literal_eval(node.value)
        elif isinstance(node, ast.Assign | ast.ClassDef) or (
            isinstance(node, ast.FunctionDef) and node.name not in HOST and node.name not in without
        ):
            computing.append(normalize(node))
    return number, hashlib.sha256(repr(computing).encode()).hexdigest()


def test_operations_that_change_have_a_new_number() -> None:
    number, digest = digest_battery(CODE)
    hint = f"operations of the battery changed: raise BATTERY in envlock/guest/battery.py and add {digest} here"
    assert DIGESTS.get(number) == digest, hint


@pytest.mark.parametrize("number", [each for each in DIGESTS if each != max(DIGESTS)])
def test_operations_of_an_older_number_are_what_they_were(number: int) -> None:
    """So lockfiles of that number are compared as far as they go; canary.toml says from when on an operation is what it is."""
    newer = [name for name, since in ADDED.items() if since > number]
    assert digest_battery(CODE, newer)[1] == DIGESTS[number]
    tree = {node.name: node for node in ast.parse(CODE).body if isinstance(node, ast.FunctionDef)}
    added = {
        ast.literal_eval(key)
        for name in newer
        for node in tree[name].body
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict)
        for key in node.value.keys
        if key
    }
    assert {row.name for row in load_canary_table().operation if row.since > number} == added


def test_no_number_is_used_twice() -> None:
    assert list(DIGESTS) == list(range(1, len(DIGESTS) + 1))
    assert len(set(DIGESTS.values())) == len(DIGESTS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r'^( +)"matmul', r'\1"np_log": lambda: np.log(np.ones(3)),\n\1"matmul'),
        (r"SAMPLES = 64", "SAMPLES = 65"),
        (r"np\.uint64\(27\)", "np.uint64(28)"),
    ],
)
def test_an_operation_or_an_input_that_changes_has_another_digest(old: str, new: str) -> None:
    changed = re.sub(old, new, CODE, count=1, flags=re.MULTILINE)
    assert changed != CODE
    assert digest_battery(changed)[1] != digest_battery(CODE)[1]


@pytest.mark.parametrize(
    ("old", "new"), [("BATTERY = 2", "BATTERY = 3"), ("# ", "# also "), ("-> Tensor:", "->  object:")]
)
def test_what_is_not_computed_with_has_the_same_digest(old: str, new: str) -> None:
    changed = CODE.replace(old, new)
    assert changed != CODE
    assert digest_battery(changed)[1] == digest_battery(CODE)[1]
