"""The report of `envlock repeat` as an HTML page that loads nothing: a chart, matrices, the text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from envlock.evidence.repeat.repeat_summary import summarize_quantities
from envlock.evidence.repeat.repeat_text import (
    UNITS,
    describe_equal,
    list_compared_steps,
    list_representatives,
    render_next,
)
from envlock.runtime.report import Finding, Report, clean, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.evidence.repeat.outcome import RepeatEvidence

LEVELS = 8
"""The number of colors between the smallest and the largest distance that is not zero, on a
logarithmic scale.
"""

COLORS = ("#fee3b8", "#fdd49e", "#fdbb84", "#fc8d59", "#ef6548", "#d7301f", "#b30000", "#7f0000")
"""From light to dark, the first one easy to tell from the white of a zero."""

Cells = Sequence[Sequence[float | None]]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 240, 64, 16, 12, 44
"""The size of the chart and its margins, in units of its viewBox."""

DECADES = 5
"""The most horizontal lines in the chart."""

FIRST_DARK = 5
"""The number of the first color of a cell on which white text is easier to read than black."""

DOTS = 100
"""The most points of a line that are drawn, each with its number under the pointer."""

HUES = 12
"""The hues of lines; more lines repeat a color, and show their names under the pointer."""

_STYLE = """
:root { color-scheme: light dark; --bad: #c62828; --warn: #b26a00; --ok: #2e7d32; --dim: #777; --line: #8884; }
@media (prefers-color-scheme: dark) { :root { --bad: #ef5350; --warn: #ffb74d; --ok: #81c784; --dim: #aaa; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
pre { border: 1px solid var(--line); border-radius: 6px; padding: .6rem; overflow-x: auto; font-size: 13px; }
.wide { overflow-x: auto; } table { border-collapse: collapse; }
.bad { color: var(--bad); } .ok { color: var(--ok); } .dim { color: var(--dim); }
table { font-size: 12px; }
th, td { padding: 2px 6px; text-align: right; min-width: 3.5em; border: 1px solid var(--line); white-space: nowrap; }
.facts th, .facts td { text-align: left; } .facts td { white-space: normal; overflow-wrap: break-word; max-width: 50rem; }
.short td { white-space: nowrap; } th { font-weight: normal; } th, td.z { color: var(--dim); }
.key { display: inline-block; padding: 0 .6em; margin-right: .3em; border-radius: 3px; font-size: 12px; }
i.key { width: .9em; height: .9em; padding: 0; vertical-align: -.1em; }
.maps { display: flex; flex-wrap: wrap; gap: 0 2rem; } section { max-width: 100%; }
svg { width: 100%; min-width: 34rem; max-width: 60rem; font-size: 11px; } svg text { fill: currentColor; }
polyline { fill: none; stroke-width: 2; } h4 { font-size: .9rem; margin: .6rem 0 .3rem; }
@media print { body { font-size: 10pt; margin: 0; } pre { white-space: pre-wrap; } h2, h3, h4, h3 + p { break-after: avoid; }
  .wide { overflow: visible; } .short td, .short th { white-space: normal; overflow-wrap: break-word; } svg { min-width: 0; }
  section, svg, tr, .facts { break-inside: avoid; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
.grid { stroke: var(--line); } .rug { fill: var(--bad); } .even { fill: var(--ok); fill-opacity: .35; }
"""


# A page is passed on: whatever names of a script are in it, it loads and runs nothing.
# https://developer.mozilla.org/en-US/docs/Web/HTTP/Guides/CSP
_HEAD = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head><body>
<h1 class="{verdict}">{headline}</h1>
"""


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


def _make_heatmaps(report: Report[RepeatEvidence]) -> list[Heatmap]:
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


def _find_scale(heatmaps: Sequence[Heatmap]) -> Scale:
    """Return the common scale of all matrices."""
    values = []
    for heatmap in heatmaps:
        for row in heatmap.cells:
            values += [cell for cell in row if cell and not math.isinf(cell)]
    if not values:
        return Scale(1.0, 1.0)
    return Scale(min(values), max(values))


def render_page(report: Report[RepeatEvidence], text: str) -> str:
    """Return the page: the verdict, what was run, which quantities differ, the chart, every matrix
    in one scale of colors, and the text.
    """
    title = f"envlock {report.command}"
    program = report.evidence.circumstances.get("program")
    if program is not None:
        title += f": {program}"
    heatmaps = _make_heatmaps(report)
    scale = _find_scale(heatmaps)
    following = render_next(report.evidence)
    parts = [_render_finding(each, following) for each in report.findings]
    if following is not None:
        parts.append(f"<p>{_render_code(following.capitalize())}.</p>\n")
    parts.append(_render_quantities(report.evidence))
    parts.append(_render_chart(report.evidence))
    if heatmaps:
        parts.append(f"<h2>Distances between runs</h2>\n{_render_legend(scale)}")
    parts += [
        _render_step(step, report.evidence, heatmaps, scale)
        for step in list_compared_steps(report.evidence)
    ]
    parts.append(_render_circumstances(report.evidence))
    parts.append(f"<h2>As on the terminal</h2>\n<pre>{escape(text)}</pre>\n")
    head = _HEAD.format(
        title=_escape_text(title),
        style=_STYLE + _list_colors(),
        verdict="ok" if report.match else "bad",
        headline=_escape_text(report.headline),
    )
    return "".join([head, *parts, "</body></html>\n"])


def _escape_text(value: object) -> str:
    """Return a value as text that a browser shows as it is."""
    return escape(clean(str(value)))


def _render_circumstances(evidence: RepeatEvidence) -> str:
    """Return what was run, where and how, as a table."""
    rows = dict(evidence.circumstances)
    rows["runs"] = str(len(evidence.labels))
    for name, environment in evidence.environments.items():
        suffix = f" ({name})" if len(evidence.environments) > 1 else ""
        for what, value in environment.items():
            rows[f"{what}{suffix}"] = value
    body = ""
    for name, value in rows.items():
        body += f"<tr><th>{_escape_text(name)}</th><td>{_escape_text(value)}</td></tr>\n"
    return f'<h2>What was run</h2>\n<div class="wide"><table class="facts">\n{body}</table></div>\n'


def _render_quantities(evidence: RepeatEvidence) -> str:
    """Return a table of the quantities: where each differs first, how often, and how far."""
    summaries = summarize_quantities(evidence)
    if not summaries:
        return ""
    recorded = {each.quantity: each for each in evidence.recorded}
    body = ""
    for each in summaries:
        first = f"step {each.first}" if each.first is not None else "never"
        what = recorded.get(each.name)
        cells = [
            each.name,
            *((what.shape, what.kind, what.digest) if what is not None else ("", "", "")),
        ]
        cells += [first, f"{each.often} of {len(evidence.steps)} steps", each.largest]
        body += "<tr>" + "".join(f"<td>{_escape_text(cell)}</td>" for cell in cells) + "</tr>\n"
    head = "".join(
        f"<th>{name}</th>"
        for name in (
            "quantity",
            "shape",
            "type",
            "digest of the first run",
            "first step that differs",
            "how often",
            "largest distance",
        )
    )
    return (
        f'<h2>Quantities</h2>\n<div class="wide"><table class="facts short">\n<tr>{head}</tr>\n{body}'
        "</table></div>\n"
    )


def _render_finding(finding: Finding, following: str | None) -> str:
    lines = finding.fix.split("\n")
    # What `envlock diverge` does is in the next step.
    if finding.rule == "runs-differ" and following is not None:
        lines = lines[:-1]
    fix = _render_code(" ".join(lines))
    message = finding.message[:1].upper() + finding.message[1:]
    return f'<p>{_escape_text(message)}. <span class="dim">{fix}</span></p>\n'


def _render_code(text: str) -> str:
    """Return a text of which the parts in backquotes are code."""
    parts = _escape_text(text).split("`")
    return "".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts))


def _render_step(
    step: int, evidence: RepeatEvidence, heatmaps: Sequence[Heatmap], scale: Scale
) -> str:
    """Return a step: one line for all that is equal there, a matrix for each quantity that is not."""
    equal = [_escape_text(each.quantity) for each in evidence.equal if each.step == step]
    line = f'<p class="dim">The same bits in all runs: {", ".join(equal)}.</p>\n' if equal else ""
    own = [_render_table(heatmap, scale) for heatmap in heatmaps if heatmap.step == step]
    tables = f'<div class="maps">\n{"".join(own)}</div>\n' if own else ""
    return f"<h3>Step {step}</h3>\n{line}{tables}"


def _list_colors() -> str:
    """Return a class for each color of a cell, and one for each line of the chart."""
    rules = []
    for n, background in enumerate(COLORS):
        text = "#fff" if n >= FIRST_DARK else "#222"
        rules.append(f".l{n} {{ background: {background}; color: {text}; }}")
    for n in range(HUES):
        # Neighbors are 150 degrees apart, so that consecutive lines are easy to distinguish.
        hue = f"hsl({(210 + n * 150) % 360} 65% 48%)"
        # The line below shows in the gaps of one that hides it.
        gaps = " stroke-dasharray: 7 5;" if n % 2 else ""
        rules.append(
            f".s{n} circle {{ fill: {hue}; }} .s{n} polyline {{ stroke: {hue};{gaps} }} i.s{n} {{ background: {hue}; }}"
        )
    return "\n".join([*rules, ""])


def _render_legend(scale: Scale) -> str:
    bounds = [
        f'<span class="key l{n}">from {low:.1e}</span>' for n, low in scale.list_bounds().items()
    ]
    others = (
        "inf is the darkest. 0: the same bits. 0*: the same values in other bits. -: no distance."
    )
    return (
        f"<p>{UNITS['sum'].capitalize()}; one color is one distance in all matrices. Rest the pointer on a cell for "
        f'its numbers.</p>\n<p>{"".join(bounds)}<span class="dim">{others}</span></p>\n'
    )


def _render_table(heatmap: Heatmap, scale: Scale) -> str:
    head = rows = ""
    for a, label in enumerate(heatmap.labels):
        head += f"<th>{_escape_text(label)}</th>"
        cells = "".join(_render_cell(heatmap, a, b, scale) for b in range(len(heatmap.labels)))
        rows += f"<tr><th>{_escape_text(label)}</th>{cells}</tr>\n"
    notes = ""
    for note in heatmap.notes:
        notes += f"<p>{_escape_text(note)}</p>\n"
    table = f'<div class="wide"><table>\n<tr><th></th>{head}</tr>\n{rows}</table></div>\n'
    return f"<section><h4>{_escape_text(heatmap.quantity)}</h4>\n{table}{notes}</section>\n"


def _render_cell(heatmap: Heatmap, a: int, b: int, scale: Scale) -> str:
    cell = heatmap.cells[a][b]
    runs = f"runs {heatmap.labels[a]} and {heatmap.labels[b]}"
    if cell is None:
        return f'<td class="z" title="{_escape_text(runs)}: no distance">-</td>'
    if a == b and cell == 0:
        return f'<td class="z" title="{_escape_text(runs)}: the same bits">0</td>'
    if cell == 0:
        return f'<td class="z" title="{_escape_text(runs)}: the same values in other bits">0*</td>'
    title = f"{runs}: {UNITS['sum']} {cell:.6g}"
    for name, cells in heatmap.others.items():
        if cells[a][b] is not None:
            title += f"; {UNITS[name]} {cells[a][b]:.6g}"
    return f'<td class="l{scale.find_level(cell)}" title="{_escape_text(title)}">{cell:.1e}</td>'


def _render_chart(evidence: RepeatEvidence) -> str:
    """Return a chart of the largest distance of each quantity over the steps; empty for a single
    step.
    """
    steps = evidence.steps
    if len(steps) < 2 or not evidence.matrices:
        return ""
    points = _collect_points(evidence)
    low, high = _find_decades(points)
    lines, names = "", ""
    for n, (name, row) in enumerate(points.items()):
        lines += _render_points(n % HUES, name, row, steps, (low, high))
        names += f'<i class="key s{n % HUES}"></i>{_escape_text(name)} '
    measured = len({(each.step, each.quantity) for each in evidence.distances})
    left_out = len(evidence.differing) - measured
    gaps = f" {left_out:,} of them {'is' if left_out == 1 else 'are'} not measured: the arrays are large."
    note = (
        f"{UNITS['sum'].capitalize()}, largest of all pairs of runs, at every step at which a quantity differs."
        f"{gaps if left_out else ''} The bar has all {count(len(steps), 'step')}, red where runs differ."
    )
    content = f"{_render_axes(low, high)}{lines}{_render_bar(evidence)}"
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{content}</svg>'
    legend = f'<p>{names}<br><span class="dim">{note}</span></p>'
    return f'<h2>Difference over the steps</h2>\n<div class="wide">{svg}</div>\n{legend}\n'


def _collect_points(evidence: RepeatEvidence) -> dict[str, dict[int, float]]:
    """Return the largest distance at each step where it is known, for every quantity that differs at
    some step.
    """
    differing = {(each.step, each.quantity) for each in evidence.differing}
    known = {(each.step, each.quantity): each.largest for each in evidence.distances}
    points: dict[str, dict[int, float]] = {}
    for name in dict.fromkeys(each.quantity for each in evidence.differing):
        row = points[name] = {}
        for step in evidence.steps:
            value = known.get((step, name)) if (step, name) in differing else 0.0
            if value is not None:
                row[step] = value
    return points


def _find_decades(points: Mapping[str, Mapping[int, float]]) -> tuple[int, int]:
    """Return the powers of ten that enclose all finite distances; at least one decade."""
    values = []
    for row in points.values():
        values += [value for value in row.values() if value and not math.isinf(value)]
    low = math.floor(math.log10(min(values, default=1.0)))
    high = math.ceil(math.log10(max(values, default=1.0)))
    return low, max(low + 1, high)


def _find_x(step: int, steps: Sequence[int]) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (step - steps[0]) / max(steps[-1] - steps[0], 1)


def _find_y(value: float, decades: tuple[int, int]) -> float:
    """Return the height of a distance: the lowest line stands for 0, the highest for infinity."""
    low, high = decades
    bottom, top = HEIGHT - BOTTOM - 20, TOP
    if value == 0:
        return HEIGHT - BOTTOM
    if math.isinf(value):
        return top
    return bottom - (bottom - top) * (math.log10(value) - low) / (high - low)


def _render_axes(low: int, high: int) -> str:
    every = math.ceil((high - low) / DECADES)
    marks = [("0", 0.0), *((f"1e{n:+03d}", 10.0**n) for n in range(low, high + 1, every))]
    lines = ""
    for label, value in marks:
        y = _find_y(value, (low, high))
        lines += f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        lines += f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    return lines


def _render_points(
    number: int, name: str, row: Mapping[int, float], steps: Sequence[int], decades: tuple[int, int]
) -> str:
    places = {step: (_find_x(step, steps), _find_y(value, decades)) for step, value in row.items()}
    content = ""
    for run in _split_known(steps, row):
        path = " ".join(f"{places[step][0]:.1f},{places[step][1]:.1f}" for step in run)
        content += f'<polyline points="{path}"/>'
    radius = 2 if number % 2 else 4  # see the gaps of its line
    if len(row) <= DOTS:
        for step, (x, y) in places.items():
            title = f"{_escape_text(name)}, step {step}: {row[step]:.6g}"
            content += (
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}"><title>{title}</title></circle>'
            )
    return f'<g class="s{number}">{content}</g>'


def _split_known(steps: Sequence[int], row: Mapping[int, float]) -> Iterator[list[int]]:
    """Yield the steps between which a line is drawn: where one was not measured, there is a gap."""
    run: list[int] = []
    for step in steps:
        if step in row:
            run.append(step)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _render_bar(evidence: RepeatEvidence) -> str:
    """Return a bar of all steps, with one piece for consecutive steps at which the same quantities
    differ.
    """
    steps = evidence.steps
    step_width = (WIDTH - LEFT - RIGHT) / (len(steps) - 1)
    y = HEIGHT - 30
    bar = ""
    for first, last, names in _split_steps(evidence):
        kind = "rug" if names else "even"
        x = LEFT + step_width * (first - 0.5)
        width = max(step_width * (last - first + 1) - 0.5, 0.5)
        title = _escape_text(_describe_steps(steps[first], steps[last], names))
        box = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="8"'
        bar += f'<rect class="{kind}" {box}><title>{title}</title></rect>'
    for step, x, side in ((steps[0], LEFT, "start"), (steps[-1], WIDTH - RIGHT, "end")):
        bar += f'<text x="{x}" y="{y + 24}" text-anchor="{side}">step {step}</text>'
    return bar


def _describe_steps(first: int, last: int, names: Sequence[str]) -> str:
    where = f"step {first}" if first == last else f"steps {first} to {last}"
    if not names:
        return f"{where}: the same bits"
    return f"{where}: {', '.join(names)} differ"


def _split_steps(evidence: RepeatEvidence) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield (first, last, names) for consecutive steps at which the same quantities differ."""
    names: dict[int, tuple[str, ...]] = {}
    for each in evidence.differing:
        names[each.step] = (*names.get(each.step, ()), each.quantity)
    first = 0
    found = [names.get(step, ()) for step in evidence.steps]
    for place in range(1, len(found) + 1):
        if place == len(found) or found[place] != found[first]:
            yield first, place - 1, found[first]
            first = place
