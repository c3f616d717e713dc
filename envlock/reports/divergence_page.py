"""The report of `envlock diverge` as one HTML page by itself: no script, no network, every word escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from envlock.reports.diverge import read_at
from envlock.runtime.report import Report, clean

STYLE = """
:root { color-scheme: light dark; --bad: #c62828; --warn: #b26a00; --ok: #2e7d32; --dim: #777; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
code, pre, td { font-family: ui-monospace, monospace; font-size: 13px; }
pre { border: 1px solid var(--line); border-radius: 6px; padding: .6rem; overflow-x: auto; }
.here { background: #c6282822; display: block; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem; vertical-align: top; overflow-wrap: anywhere; }
.cause td { background: #c6282822; } .carried td { background: #b26a0018; }
.cause td:first-child { border-left: 4px solid var(--bad); } .carried td:first-child { border-left: 4px solid #b26a00; }
.same td:first-child { border-left: 4px solid var(--ok); }
.bad { color: var(--bad); } .ok { color: var(--ok); } .dim { color: var(--dim); }
.runs span { display: inline-block; min-width: 1.6em; text-align: center; border-radius: 4px; margin-right: 2px; }
"""
STATES = {
    "same": "same",
    "cause": "differs independently",
    "carried": "differs because of its inputs",
}
COLORS = 12  # of results; further ones have their number only


def page(report: Report) -> str:
    """Return the page for a report of `diverge`."""
    seen = report.attachments
    headline = report.headline
    if report.findings:
        headline = report.findings[0].message
    verdict = "bad"
    if report.match:
        verdict = "ok"
    title = f"envlock diverge: {seen['target']}"
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_escape(title)}</title><style>{STYLE}</style></head><body>\n",
        f'<h1 class="{verdict}">{_escape(headline)}</h1>\n',
        _render_circumstances(seen),
    ]
    if seen["verdict"] == "identical":
        parts += [_render_list("Limits", report.notes), _render_levels(seen["levels"])]
        parts.append(_render_list("Other findings", _select_others(report)))
    else:
        parts += _render_difference(report)
    for failure in seen["failures"]:
        parts.append(f"<h2>Traceback</h2>\n<pre>{_escape(failure['traceback'])}</pre>\n")
    parts.append("</body></html>\n")
    return "".join(parts)


def _render_difference(report: Report) -> list[str]:
    """Return the sections for runs that differ: the cause first, then what it rests on."""
    seen = report.attachments
    return [
        _render_explanation(report),
        _render_list("Limits", report.notes),
        _render_place(seen),
        _render_levels(seen["levels"]),
        _render_evidence(report),
        _render_list("Other findings", _select_others(report)),
        _render_timeline(seen["timeline"]),
    ]


def _select_others(report: Report) -> list[str]:
    """Return the operations beside the first finding, which is the headline already."""
    return [each.message for each in report.findings[1:] if each.rule == "operation"]


def _render_circumstances(seen: Mapping[str, Any]) -> str:
    text = f"{seen['runs']} runs of {seen['target']} with TensorFlow {seen['tensorflow']}"
    if seen["keras"]:
        text += f", Keras {seen['keras']}"
    return f'<p class="dim">{_escape(text)}</p>\n'


def _render_levels(levels: Iterable[Mapping[str, Any]]) -> str:
    rows = []
    for level in levels:
        found = "identical"
        if level["name"] is not None:
            found = f"step {level['step']}: {level['name']}"
        runs = "".join(_render_result(number) for number in level["groups"])
        cells = f'<td>{_escape(level["mode"])}</td><td>{_escape(found)}</td><td class="runs">{runs}</td>'
        rows.append(f"<tr>{cells}<td>{level['entries']:,}</td><td>{level['steps']}</td></tr>")
    head = "<tr><th>run</th><th>first difference</th><th>result of each run</th><th>entries</th><th>steps</th></tr>"
    return f"<h2>Comparisons</h2>\n<table>{head}{''.join(rows)}</table>\n"


def _render_result(number: int) -> str:
    """Return the number of a run's result on a color of its own."""
    hue = number % COLORS * 360 // COLORS
    return f'<span style="background:hsl({hue} 60% 60% / .45)">{number}</span>'


def _render_explanation(report: Report) -> str:
    """Return why it happens and what helps: what a reader wants first."""
    cause = report.findings[0]
    known = report.attachments["known"]
    remedies = _render_list("Remedies", cause.fix.split("\n"))
    text = f"<h2>Why</h2>\n<p>{_escape(cause.why)}</p>\n{remedies}"
    if known is not None:
        text += f'<p class="dim">{_escape(known["row"])}: {_escape(known["source"])}</p>\n'
    return text


def _render_place(seen: Mapping[str, Any]) -> str:
    parts = ["<h2>Where</h2>\n"]
    place = seen["place"]
    if place is None:
        parts.append("<p>Not in a line of the program.</p>\n")
    else:
        parts.append(
            f"<p><code>{_escape(place['file'])}:{place['line']}</code> in {_escape(place['function'])}</p>\n"
        )
        parts.append(_render_source(seen["source"], seen["source_from"], place["line"]))
    maker = seen["maker"]
    if maker is not None:
        at = maker["place"]
        where = f"<code>{_escape(at['file'])}:{at['line']}</code>"
        parts.append(f"<p>The value was made in {where}, by {_escape(maker['name'])}:</p>\n")
        parts.append(_render_source([maker["text"]], at["line"], at["line"]))
    return "".join(parts)


def _render_evidence(report: Report) -> str:
    """Return what the verdict rests on."""
    seen = report.attachments
    found = [each for each in report.findings if each.rule.startswith("ENV")]
    pipelines = [f"{each.rule} {each.message}{read_at(each)}; {each.fix}" for each in found]
    suspects = [
        f"{each['type']} {each['name']}{_locate(each['place'])}" for each in seen["suspects"]
    ]
    parts = [
        _render_origins(seen["origins"], seen["differing"]),
        _render_list("Attempts", seen["because"]),
        _render_list("The pipeline", pipelines),
        _render_list("Graph operations that can be the cause", suspects),
    ]
    return "".join(parts)


def _render_source(lines: Iterable[str], start: int, wanted: int) -> str:
    """Return lines of a program with their numbers, the wanted one marked; nothing without lines."""
    rows = []
    for number, line in enumerate(lines, start):
        row = f"{number:>5}  {_escape(line)}"
        if number == wanted:
            rows.append(f'<span class="here">{row}</span>')
        else:
            rows.append(f"{row}\n")
    if not rows:
        return ""
    return f"<pre>{''.join(rows)}</pre>\n"


def _render_origins(origins: Iterable[Mapping[str, Any]], differing: Iterable[int]) -> str:
    rows = []
    for each in origins:
        by = "outside operations: a constant, or Python"
        if each["made_by"]:
            by = f"{each['made_by']['type']}{_locate(each['made_by']['place'])}"
        state = "equal"
        if each["input"] in differing:
            state = "differs"
        rows.append(
            f"<tr><td>{_escape(each['spec'])}</td><td>{_escape(by)}</td><td>{state}</td></tr>"
        )
    if not rows:
        return ""
    head = "<tr><th>input</th><th>made by</th><th>in the runs</th></tr>"
    return f"<h2>Inputs</h2>\n<table>{head}{''.join(rows)}</table>\n"


def _render_timeline(lines: Iterable[Mapping[str, Any]]) -> str:
    rows = []
    for each in lines:
        columns = "".join(f"<td>{_escape(cell)}</td>" for cell in _fill_row(each))
        rows.append(f'<tr class="{each["state"]}">{columns}</tr>')
    names = ("entry", "step", "operation", "gives", "line", "in the runs", "results")
    head = "".join(f"<th>{name}</th>" for name in names)
    return f'<h2>Surrounding operations</h2>\n<table id="timeline"><tr>{head}</tr>{"".join(rows)}</table>\n'


def _fill_row(entry: Mapping[str, Any]) -> list[str]:
    """Return the cells of one entry of the timeline."""
    what = entry.get("type") or f"value {entry['value']}"
    if entry.get("name"):
        what += f" {entry['name']}"
    specs = " ".join(side["spec"] for side in entry["outputs"])
    line = _locate(entry.get("place")).removeprefix(" at ")
    # How many results there were says something only where the runs do not agree.
    results = ""
    if entry["state"] != "same":
        results = str(entry["distinct"])
    return [
        str(entry["number"]),
        str(entry["step"]),
        what,
        specs,
        line,
        STATES[entry["state"]],
        results,
    ]


def _render_list(title: str, items: Iterable[str]) -> str:
    """Return a heading with a list; nothing without items."""
    listed = "".join(f"<li>{_escape(item)}</li>" for item in items)
    if not listed:
        return ""
    return f"<h2>{_escape(title)}</h2>\n<ul>{listed}</ul>\n"


def _locate(place: Mapping[str, Any] | None) -> str:
    """Return where a line stands, with ` at ` before it; nothing where that is unknown."""
    if not place:
        return ""
    return f" at {place['file']}:{place['line']}"


def _escape(text: str) -> str:
    return escape(clean(text))
