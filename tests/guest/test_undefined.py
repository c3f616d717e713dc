"""Which outputs hold no result, by the attribute that decides it."""

from __future__ import annotations

import pytest

from envlock.guest.tracing.undefined import find_undefined


@pytest.mark.parametrize(
    ("kind", "off", "on"),
    [
        ("FusedBatchNormV3", {3, 4, 5}, {5}),
        ("FusedBatchNormV2", {3, 4}, set()),
        ("Svd", {1, 2}, set()),
        ("FakeParam", {0}, {0}),
        ("MatMul", set(), set()),
    ],
)
def test_a_switch_decides_which_outputs_are_unwritten(kind: str, off: set[int], on: set[int]) -> None:
    assert find_undefined(kind, lambda name: False) == off
    assert find_undefined(kind, lambda name: True) == on
