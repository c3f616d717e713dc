"""The report of `envlock invariance` as one HTML page that loads nothing: a row for each mode, a
column for each batch size.

Sizes of one color give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from envlock.runtime.report import Report, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.numerics.invariance import InvarianceEvidence, ModeBits

HUES = (210, 30, 130, 280, 0, 60, 180, 320)
"""The hues of classes, chosen so that neighbors are easy to distinguish; more classes repeat them,
and have numbers.
"""

STYLE = """
:root { color-scheme: light dark; --dim: #767676; --line: #8884; --bad: #c62828; --ok: #2e7d32; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.bad { color: var(--bad); } .ok { color: var(--ok); } .dim { color: var(--dim); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 12px; }
th, td { padding: 3px 5px; min-width: 1.4em; text-align: center; border: 1px solid var(--line); }
th { font-weight: normal; color: var(--dim); } th.mode { text-align: right; white-space: nowrap; }
pre { border: 1px solid var(--line); border-radius: 6px; padding: .6rem; overflow-x: auto; font-size: 13px; }
"""


def render_page(report: Report[InvarianceEvidence], text: str) -> str:
    """Return the page with the verdict, the classes of sizes in every mode, and the text."""
    evidence = report.evidence
    verdict = "bad"
    if report.match:
        verdict = "ok"
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        f"<title>envlock invariance</title>\n<style>{STYLE}{list_colors()}</style>\n</head>\n<body>\n",
        f'<h1 class="{verdict}">{escape(clean(report.headline))}</h1>\n',
        "<p>A column is a size of the batch. In a row, sizes of one color give the sample the same bits; "
        "an empty cell was not measured.</p>\n",
        render_table(evidence.modes),
    ]
    if evidence.switched:
        parts.append("<h2>With oneDNN's switch turned</h2>\n")
        parts.append(render_table(evidence.switched))
    if evidence.remedies:
        parts.append("<h2>What helps, as measured</h2>\n<ul>\n")
        parts += [
            f"<li>{escape(remedy.mode)}: {escape(clean(remedy.text))}</li>\n"
            for remedy in evidence.remedies
        ]
        parts.append("</ul>\n")
    parts.append(f"<h2>As on the terminal</h2>\n<pre>{escape(text)}</pre>\n</body>\n</html>\n")
    return "".join(parts)


def list_colors() -> str:
    """Return a style class for each color."""
    rules = [
        f".c{number} {{ background: hsl({hue} 60% 75%); color: #111; }}"
        for number, hue in enumerate(HUES)
    ]
    return "\n".join([*rules, ""])


def render_table(modes: Sequence[ModeBits]) -> str:
    """Return a table of modes and sizes; the number in a cell is that of its class in the row."""
    measured: set[int] = set()
    for bits in modes:
        measured.update(bits.sizes)
    sizes = sorted(measured)
    head = "".join(f"<th>{size}</th>" for size in sizes)
    rows = "".join(render_row(bits, sizes) for bits in modes)
    return f'<div class="wide"><table>\n<tr><th></th>{head}</tr>\n{rows}</table></div>\n'


def render_row(bits: ModeBits, sizes: Sequence[int]) -> str:
    """Return the row of a mode."""
    numbers: dict[int, int] = {}
    for place, group in enumerate(bits.classes):
        numbers.update(dict.fromkeys(group, place))
    cells = []
    for size in sizes:
        if size not in numbers:
            cells.append("<td></td>")
            continue
        number = numbers[size]
        title = f"{bits.mode}, batches of {size}: class {number + 1}, {bits.sizes[size]}"
        color = number % len(HUES)
        cells.append(f'<td class="c{color}" title="{escape(title)}">{number + 1}</td>')
    return f'<tr><th class="mode">{escape(bits.mode)}</th>{"".join(cells)}</tr>\n'
