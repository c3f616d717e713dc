"""A program's operations in a lockfile: what the format has no room for, so that `verify` never runs it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from envlock.lock.numerics import parse_numerics
from tests.evidence.canaries import section, with_program


def refused(change: dict[str, Any], *path: str) -> str:
    """Return the message for a section whose node at `path` is updated with a change."""
    document = with_program(section())
    node: Any = document["program"]
    for name in path:
        node = node[int(name) if name.isdigit() else name]
    node.update(copy.deepcopy(change))
    with pytest.raises(ValueError, match="program") as caught:
        parse_numerics(document)
    return str(caught.value)


@pytest.mark.parametrize(
    "kind", ["ReadFile", "WriteFile", "PyFunc", "PyFuncStateless", "EagerPyFunc", "RpcCall", "Save", "_Send", "If"]
)
def test_only_operations_of_the_table_can_stand_there(kind: str) -> None:
    said = refused({"type": kind}, "operations", "mat_mul_1")
    assert said == ("`program.operations.mat_mul_1`: Value error, no operation of this type is run from a lockfile")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"dtype": "string"}, "dtype"),
        ({"dtype": "resource"}, "dtype"),
        ({"shape": [-1]}, "shape.0"),
        ({"shape": [2**40]}, "shape.0"),
        ({"shape": [1] * 9}, "shape"),
        ({"shape": [2**20, 2**20]}, "operations"),
        ({"shape": [3], "values": [1, 2]}, "inputs.0"),
        ({"shape": [65], "values": [1] * 65}, "values"),
    ],
)
def test_an_input_is_a_plain_tensor_of_a_bounded_size(change: dict[str, Any], what: str) -> None:
    assert what in refused(change, "operations", "mat_mul_1", "inputs", "0")


@pytest.mark.parametrize("value", ["$(touch x)", "a;b", "`id`", "x" * 201, [[1]], {"a": 1}, None])
def test_an_attribute_is_a_plain_value(value: Any) -> None:
    assert "attributes.transpose_a" in refused({"transpose_a": value}, "operations", "mat_mul_1", "attributes")


def test_what_is_covered_and_what_is_left_out_adds_up() -> None:
    said = refused({"covered": 2}, "targets", "train.py:step")
    assert said.endswith("what is covered and what is left out must be all operations")


def test_a_reason_is_one_of_those_that_reports_know() -> None:
    from typing import get_args

    from envlock.lock.lock_text import LEFT_OUT
    from envlock.lock.numerics import LeftOut

    assert sorted(get_args(LeftOut)) == sorted(LEFT_OUT)
