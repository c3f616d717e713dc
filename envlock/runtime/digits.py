"""Whole numbers in texts that others wrote."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional


def parse_digits(text: str, most: int = 18) -> Optional[int]:
    """Return the number in a text of ASCII digits; None for any other text, and for one with more than `most` digits.

    `int` refuses superscript digits, which `str.isdigit` takes, and texts of more than 4,300 digits.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= most else None
