"""Which of the differences between two environments moved the bits: delta debugging over facts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, order=True)
class Cause:
    """One difference that can be put on this machine, from A's side to B's.

    Attributes:
        path: of the fact, such as `packages.keras.version` or `environ.TF_XLA_FLAGS`.
        a, b: the two values; None for unset, or for a package that one side does not have.
    """

    path: str
    a: str | None
    b: str | None

    def __str__(self) -> str:
        """Return it as a report names it."""
        return f"{self.path}: {self.a or 'none'} -> {self.b or 'none'}"


Causes = frozenset[Cause]
Test = Callable[[Causes], bool]
"""Whether A with these causes taken from B computes B's bits. An answer is remembered by whoever gives it."""


def find_smallest(causes: Sequence[Cause], gives_b: Test) -> tuple[Cause, ...]:
    """Return a set of causes that turns A's bits into B's, and from which none can be left out.

    All causes together must give B's bits, and none of them A's. Two causes that only act together are found; where
    several sets would do, one of them is. Andreas Zeller and Ralf Hildebrandt, "Simplifying and Isolating Failure-Inducing
    Input", IEEE Transactions on Software Engineering 28 (2002), algorithm ddmin: https://doi.org/10.1109/32.988498
    """
    left = sorted(causes)
    parts = 2
    while len(left) > 1:
        chunks = split_evenly(left, parts)
        smaller = find_part(chunks, gives_b)
        if smaller is not None:
            left, parts = smaller, 2
            continue
        # Not in one part: what is left when one part is taken away?
        smaller = find_rest(chunks, gives_b)
        if smaller is not None:
            left, parts = smaller, max(parts - 1, 2)
            continue
        if parts == len(left):
            break
        parts = min(2 * parts, len(left))
    return tuple(left)


def split_evenly(causes: Sequence[Cause], parts: int) -> list[list[Cause]]:
    """Return the causes in so many parts, whose sizes differ by at most one."""
    bounds = [len(causes) * number // parts for number in range(parts + 1)]
    return [list(causes[start:end]) for start, end in pairwise(bounds)]


def find_part(chunks: Sequence[list[Cause]], gives_b: Test) -> list[Cause] | None:
    """Return the first part that gives B's bits by itself."""
    for chunk in chunks:
        if gives_b(frozenset(chunk)):
            return chunk
    return None


def find_rest(chunks: Sequence[list[Cause]], gives_b: Test) -> list[Cause] | None:
    """Return all parts but one, where they still give B's bits."""
    # Of two parts, the rest of one is the other, which was tried.
    if len(chunks) < 3:
        return None
    for number in range(len(chunks)):
        others = [cause for chunk in (*chunks[:number], *chunks[number + 1 :]) for cause in chunk]
        if gives_b(frozenset(others)):
            return others
    return None
