"""Error matrices as pictures: the scale of their colors, and PNG files with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO

from envlock.reports.repeat_text import UNITS
from envlock.runtime.errors import UsageError
from envlock.runtime.report import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.numerics.outcome import RepeatEvidence

LEVELS = 8
"""The number of colors between the smallest and the largest distance that is not zero, on a
logarithmic scale.
"""

LABELS_SHOWN = 40
"""The most runs whose labels are shown at the axes of a picture."""

COLORS = ("#fff7ec", "#fee8c8", "#fdd49e", "#fdbb84", "#fc8d59", "#ef6548", "#d7301f", "#990000")

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
    """Return the matrices of a report of `repeat`."""
    heatmaps = []
    for matrix in report.evidence.matrices:
        title = f"step {matrix.step}, {matrix.quantity}: {UNITS['sum']}"
        others = dict(matrix.cells)
        cells = others.pop("sum")
        heatmaps.append(Heatmap(title, matrix.runs, cells, matrix.results, others, matrix.notes))
    return heatmaps


def find_scale(heatmaps: Sequence[Heatmap]) -> Scale:
    """Return the common scale of all matrices."""
    values = []
    for heatmap in heatmaps:
        for row in heatmap.cells:
            values += [cell for cell in row if cell and not math.isinf(cell)]
    if not values:
        return Scale(1.0, 1.0)
    return Scale(min(values), max(values))


def need_matplotlib() -> None:
    """Check that PNG files can be written.

    Raises:
        UsageError: matplotlib is not installed beside envlock.
    """
    try:
        import matplotlib  # noqa: F401 (an optional package)
    except ImportError:
        hint = "install envlock again with its extra `plots`, or use `--html`"
        raise UsageError(
            "PNG needs matplotlib, which is not installed with envlock", hint=hint
        ) from None


def render_png(report: Report[RepeatEvidence]) -> bytes:
    """Return one picture with all matrices below each other; always with the same bytes."""
    # An optional package, of the extra `plots`.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.figure import Figure

    heatmaps = make_heatmaps(report)
    scale = find_scale(heatmaps)
    # A logarithmic scale needs two different ends.
    norm = LogNorm(scale.low, scale.low * 10)
    if scale.high > scale.low:
        norm = LogNorm(scale.low, scale.high)
    colors = LinearSegmentedColormap.from_list("distances", list(COLORS)).with_extremes(
        bad="#ffffff", over=COLORS[-1]
    )
    rows = max(len(heatmaps), 1)
    figure = Figure(figsize=(7, 6 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, 1, squeeze=False)[:, 0]
    for axis, heatmap in zip(axes, heatmaps, strict=False):
        values = [[cell or math.nan for cell in row] for row in heatmap.cells]
        picture = axis.imshow(values, norm=norm, cmap=colors, interpolation="nearest")
        figure.colorbar(picture, ax=axis)
        axis.set_title(heatmap.title, fontsize=10, parse_math=False)
        # More labels than that overlap.
        if len(heatmap.labels) <= LABELS_SHOWN:
            axis.set_xticks(range(len(heatmap.labels)), heatmap.labels, rotation=90)
            axis.set_yticks(range(len(heatmap.labels)), heatmap.labels)
    if not heatmaps:
        axes[0].set_axis_off()
        axes[0].text(0.5, 0.5, "the same bits in all runs", ha="center")
    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=100, metadata={"Software": None})
    return stream.getvalue()
