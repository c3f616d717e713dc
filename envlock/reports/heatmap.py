"""Error matrices as pictures: their cells, and the scale of their colors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from envlock.reports.repeat_text import describe_equal, list_representatives
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
    """One matrix: the distances between runs with these names, of which no two have the same bits; None
    if there is no distance.
    """

    step: int
    quantity: str
    labels: Sequence[str]
    cells: Cells
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
    """Return the matrices of a report of `repeat`, by step, with a row for each different result."""
    heatmaps = []
    for matrix in report.evidence.matrices:
        shown = list_representatives(matrix.results)
        picked = {
            measure: [[cells[a][b] for b in shown] for a in shown]
            for measure, cells in matrix.cells.items()
        }
        equal = describe_equal(matrix.runs, matrix.results)
        heatmaps.append(
            Heatmap(
                matrix.step,
                matrix.quantity,
                [matrix.runs[a] for a in shown],
                picked.pop("sum"),
                picked,
                (*([equal.capitalize() + "."] if equal else []), *matrix.notes),
            )
        )
    return sorted(heatmaps, key=lambda each: each.step)


def find_scale(heatmaps: Sequence[Heatmap]) -> Scale:
    """Return the common scale of all matrices."""
    values = []
    for heatmap in heatmaps:
        for row in heatmap.cells:
            values += [cell for cell in row if cell and not math.isinf(cell)]
    if not values:
        return Scale(1.0, 1.0)
    return Scale(min(values), max(values))
