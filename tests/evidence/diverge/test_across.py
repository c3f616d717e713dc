"""Two traces side by side: the first operation with equal inputs and other results is named, and nothing else."""

from __future__ import annotations

import random
import time
from itertools import pairwise, zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.evidence.diverge import two_traces
from envlock.evidence.diverge.trace import Record, Value
from envlock.evidence.diverge.two_traces import compare, make_key, match_entries
from tests.evidence.diverge.traces import op, value

RELU, MATMUL, TANH = op("Relu", 3, [1], [2]), op("MatMul", 4, [2, None], [3]), op("Tanh", 5, [3], [4])
LOSS, AGAIN = value("loss", 9), op("Relu", 3, [1], [2], step=1)
A: list[Record | Value] = [RELU, MATMUL, TANH, LOSS, AGAIN]


def instead(*entries: Record | Value | None) -> list[Record | Value]:
    """Return A with other entries in the places where one is given."""
    return [each if other is None else other for each, other in zip_longest(A, entries)]


def test_equal_traces_are_the_same() -> None:
    found = compare(A, A)
    assert (found.same, found.first, found.earliest, found.compared, found.alone) == (True, None, None, 5, [0, 0])
    assert (found.steps, found.share, found.longer) == (2, 1.0, None)


def test_the_first_operation_with_equal_inputs_and_other_results_is_named() -> None:
    b = instead(None, MATMUL._replace(outputs=(33,)), TANH._replace(inputs=(33,), outputs=(44,)))
    found = compare(A, b)
    assert found.first is not None
    assert (found.first.kind, found.first.a, found.first.b, found.first.known) == ("operation", A[1], b[1], 1)
    assert (found.earliest, found.others, found.same) == (None, [], False)


def test_what_follows_from_other_inputs_is_not_named() -> None:
    found = compare(A, instead(None, None, TANH._replace(inputs=(33,), outputs=(44,))))
    assert found.first is None
    assert found.earliest is not None
    assert (found.earliest.kind, found.earliest.a, found.same) == ("carried", A[2], False)


def test_one_equal_input_of_two_is_not_enough() -> None:
    a, b = op("Add", 3, [1, 2], [3]), op("Add", 3, [1, 7], [8])
    found = compare([a], [b])
    assert (found.first, found.earliest and found.earliest.kind) == (None, "carried")


def test_an_earlier_difference_that_was_carried_stays_beside_the_first_cause() -> None:
    found = compare(A, instead(RELU._replace(inputs=(7,), outputs=(22,)), None, TANH._replace(outputs=(44,))))
    assert found.first is not None
    assert found.earliest is not None
    assert (found.first.a, found.earliest.a) == (A[2], A[0])


def test_a_value_that_differs_is_a_difference() -> None:
    found = compare(A, instead(None, None, None, LOSS._replace(fingerprint=8)))
    assert found.earliest is not None
    assert (found.earliest.kind, found.same) == ("value", False)


def test_later_causes_of_another_kind_are_listed_once() -> None:
    other = RELU._replace(outputs=(22,)), MATMUL._replace(outputs=(33,))
    found = compare(A, instead(*other, None, None, AGAIN._replace(outputs=(22,))))
    assert found.first is not None
    assert (found.first.a, [each.a for each in found.others]) == (A[0], [A[1]])


def test_operations_that_only_one_side_has_are_passed_over() -> None:
    more = [op("Cast", 4, [2], [2]), op("Reshape", None, [2], [2])]
    found = compare(A, [RELU, *more, MATMUL, TANH._replace(outputs=(5,)), LOSS, AGAIN])
    assert found.first is not None
    assert (found.first.a, found.compared, found.alone) == (A[2], 5, [0, 2])
    assert 0.8 < found.share < 0.9


def test_other_programs_do_not_go_together() -> None:
    found = compare(A[:3], [op("Exp", 30, [1], [2]), op("Log", 31, [2], [3])])
    assert (found.same, found.compared, found.share) == (False, 0, 0.0)


def test_a_longer_trace_is_not_the_same() -> None:
    assert [compare(A, A[:4]).longer, compare(A[:4], A).longer] == ["A", "B"]
    assert not compare(A, A[:4]).same


