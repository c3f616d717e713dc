"""Whole numbers in texts that others wrote."""

from __future__ import annotations

import pytest

from envlock.runtime.digits import parse_digits


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        ("007", 7),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, None),
        ("²", None),
        ("٣", None),
        ("-1", None),
        ("", None),
    ],
)
def test_only_a_short_text_of_ascii_digits_is_a_number(text: str, number: int | None) -> None:
    assert parse_digits(text) == number
