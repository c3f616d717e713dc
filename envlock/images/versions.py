"""How much of a version one has in common with another. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple


class Value(NamedTuple):
    """A version that an image holds, None where nobody tells; `expected`: it is not said of this image itself."""

    version: str | None = None
    expected: bool = False


class Likeness(NamedTuple):
    """How like what is wanted it is; the greater, the liker.

    `grade` 3: the same as far as both are told; 2: the same major and minor number; 1: one is not told; 0: another.
    """

    grade: int
    shared: int
    nearness: int


SAME, NEAR, UNKNOWN, OTHER = 3, 2, 1, 0


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in match[0].split(".")) if match else ()


def minor(version: str) -> str:
    """Return major and minor number."""
    return ".".join(str(number) for number in numbers(version)[:2])


def likeness(asked: str | None, held: Value) -> Likeness:
    """Return how like `asked` the version is that an image holds."""
    if asked is None or held.version is None:
        return Likeness(UNKNOWN, 0, 0)
    one, other = numbers(asked), numbers(held.version)
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared += 1
    whole = min(len(one), len(other))
    grade = SAME if shared == whole else NEAR if shared >= 2 else OTHER
    return Likeness(grade, shared, 0 if grade == SAME else -_distance(one, other))


def _distance(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    padded = [(*version, 0, 0, 0)[:3] for version in (one, other)]
    return sum(abs(a - b) * weight for a, b, weight in zip(*padded, (10**6, 10**3, 1), strict=True))