def test_nothing_is_not_the_same() -> None:
    assert not compare([], []).same


def test_a_step_too_long_to_be_held_is_looked_at_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    long = [op("Relu", 3, [1], [2])] * 25
    monkeypatch.setattr(two_traces, "STEP_LIMIT", 10)
    assert (compare(long, long).same, compare(long, long).compared) == (True, 25)


@pytest.mark.parametrize("kinds", ["ab", "abcdefghijklmnopqrstuvwxyz"])
def test_long_steps_that_differ_are_aligned_in_no_time(kinds: str) -> None:
    """Also the worst: few kinds in no order, as a damaged or malicious trace may have."""
    source = random.Random(1)
    a = [make_key(op(source.choice(kinds), None, [], [])) for _ in range(3_000)]
    start = time.process_time()
    pairs = match_entries(a, a[1:])
    assert time.process_time() - start < 5
    assert [a[i] for i, _ in pairs] == [a[1:][j] for _, j in pairs]


def test_what_has_no_counterpart_does_not_shift_the_rest_of_a_long_step() -> None:
    a = [make_key(op("Mul", line, [], [])) for line in range(2_000)] * 20
    assert len(match_entries(a, a[1:])) > 0.9 * len(a)


keys = st.lists(
    st.tuples(st.sampled_from("abc"), st.none() | st.just("f.py"), st.none() | st.integers(1, 3)), max_size=30
)


@given(keys, keys)
def test_what_is_aligned_is_alike_in_order_and_used_once(a: list[two_traces.Key], b: list[two_traces.Key]) -> None:
    pairs = match_entries(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))


@given(keys)
def test_what_is_alike_is_aligned_whole(a: list[two_traces.Key]) -> None:
    assert list(match_entries(a, list(a))) == [(n, n) for n in range(len(a))]


def read(name: str, spec: str, *, gives: int, line: int = 3) -> Record:
    """Return an entry that reads a variable."""
    entry = op("ReadVariableOp", line, [None], [gives])
    operation = entry.operation._replace(name=name, inputs=("resource[]",), outputs=(spec,))
    return entry._replace(operation=operation)


@pytest.mark.parametrize(
    ("name", "spec"), [("norm/moving_mean", "float32[3]"), ("norm/gamma", "int64[2]"), ("norm/gamma", "float32[4]")]
)
def test_reads_of_other_variables_are_no_pair(name: str, spec: str) -> None:
    a: list[Record | Value] = [RELU, read("norm/gamma", "float32[3]", gives=5), LOSS]
    found = compare(a, [RELU, read(name, spec, gives=6), LOSS])
    assert (found.compared, found.alone, found.first, found.earliest) == (2, [1, 1], None, None)


@pytest.mark.parametrize("name", ["adam_1/iteration", "adam/iteration:0", "adam/iteration"])
def test_what_counts_objects_is_not_their_name(name: str) -> None:
    found = compare([read("adam/iteration", "int64[]", gives=5)], [read(name, "int64[]", gives=6)])
    assert (found.first, found.earliest and found.earliest.kind) == (None, "variable")


def test_where_the_runs_part_both_sides_are_named() -> None:
    a = [RELU, op("FusedBatchNormV3", 8, [2], [3]), op("Sum", 9, [3], [4])]
    b = [RELU, op("Mean", 8, [2], [5]), op("SquaredDifference", 8, [2], [6]), op("Sum", 9, [7], [8])]
    found = compare(a, b)
    assert found.parting is not None
    assert found.parting.to_json() == {"a": ["FusedBatchNormV3"], "b": ["Mean", "SquaredDifference"]}
    assert found.earliest is not None
    assert found.earliest.a is a[2]


def test_runs_that_part_and_give_the_same_are_the_same() -> None:
    found = compare(A, [RELU, op("Cast", 4, [2], [2]), *A[1:]])
    assert (found.same, found.parting) == (True, None)


def test_a_result_of_another_shape_is_not_of_equal_inputs() -> None:
    other = MATMUL._replace(outputs=(9,))
    other = other._replace(operation=other.operation._replace(outputs=("float32[9,9]",)))
    found = compare([MATMUL], [other])
    assert (found.first, found.earliest and found.earliest.kind) == (None, "carried")
