"""Which recipe a version gets: the row whose range has it, however many numbers it has."""

from __future__ import annotations

import pytest

from envlock.runtime.recipe import _covers, find_recipe


@pytest.mark.parametrize(
    ("version", "found"), [((2, 7), False), ((2, 8), True), ((2, 15, 9), True), ((2, 16), False), ((2,), False)]
)
def test_a_range_has_its_first_version_and_not_its_last(version: tuple[int, ...], found: bool) -> None:
    assert _covers({"since": [2, 8], "below": [2, 16]}, version) is found


def test_what_is_no_version_has_no_recipe() -> None:
    assert find_recipe("nightly") is None
