"""Error matrices as pictures: their cells, and the scale of their colors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from envlock.reports.repeat_text import UNITS
from envlock.runtime.report import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.numerics.outcome import RepeatEvidence

LEVELS = 8
"""The number of colors between the smallest and the largest distance that is not zero, on a
logarithmic scale.
"""

COLORS = ("#fee3b8", "#fdd49e", "#fdbb84", "#fc8d59", "#ef6548", "#d7301f", "#b30000", "#7f0000")
"""From light to dark, the first one easy to tell from the white of a zero."""

Cells = Sequence[Sequence[float | None]]


@dataclass(frozen=True)
class Heatmap:
    """One matrix: the distances between the things with these names; None if there is no distance."""

    title: str
    labels: Sequence[str]
    cells: Cells
    results: Sequence[int]
    """The number of each thing's result: the same number means the same bits."""
    others: Mapping[str, Cells]
    """The distances by other measures."""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Scale:
    """The smallest and the largest distance that is neither zero nor infinite; the two are equal if
    there is at most one such distance.
    """

    low: float
    high: float

    def find_level(self, cell: float) -> int:
        """Return the number of the color for a distance that is not zero."""
        if math.isinf(cell) or self.high <= self.low:
            return LEVELS - 1
        # The largest distance has the share 1, which would be one color more than there are.
        share = math.log(cell / self.low) / math.log(self.high / self.low)
        return min(int(LEVELS * share), LEVELS - 1)

    def list_bounds(self) -> dict[int, float]:
        """Return the smallest distance of each color that is used, by the color's number."""
        if self.high <= self.low:
            return {LEVELS - 1: self.low}
        bounds = {}
        for number in range(LEVELS):
            bounds[number] = self.low * (self.high / self.low) ** (number / LEVELS)
        return bounds


def make_heatmaps(report: Report[RepeatEvidence]) -> list[Heatmap]:
    """Return the matrices of a report of `repeat`, with those that are zero, by step."""
    evidence = report.evidence
    placed = [
        (equal.step, _make_zero(equal.step, equal.quantity, evidence.labels))
        for equal in evidence.equal
    ]
    for matrix in evidence.matrices:
        others = dict(matrix.cells)
        cells = others.pop("sum")
        title = _make_title(matrix.step, matrix.quantity)
        heatmap = Heatmap(title, matrix.runs, cells, matrix.results, others, matrix.notes)
        placed.append((matrix.step, heatmap))
    placed.sort(key=itemgetter(0))
    return [heatmap for _, heatmap in placed]


def _make_title(step: int, quantity: str) -> str:
    return f"step {step}, {quantity}: {UNITS['sum']}"


def _make_zero(step: int, quantity: str, labels: Sequence[str]) -> Heatmap:
    """Return the matrix of a quantity that has the same bits in all runs."""
    zeros = [[0.0] * len(labels) for _ in labels]
    return Heatmap(_make_title(step, quantity), labels, zeros, [0] * len(labels), {})


def find_scale(heatmaps: Sequence[Heatmap]) -> Scale:
    """Return the common scale of all matrices."""
    values = []
    for heatmap in heatmaps:
        for row in heatmap.cells:
            values += [cell for cell in row if cell and not math.isinf(cell)]
    if not values:
        return Scale(1.0, 1.0)
    return Scale(min(values), max(values))
