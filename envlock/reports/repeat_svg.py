"""The matrices of repeated runs as one SVG picture, for a paper: what was run, and every matrix in one scale."""

from __future__ import annotations

from html import escape
from textwrap import wrap

from envlock.reports.heatmap import COLORS, Heatmap, Scale, find_scale, make_heatmaps
from envlock.reports.repeat_page import FIRST_DARK
from envlock.runtime.report import Report, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.numerics.outcome import RepeatEvidence

CELL, HEIGHT, MARGIN, LINE = 52, 20, 16, 16
"""Width and height of a cell, and the space around, in units of the picture."""
WRITTEN = 12
"""Runs up to which the cells have their numbers: of more, they would not be read."""
SMALL = 14
"""The width and height of a cell without a number."""
LONGEST = 90
"""Characters of a line on an environment."""
FONT = "font-family='Helvetica, Arial, sans-serif'"


def render_svg(report: Report[RepeatEvidence], date: str | None = None) -> str:
    """Return the picture; every time the same bytes for the same report and date."""
    heatmaps = make_heatmaps(report)
    scale = find_scale(heatmaps)
    lines = [report.headline, *_list_circumstances(report.evidence, date)]
    parts, width, y = [], 480.0, MARGIN
    for number, line in enumerate(lines):
        y += LINE
        weight = "normal"
        if number == 0:
            weight = "bold"
        parts.append(_write(MARGIN, y, line, f"font-size='12' font-weight='{weight}'"))
        # An estimate, as a text has no width in SVG: 0.55 of the font's size for a letter.
        width = max(width, 2 * MARGIN + 6.6 * len(line))
    for heatmap in heatmaps:
        y += 2 * LINE
        parts.append(_write(MARGIN, y, heatmap.title, "font-size='11'"))
        drawn, right, y = _draw(heatmap, scale, y + 6)
        parts += drawn
        width = max(width, right + MARGIN)
    height = y + MARGIN
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:.0f} {height:.0f}' width='{width:.0f}' "
    ground = f"<rect width='{width:.0f}' height='{height:.0f}' fill='#fff'/>"
    return f"{head}height='{height:.0f}'>\n{ground}\n" + "\n".join(parts) + "\n</svg>\n"


def _list_circumstances(evidence: RepeatEvidence, date: str | None) -> list[str]:
    lines = [f"{name}: {value}" for name, value in evidence.circumstances.items()]
    for name, environment in evidence.environments.items():
        facts = ", ".join(f"{what} {value}" for what, value in environment.items())
        lines += wrap(f"{name}: {facts}", LONGEST)
    if date is not None:
        lines.append(f"date: {date}")
    return lines


def _draw(heatmap: Heatmap, scale: Scale, top: int) -> tuple[list[str], float, int]:
    """Return the parts of a matrix below `top`, its right edge and its bottom."""
    runs = len(heatmap.labels)
    width, height = SMALL, SMALL
    if runs <= WRITTEN:
        width, height = CELL, HEIGHT
    left = MARGIN + 40
    parts = []
    for a, label in enumerate(heatmap.labels):
        y = top + LINE + a * height
        middle = y + height / 2 + 4
        if runs <= WRITTEN:
            x = left + a * width + width / 2
            parts.append(
                _write(x, top + 11, label, "font-size='10' text-anchor='middle' fill='#555'")
            )
            parts.append(
                _write(left - 6, middle, label, "font-size='10' text-anchor='end' fill='#555'")
            )
        for b in range(runs):
            text, background, color = _describe(heatmap, a, b, scale)
            x = left + b * width
            box = f"x='{x}' y='{y}' width='{width}' height='{height}'"
            parts.append(f"<rect {box} fill='{background}' stroke='#ccc' stroke-width='0.5'/>")
            if runs <= WRITTEN:
                style = f"font-size='10' text-anchor='middle' fill='{color}'"
                parts.append(_write(x + width / 2, middle, text, style))
    return parts, left + runs * width, top + LINE + runs * height


def _describe(heatmap: Heatmap, a: int, b: int, scale: Scale) -> tuple[str, str, str]:
    """Return a cell's text, its background and the color of its text."""
    cell = heatmap.cells[a][b]
    if cell is None:
        return "-", "#fff", "#555"
    if cell == 0:
        if heatmap.results[a] == heatmap.results[b]:
            return "0", "#fff", "#555"
        return "0*", "#fff", "#555"
    level = scale.find_level(cell)
    color = "#222"
    if level >= FIRST_DARK:
        color = "#fff"
    return f"{cell:.1e}", COLORS[level], color


def _write(x: float, y: float, text: str, style: str) -> str:
    return f"<text x='{x:g}' y='{y:g}' {FONT} {style}>{escape(clean(text))}</text>"
