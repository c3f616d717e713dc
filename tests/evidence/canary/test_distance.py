"""How far two results are apart, told from their samples."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.evidence.canary.distance import Distance, measure_distance
from envlock.lock.numerics import Operation

FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)


def operation(*values: float, size: int | None = None, dtype: str = "<f4") -> Operation:
    fields = {"dtype": dtype, "shape": [size or len(values)], "sha256": "0" * 64}
    return Operation.model_validate({**fields, "sample": " ".join(value.hex() for value in values)})


def after(value: float, steps: int) -> float:
    """Return the float32 that many steps away from a positive one."""
    (number,) = struct.unpack("<i", struct.pack("<f", value))
    (moved,) = struct.unpack("<f", struct.pack("<i", number + steps))
    return float(moved)


def test_one_step_at_one_is_one_ulp_and_one_eps() -> None:
    found = measure_distance(operation(1.0, 0.5), operation(after(1.0, 1), 0.5))
    assert found == Distance(2, 2, 1, 1.0, 1.0, "order")
    assert (
        found.describe() == "1 of 2 values differ, median 1 ULP, 1 eps normwise: typical of another order of summation"
    )


@pytest.mark.parametrize(
    ("steps", "kind"), [(64, "order"), (65, "between"), (999, "between"), (1000, "precision"), (9999, "precision")]
)
def test_the_two_thresholds(steps: int, kind: str) -> None:
    assert measure_distance(operation(1.0), operation(after(1.0, steps))).kind == kind


def test_cancellation_does_not_mislead_the_norm() -> None:
    """A tiny value beside a large one may be thousands of ULP off, and yet an eps of the largest."""
    tiny = 2.0**-20
    found = measure_distance(operation(1.0, tiny), operation(1.0, after(tiny, 100_000)))
    assert (found.median_ulp, found.kind) == (100_000.0, "order")
    assert found.normwise is not None
    assert found.normwise < 1


def test_bfloat16_is_measured_in_its_own_unit() -> None:
    a, b = operation(1.0), operation(1.0078125)  # neighbours in bfloat16
    assert measure_distance(a, b).kind == "precision"
    assert measure_distance(a, b, "bfloat16") == Distance(1, 1, 1, 1.0, 1.0, "order")


def test_float64_is_measured_in_its_own_unit() -> None:
    a, b = operation(1.0, dtype="<f8"), operation(1.0 + 2.0**-52, dtype="<f8")
    assert measure_distance(a, b) == Distance(1, 1, 1, 1.0, 1.0, "order")


def test_what_the_sample_does_not_show_is_said() -> None:
    found = measure_distance(operation(*[1.0] * 64, size=5000), operation(*[1.0] * 64, size=5000))
    assert found == Distance(5000, 64, 0, 0.0, 0.0, "unseen")
    assert found.describe() == "none of 64 sampled values differs (5,000 in all)"


def test_zeros_of_two_signs_are_other_bits() -> None:
    assert measure_distance(operation(0.0), operation(-0.0)) == Distance(1, 1, 1, 0.0, 0.0, "order")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_another_algorithm(value: float) -> None:
    found = measure_distance(operation(1.0, 2.0), operation(value, 2.0))
    assert (found.kind, found.normwise, found.median_ulp) == ("precision", None, None)
    text = "1 of 2 values differ, some of them infinite or NaN: typical of lower precision or another algorithm"
    assert found.describe() == text
    assert measure_distance(operation(value), operation(value)).kind == "unseen"


@given(st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=64))
def test_any_two_results_have_a_distance_that_json_can_hold(pairs: list[tuple[float, float]]) -> None:
    found = measure_distance(operation(*(a for a, _ in pairs)), operation(*(b for _, b in pairs)))
    differing = sum(a.hex() != b.hex() for a, b in pairs)  # in which NaN is NaN
    assert found.differing == differing
    assert (found.kind == "unseen") == (differing == 0)
    assert all(value is None or value >= 0 for value in (found.median_ulp, found.normwise))
    assert all(math.isfinite(value) for value in (found.median_ulp, found.normwise) if value is not None)
    assert found.describe().isprintable()
