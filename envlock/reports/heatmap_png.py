"""Heat maps as a picture, by matplotlib: an optional package, of the extra `plots`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import BytesIO

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure

from envlock.reports.heatmap import COLORS, LABELS_SHOWN, find_scale, make_heatmaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.numerics.outcome import RepeatEvidence
    from envlock.runtime.report import Report


def render_png(report: Report[RepeatEvidence]) -> bytes:
    """Return one picture with all matrices below each other; always with the same bytes."""
    heatmaps = make_heatmaps(report)
    scale = find_scale(heatmaps)
    # A logarithmic scale needs two ends.
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
        values = list(map(_blank_zeros, heatmap.cells))
        picture = axis.imshow(values, norm=norm, cmap=colors, interpolation="nearest")
        figure.colorbar(picture, ax=axis)
        axis.set_title(heatmap.title, fontsize=10, parse_math=False)
        axis.set_xlabel("run")
        axis.set_ylabel("run")
        # More labels than that overlap.
        if len(heatmap.labels) <= LABELS_SHOWN:
            axis.set_xticks(range(len(heatmap.labels)), heatmap.labels, rotation=90)
            axis.set_yticks(range(len(heatmap.labels)), heatmap.labels)
    program = report.evidence.circumstances.get("program")
    if program is not None:
        figure.suptitle(program, fontsize=11, parse_math=False)
    if not heatmaps:
        axes[0].set_axis_off()
        axes[0].text(0.5, 0.5, "the same bits in all runs", ha="center")
    stream = BytesIO()
    # Without matplotlib's version, which it would write: the same matrices give the same bytes.
    figure.savefig(stream, format="png", dpi=100, metadata={"Software": None})
    return stream.getvalue()


def _blank_zeros(row: Sequence[float | None]) -> list[float]:
    """Return a row in which a zero, which has no logarithm, gets the color of what is missing."""
    return [cell or math.nan for cell in row]
