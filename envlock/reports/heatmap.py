"""Error matrices as pictures: an HTML page that needs nothing else, and PNG by matplotlib, which is known here only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO

from envlock.reports.repeat import UNITS
from envlock.runtime.errors import UsageError
from envlock.runtime.report import Report

LEVELS = 8
"""Of colour, between the smallest and the largest distance that is not zero, by their logarithm."""

COLORS = ("#fff7ec", "#fee8c8", "#fdd49e", "#fdbb84", "#fc8d59", "#ef6548", "#d7301f", "#990000")
_STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em; color: #222; background: #fff; }
pre { background: #f5f5f5; padding: 1em; overflow-x: auto; }
table { border-collapse: collapse; font-size: 12px; margin-bottom: 1em; }
th, td { padding: 2px 6px; text-align: right; min-width: 3.5em; border: 1px solid #ddd; }
th { font-weight: normal; color: #666; }
td.z { color: #bbb; }
"""


@dataclass(frozen=True)
class Heatmap:
    """One matrix: the distances between things of these names; None where there is none."""

    title: str
    labels: Sequence[str]
    cells: Sequence[Sequence[float | None]]
    notes: Sequence[str] = ()


def heatmaps(report: Report) -> list[Heatmap]:
    """Return the matrices of a report of `repeat`."""
    return [
        Heatmap(
            f"step {each['step']}, {each['quantity']}: {UNITS['sum']}",
            each["runs"],
            [[None if cell is None else float(cell) for cell in row] for row in each["sum"]],
            each["notes"],
        )
        for each in report.attachments["matrices"]
    ]


def page(report: Report, text: str) -> str:
    """Return a page of HTML with the text and every matrix; it loads nothing, and nothing in it is code."""
    title = f"envlock {report.command}"
    colors = "".join(
        f"td.l{n} {{ background: {color}; color: {'#fff' if n > 4 else '#222'}; }}\n" for n, color in enumerate(COLORS)
    )
    tables = "".join(_table(heatmap) for heatmap in heatmaps(report))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{colors}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n<pre>{escape(text)}</pre>\n{tables}</body>\n</html>\n"
    )


def _table(heatmap: Heatmap) -> str:
    low, high = _range(heatmap.cells)
    head = "".join(f"<th>{escape(label)}</th>" for label in heatmap.labels)
    rows = "".join(
        f"<tr><th>{escape(label)}</th>{''.join(_cell(cell, low, high) for cell in row)}</tr>\n"
        for label, row in zip(heatmap.labels, heatmap.cells, strict=True)
    )
    notes = "".join(f"<p>{escape(note)}</p>\n" for note in heatmap.notes)
    return f"<h2>{escape(heatmap.title)}</h2>\n<table>\n<tr><th></th>{head}</tr>\n{rows}</table>\n{notes}"


def _cell(cell: float | None, low: float, high: float) -> str:
    if cell is None:
        return '<td class="z">-</td>'
    if cell == 0:
        return '<td class="z">0</td>'
    return f'<td class="l{_level(cell, low, high)}">{cell:.1e}</td>'


def _level(cell: float, low: float, high: float) -> int:
    if math.isinf(cell) or high <= low:
        return LEVELS - 1
    return round((LEVELS - 1) * math.log(cell / low) / math.log(high / low))


def _range(cells: Sequence[Sequence[float | None]]) -> tuple[float, float]:
    """Return the smallest and the largest distance that is neither zero nor infinite; 1 and 1 without one."""
    values = [cell for row in cells for cell in row if cell and not math.isinf(cell)]
    return (min(values), max(values)) if values else (1.0, 1.0)


def need_png() -> None:
    """Do nothing where PNG can be written.

    Raises:
        UsageError: matplotlib is not installed beside envlock.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        hint = "install envlock again with its extra `plots`, or use `--html`"
        raise UsageError("PNG needs matplotlib, which is not installed with envlock", hint=hint) from None


def png(report: Report) -> bytes:
    """Return one picture with all matrices, below each other; every time the same bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.figure import Figure

    maps = heatmaps(report)
    colors = LinearSegmentedColormap.from_list("distances", list(COLORS)).with_extremes(bad="#ffffff", over=COLORS[-1])
    figure = Figure(figsize=(7, 6 * max(len(maps), 1)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(max(len(maps), 1), 1, squeeze=False)[:, 0]
    for axis, heatmap in zip(axes, maps, strict=False):
        low, high = _range(heatmap.cells)
        norm = LogNorm(low, high if high > low else low * 10)
        values = [[cell or math.nan for cell in row] for row in heatmap.cells]
        picture = axis.imshow(values, norm=norm, cmap=colors, interpolation="nearest")
        figure.colorbar(picture, ax=axis)
        axis.set_title(heatmap.title, fontsize=10, parse_math=False)
        if len(heatmap.labels) <= 40:
            axis.set_xticks(range(len(heatmap.labels)), heatmap.labels, rotation=90)
            axis.set_yticks(range(len(heatmap.labels)), heatmap.labels)
    if not maps:
        axes[0].set_axis_off()
        axes[0].text(0.5, 0.5, "the same bits in all runs", ha="center")
    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=100, metadata={"Software": None})
    return stream.getvalue()
