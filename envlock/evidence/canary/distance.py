"""The distance of two results of one operation, from their samples. Pure: values in, a distance
out.
"""

from __future__ import annotations

import math
import struct
from dataclasses import asdict, dataclass
from statistics import median
from typing import Literal

from envlock.data.canary_tables import EPSILON, Precision
from envlock.lock.numerics import Operation

# In eps. Measured: sums in a different order are 0.4 to 17 eps apart, and products of bfloat16 are
# 2,500 to 36,000 eps apart.
SAME_ALGORITHM = 64
OTHER_ALGORITHM = 1000

Kind = Literal["unseen", "order", "between", "precision"]
_BITS = {"<f4": ("<f", "<i", 31), "<f8": ("<d", "<q", 63)}


@dataclass(frozen=True)
class Distance:
    """The distance that the samples show.

    Attributes:
        size: how many values the result has.
        sampled: how many of them are in the sample.
        differing: how many of those differ.
        median_ulp: of the values that differ, how many representable numbers lie between the two;
            None if one of them is not a number.
        normwise: the largest difference, in units of the precision's epsilon times the largest
            value; None if a value is infinite or not a number.
        kind: `unseen`: no sampled value differs; `order`: at most 64 eps; `precision`: 1000 eps or
            more.
    """

    size: int
    sampled: int
    differing: int
    median_ulp: float | None
    normwise: float | None
    kind: Kind

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return asdict(self)

    def describe(self) -> str:
        """Return the distance as a phrase without a full stop."""
        values, rest = "values", ""
        if self.sampled < self.size:
            values, rest = "sampled values", f" ({self.size:,} in all)"
        if self.kind == "unseen":
            return f"none of {self.sampled} {values} differs{rest}"
        part = f"{self.differing} of {self.sampled} {values} differ{rest}"
        meaning = _MEANINGS[self.kind]
        if self.normwise is None or self.median_ulp is None:
            return f"{part}, some of them infinite or NaN: {meaning}"
        ulp, eps = _round_number(self.median_ulp), _round_number(self.normwise)
        return f"{part}, median {ulp} ULP, {eps} eps normwise: {meaning}"


_MEANINGS = {
    "order": "typical of another order of summation",
    "between": "more than another order of summation, less than lower precision",
    "precision": "typical of lower precision or another algorithm",
}


def _round_number(number: float) -> str:
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.2g}"


def measure_distance(
    locked: Operation, live: Operation, precision: Precision = "float32"
) -> Distance:
    """Return the distance of two results of equal type and shape.

    A `precision` that is coarser than the type (bfloat16, stored as float32) is the unit of the
    distance.
    """
    pairs = list(zip(locked.values, live.values, strict=True))
    apart = [(a, b) for a, b in pairs if _has_other_bits(a, b)]
    if not apart:
        return Distance(locked.size, len(pairs), 0, 0.0, 0.0, "unseen")
    for a, b in pairs:
        if not math.isfinite(a) or not math.isfinite(b):
            return Distance(locked.size, len(pairs), len(apart), None, None, "precision")
    # Units in the last place are those of the type in which the values are stored, not of a coarser
    # precision.
    kept_as: Precision = "float32"
    if locked.dtype == "<f8":
        kept_as = precision = "float64"
    epsilon = EPSILON[precision]
    ulps = []
    for a, b in apart:
        places = abs(_find_place(a, locked.dtype) - _find_place(b, locked.dtype))
        ulps.append(places * EPSILON[kept_as] / epsilon)
    # Relative to the locked result, the reference; where that is zero everywhere, to the live one.
    largest = max(map(abs, locked.values)) or max(map(abs, live.values))
    # If both sides are zero everywhere, only signs of zeros differ.
    normwise = max(abs(a - b) for a, b in apart) / (epsilon * largest) if largest else 0.0
    kind = _find_kind(normwise)
    return Distance(locked.size, len(pairs), len(apart), float(median(ulps)), normwise, kind)


def _find_kind(normwise: float) -> Kind:
    if normwise <= SAME_ALGORITHM:
        return "order"
    if normwise >= OTHER_ALGORITHM:
        return "precision"
    return "between"


def _has_other_bits(a: float, b: float) -> bool:
    """Return whether two values differ in a bit: 0.0 and -0.0 do, two NaNs with the same bits do
    not.
    """
    return struct.pack("<d", a) != struct.pack("<d", b)


def _find_place(value: float, dtype: str | None) -> int:
    """Return the index of a float among all floats of its type, in ascending order."""
    real, integer, bits = _BITS[dtype or "<f4"]
    number: int = struct.unpack(integer, struct.pack(real, value))[0]
    if number >= 0:
        return number
    # Negative floats are a sign and a magnitude, not a complement.
    return -(number & ((1 << bits) - 1))
