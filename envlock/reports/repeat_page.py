"""The report of `envlock repeat` as one HTML page that loads nothing: a chart, the matrices, the text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from envlock.reports.heatmap import COLORS, Heatmap, Scale, heatmaps, scale_of
from envlock.reports.repeat import UNITS, largest
from envlock.runtime.report import Report, clean, count

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 240, 64, 16, 12, 44
"""Of the chart and its margins, in units of its viewBox."""

DECADES = 5
"""The most lines across the chart."""

HUES = 12
"""Of lines; more of them repeat a color, and have their names where the pointer rests."""

_STYLE = """
:root { color-scheme: light dark; --bad: #c62828; --ok: #2e7d32; --dim: #888; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
pre { border: 1px solid var(--line); border-radius: 6px; padding: .6rem; overflow-x: auto; font-size: 13px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 12px; }
th, td { padding: 2px 6px; text-align: right; min-width: 3.5em; border: 1px solid var(--line); }
th { font-weight: normal; } th, .dim, td.z { color: var(--dim); }
.bad { color: var(--bad); } .ok { color: var(--ok); }
.key { display: inline-block; padding: 0 .6em; margin-right: .3em; border-radius: 3px; font-size: 12px; }
i.key { width: .9em; height: .9em; padding: 0; vertical-align: -.1em; }
.maps { display: flex; flex-wrap: wrap; gap: 0 2rem; } section { max-width: 100%; }
svg { width: 100%; max-width: 60rem; font-size: 11px; } svg text { fill: currentColor; }
.grid { stroke: var(--line); } .rug { fill: var(--bad); } .even { fill: var(--ok); fill-opacity: .35; }
path { fill: none; stroke-width: 1.5; }
"""


def page(report: Report, text: str) -> str:
    """Return the page with the verdict, the chart, every matrix in one scale of colors, and the text."""
    title = f"envlock {report.command}"
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    maps = heatmaps(report)
    scale = scale_of(maps)
    verdict = "ok" if report.match else "bad"
    return "".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            f"<title>{escape(title)}</title>\n<style>{_STYLE}{_colors()}</style>\n</head>\n<body>\n",
            f'<h1 class="{verdict}">{_text(report.headline)}</h1>\n',
            *(
                f'<p>{_text(each.message)}. <span class="dim">{_text(each.fix)}</span></p>\n'
                for each in report.findings
            ),
            _chart(report.attachments),
            f"<h2>Distances between runs</h2>\n{_legend(scale)}" if maps else "",
            f'<div class="maps">\n{"".join(_table(heatmap, scale) for heatmap in maps)}</div>\n',
            f"<h2>As on the terminal</h2>\n<pre>{escape(text)}</pre>\n</body>\n</html>\n",
        ]
    )


def _colors() -> str:
    levels = (
        f".l{n} {{ background: {color}; color: {'#fff' if n > 4 else '#222'}; }}" for n, color in enumerate(COLORS)
    )
    hues = [f"hsl({(210 + n * 150) % 360} 65% 48%)" for n in range(HUES)]
    lines = (
        f"path.s{n} {{ stroke: {hue}; }} .s{n} circle {{ fill: {hue}; }} i.s{n} {{ background: {hue}; }}"
        for n, hue in enumerate(hues)
    )
    return "\n".join([*levels, *lines, ""])


def _legend(scale: Scale) -> str:
    bounds = [f'<span class="key l{n}">from {low:.1e}</span>' for n, low in scale.bounds().items()]
    others = "inf is the darkest. 0: the same bits. 0*: the same values in other bits. -: no distance."
    return (
        f"<p>{UNITS['sum'].capitalize()}; one color is one distance in all matrices. Rest the pointer on a cell for "
        f'its numbers.</p>\n<p>{"".join(bounds)}<span class="dim">{others}</span></p>\n'
    )


def _table(heatmap: Heatmap, scale: Scale) -> str:
    head = "".join(f"<th>{_text(label)}</th>" for label in heatmap.labels)
    rows = "".join(
        f"<tr><th>{_text(label)}</th>{''.join(_cell(heatmap, a, b, scale) for b in range(len(heatmap.labels)))}</tr>\n"
        for a, label in enumerate(heatmap.labels)
    )
    notes = "".join(f"<p>{_text(note)}</p>\n" for note in heatmap.notes)
    table = f'<div class="wide"><table>\n<tr><th></th>{head}</tr>\n{rows}</table></div>\n'
    return f"<section><h3>{_text(heatmap.title)}</h3>\n{table}{notes}</section>\n"


def _cell(heatmap: Heatmap, a: int, b: int, scale: Scale) -> str:
    cell, same = heatmap.cells[a][b], heatmap.results[a] == heatmap.results[b]
    runs = f"runs {heatmap.labels[a]} and {heatmap.labels[b]}"
    if cell is None:
        return f'<td class="z" title="{_text(runs)}: no distance">-</td>'
    if cell == 0:
        kind = "the same bits" if same else "the same values in other bits"
        return f'<td class="z" title="{_text(runs)}: {kind}">{"0" if same else "0*"}</td>'
    numbers = (f"{UNITS[name]} {cells[a][b]:.6g}" for name, cells in heatmap.others.items() if cells[a][b] is not None)
    title = "; ".join([f"{runs}: {UNITS['sum']} {cell:.6g}", *numbers])
    return f'<td class="l{scale.level(cell)}" title="{_text(title)}">{cell:.1e}</td>'


def _chart(shown: Mapping[str, Any]) -> str:
    """Return the largest distance of each quantity at the compared steps, above all steps; nothing for one step."""
    steps: Sequence[int] = shown["steps"]
    if len(steps) < 2 or not shown["matrices"]:
        return ""
    points: dict[str, dict[int, float]] = {}
    for each in shown["matrices"]:
        points.setdefault(each["quantity"], {})[each["step"]] = largest(each["sum"])
    for each in shown["equal"]:
        if each["quantity"] in points:
            points[each["quantity"]][each["step"]] = 0.0
    values = [value for row in points.values() for value in row.values() if value and not math.isinf(value)]
    low = math.floor(math.log10(min(values, default=1.0)))
    high = max(low + 1, math.ceil(math.log10(max(values, default=1.0))))
    decades = (low, high)
    lines = "".join(_line(n % HUES, name, row, steps, decades) for n, (name, row) in enumerate(points.items()))
    names = "".join(f'<i class="key s{n % HUES}"></i>{_text(name)} ' for n, name in enumerate(points))
    compared = len({each["step"] for each in shown["matrices"]} | {each["step"] for each in shown["equal"]})
    note = (
        f"{UNITS['sum'].capitalize()}, largest of all pairs of runs, at the {count(compared, 'compared step')}; "
        f"`--step` compares others. The bar has all {count(len(steps), 'step')}, red where runs differ."
    )
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{_axes(low, high)}{lines}{_rug(shown)}</svg>'
    return f'<h2>Difference over the steps</h2>\n{svg}\n<p>{names}<br><span class="dim">{note}</span></p>\n'


def _x(step: int, steps: Sequence[int]) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (step - steps[0]) / max(steps[-1] - steps[0], 1)


def _y(value: float, decades: tuple[int, int]) -> float:
    """Return the height of a distance: the lowest line is 0, the highest an infinite one."""
    low, high = decades
    bottom, top = HEIGHT - BOTTOM - 20, TOP
    if value == 0:
        return HEIGHT - BOTTOM
    return top if math.isinf(value) else bottom - (bottom - top) * (math.log10(value) - low) / (high - low)


def _axes(low: int, high: int) -> str:
    every = math.ceil((high - low) / DECADES)
    marks = [("0", 0.0), *((f"1e{n:+03d}", 10.0**n) for n in range(low, high + 1, every))]
    heights = [(label, _y(value, (low, high))) for label, value in marks]
    return "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
        for label, y in heights
    )


def _line(number: int, name: str, row: Mapping[int, float], steps: Sequence[int], decades: tuple[int, int]) -> str:
    places = [(step, value, _x(step, steps), _y(value, decades)) for step, value in sorted(row.items())]
    path = " ".join(f"{'L' if n else 'M'}{x:.1f},{y:.1f}" for n, (_, _, x, y) in enumerate(places))
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{_text(name)}, step {step}: {value:.6g}</title></circle>'
        for step, value, x, y in places
    )
    return f'<path class="s{number}" d="{path}"/><g class="s{number}">{dots}</g>'


def _rug(shown: Mapping[str, Any]) -> str:
    """Return a bar of all steps, in which neighbors with equal findings are one piece, and the numbers of its ends."""
    steps: Sequence[int] = shown["steps"]
    width = (WIDTH - LEFT - RIGHT) / (len(steps) - 1)
    y = HEIGHT - 30
    pieces = "".join(
        f'<rect class="{"rug" if names else "even"}" x="{LEFT + width * (first - 0.5):.1f}" y="{y}" '
        f'width="{max(width * (last - first + 1) - 0.5, 0.5):.1f}" height="8"><title>'
        f"{_text(_what(steps[first], steps[last], names))}</title></rect>"
        for first, last, names in _pieces(shown)
    )
    ends = ((steps[0], LEFT, "start"), (steps[-1], WIDTH - RIGHT, "end"))
    labels = "".join(f'<text x="{x}" y="{y + 24}" text-anchor="{side}">step {step}</text>' for step, x, side in ends)
    return pieces + labels


def _what(first: int, last: int, names: Sequence[str]) -> str:
    where = f"step {first}" if first == last else f"steps {first} to {last}"
    return f"{where}: {', '.join(names) + ' differ' if names else 'the same bits'}"


def _pieces(shown: Mapping[str, Any]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield the places, first and last, of steps in a row at which the same quantities differ, and their names."""
    names: dict[int, tuple[str, ...]] = {}
    for each in shown["differing"]:
        names[each["step"]] = (*names.get(each["step"], ()), each["quantity"])
    first = 0
    found = [names.get(step, ()) for step in shown["steps"]]
    for place in range(1, len(found) + 1):
        if place == len(found) or found[place] != found[first]:
            yield first, place - 1, found[first]
            first = place


def _text(value: object) -> str:
    return escape(clean(str(value)))
