"""How far two results of one operation are apart, told from their samples. Pure: values in, a distance out."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from statistics import median
from typing import Literal

from envlock.data.canary import EPSILON, Precision
from envlock.lock.numerics import Operation

SAME_ALGORITHM = 64  # eps; measured: another order of the same sums is 0.4 to 17 eps apart
OTHER_ALGORITHM = 1000  # eps; measured: products of bfloat16 are 2,500 to 36,000 eps apart

Kind = Literal["unseen", "order", "between", "precision"]
_BITS = {"<f4": ("<f", "<i", 31), "<f8": ("<d", "<q", 63)}


@dataclass(frozen=True)
class Distance:
    """What the samples show.

    Attributes:
        size: how many values the result has.
        sampled: how many of them were kept.
        differing: how many of those differ.
        median_ulp: of the values that differ, how many representable numbers lie between the two; None where one of
            them is no number.
        normwise: the largest difference, in units of the precision's epsilon times the largest value; None where a
            value is infinite or no number.
        kind: `unseen`: no sampled value differs; `order`: at most 64 eps; `precision`: 1000 eps or more.
    """

    size: int
    sampled: int
    differing: int
    median_ulp: float | None
    normwise: float | None
    kind: Kind

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        names = ("size", "sampled", "differing", "median_ulp", "normwise", "kind")
        return {name: getattr(self, name) for name in names}

    def sentence(self) -> str:
        """Return it for people, without a full stop."""
        whole = self.sampled == self.size
        of, rest = ("", "") if whole else ("sampled ", f" ({self.size:,} in all)")
        if self.kind == "unseen":
            return f"none of {self.sampled} {of}values differs{rest}"
        part = f"{self.differing} of {self.sampled} {of}values differ{rest}"
        if self.normwise is None or self.median_ulp is None:
            return f"{part}, some of them infinite or NaN: {_CLASSES[self.kind]}"
        return f"{part}, median {_short(self.median_ulp)} ULP, {_short(self.normwise)} eps normwise: {_CLASSES[self.kind]}"


_CLASSES = {
    "order": "typical of another order of summation",
    "between": "more than another order of summation, less than lower precision",
    "precision": "typical of lower precision or another algorithm",
}


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.2g}"


def distance(locked: Operation, live: Operation, precision: Precision = "float32") -> Distance:
    """Return how far two computed results of equal type and shape are apart.

    A `precision` that is coarser than the type (bfloat16, kept as float32) is the unit in which they are measured.
    """
    pairs = list(zip(locked.values, live.values, strict=True))
    apart = [(a, b) for a, b in pairs if _differs(a, b)]
    if not apart:
        return Distance(locked.size, len(pairs), 0, 0.0, 0.0, "unseen")
    if not all(math.isfinite(value) for pair in pairs for value in pair):
        return Distance(locked.size, len(pairs), len(apart), None, None, "precision")
    epsilon = EPSILON["float64" if locked.dtype == "<f8" else precision]
    least = EPSILON["float64" if locked.dtype == "<f8" else "float32"]
    ulps = [
        abs(_place(a, locked.dtype) - _place(b, locked.dtype)) * least / epsilon for a, b in apart
    ]
    largest = max(abs(a) for a, _ in pairs) or max(abs(b) for _, b in pairs)
    normwise = max(abs(a - b) for a, b in apart) / (epsilon * largest) if largest else 0.0
    return Distance(
        locked.size, len(pairs), len(apart), float(median(ulps)), normwise, _kind(normwise)
    )


def _kind(normwise: float) -> Kind:
    if normwise <= SAME_ALGORITHM:
        return "order"
    return "precision" if normwise >= OTHER_ALGORITHM else "between"


def _differs(a: float, b: float) -> bool:
    return struct.pack("<d", a) != struct.pack("<d", b)  # 0.0 and -0.0 are other bits; NaN is NaN


def _place(value: float, dtype: str | None) -> int:
    """Return the place of a float among all of its type, in order."""
    real, integer, bits = _BITS[dtype or "<f4"]
    number: int = struct.unpack(integer, struct.pack(real, value))[0]
    return number if number >= 0 else -(number & ((1 << bits) - 1))
