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
STATES = {"same": "same", "cause": "differs independently", "carried": "differs because of its inputs"}
COLORS = 12  # of results; further ones have their number only


def page(report: Report) -> str:
    """Return the page for a report of `diverge`."""
    seen = report.attachments
    same = seen["verdict"] == "identical"
    headline = report.findings[0].message if report.findings else report.headline
    title = f"envlock diverge: {seen['target']}"
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    others = [each.message for each in report.findings[1:] if each.rule == "operation"]
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(title)}</title><style>{STYLE}</style></head><body>\n",
            f'<h1 class="{"ok" if report.match else "bad"}">{_text(headline)}</h1>\n',
            _circumstances(seen),
            "" if same else _explanation(report),
            _list("Limits", report.notes),
            "" if same else _place(seen),
            _levels(seen["levels"]),
            "" if same else _evidence(report),
            _list("Other findings", others),
            "" if same else _timeline(seen["timeline"]),
            *(f"<h2>Traceback</h2>\n<pre>{_text(each['traceback'])}</pre>\n" for each in seen["failures"]),
            "</body></html>\n",
        ]
    )


def _circumstances(report: Mapping[str, Any]) -> str:
    keras = f", Keras {report['keras']}" if report["keras"] else ""
    text = f"{report['runs']} runs of {report['target']} with TensorFlow {report['tensorflow']}{keras}"
    return f'<p class="dim">{_text(text)}</p>\n'


def _levels(levels: Iterable[Mapping[str, Any]]) -> str:
    rows = []
    for level in levels:
        found = "identical" if level["name"] is None else f"step {level['step']}: {level['name']}"
        runs = "".join(_run(each) for each in level["groups"])
        cells = f'<td>{_text(level["mode"])}</td><td>{_text(found)}</td><td class="runs">{runs}</td>'
        rows.append(f"<tr>{cells}<td>{level['entries']:,}</td><td>{level['steps']}</td></tr>")
    head = "<tr><th>run</th><th>first difference</th><th>result of each run</th><th>entries</th><th>steps</th></tr>"
    return f"<h2>Comparisons</h2>\n<table>{head}{''.join(rows)}</table>\n"


def _run(number: int) -> str:
    hue = number % COLORS * 360 // COLORS
    return f'<span style="background:hsl({hue} 60% 60% / .45)">{number}</span>'


def _explanation(report: Report) -> str:
    """Return why it happens and what helps: what a reader wants first."""
    cause, known = report.findings[0], report.attachments["known"]
    row = "" if known is None else f'<p class="dim">{_text(known["row"])}: {_text(known["source"])}</p>\n'
    remedies = _list("Remedies", cause.fix.split("\n"))
    return f"<h2>Why</h2>\n<p>{_text(cause.why)}</p>\n{remedies}{row}"


def _place(seen: Mapping[str, Any]) -> str:
    parts = ["<h2>Where</h2>\n"]
    place = seen["place"]
    if place is None:
        parts.append("<p>Not in a line of the program.</p>\n")
    else:
        parts.append(f"<p><code>{_text(place['file'])}:{place['line']}</code> in {_text(place['function'])}</p>\n")
        parts.append(_source(seen["source"], seen["source_from"], place["line"]))
    maker = seen["maker"]
    if maker is not None:
        at = maker["place"]
        parts.append(
            f"<p>The value was made in <code>{_text(at['file'])}:{at['line']}</code>, by {_text(maker['name'])}:</p>\n"
        )
        parts.append(_source([maker["text"]], at["line"], at["line"]))
    return "".join(parts)


def _evidence(report: Report) -> str:
    """Return what the verdict rests on."""
    seen = report.attachments
    parts = [_origins(seen["origins"], seen["differing"]), _list("Attempts", seen["because"])]
    found = [each for each in report.findings if each.rule.startswith("ENV")]
    pipelines = [f"{each.rule} {each.message}{read_at(each)}; {each.fix}" for each in found]
    parts.append(_list("The pipeline", pipelines))
    suspects = [f"{each['type']} {each['name']}{_at(each['place'])}" for each in seen["suspects"]]
    parts.append(_list("Graph operations that can be the cause", suspects))
    return "".join(parts)


def _source(lines: Iterable[str], start: int, wanted: int) -> str:
    rows = []
    for number, line in enumerate(lines, start):
        row = f"{number:>5}  {_text(line)}"
        rows.append(f'<span class="here">{row}</span>' if number == wanted else f"{row}\n")
    return f"<pre>{''.join(rows)}</pre>\n" if rows else ""


def _origins(origins: Iterable[Mapping[str, Any]], differing: Iterable[int]) -> str:
    rows = []
    for each in origins:
        made = each["made_by"]
        by = f"{made['type']}{_at(made['place'])}" if made else "outside operations: a constant, or Python"
        differs = "differs" if each["input"] in differing else "equal"
        rows.append(f"<tr><td>{_text(each['spec'])}</td><td>{_text(by)}</td><td>{differs}</td></tr>")
    head = "<tr><th>input</th><th>made by</th><th>in the runs</th></tr>"
    return f"<h2>Inputs</h2>\n<table>{head}{''.join(rows)}</table>\n" if rows else ""


def _timeline(lines: Iterable[Mapping[str, Any]]) -> str:
    rows = []
    for each in lines:
        what = each.get("type") or f"value {each['value']}"
        name = f" {each['name']}" if each.get("name") else ""
        specs = " ".join(side["spec"] for side in each["outputs"])
        results = str(each["distinct"]) if each["state"] != "same" else ""
        cells = [
            str(each["number"]),
            str(each["step"]),
            what + name,
            specs,
            _at(each.get("place")).removeprefix(" at "),
        ]
        columns = "".join(f"<td>{_text(cell)}</td>" for cell in [*cells, STATES[each["state"]], results])
        rows.append(f'<tr class="{each["state"]}">{columns}</tr>')
    names = ("entry", "step", "operation", "gives", "line", "in the runs", "results")
    head = "".join(f"<th>{name}</th>" for name in names)
    return f'<h2>Surrounding operations</h2>\n<table id="timeline"><tr>{head}</tr>{"".join(rows)}</table>\n'


def _list(title: str, items: Iterable[str]) -> str:
    listed = "".join(f"<li>{_text(item)}</li>" for item in items)
    return f"<h2>{_text(title)}</h2>\n<ul>{listed}</ul>\n" if listed else ""


def _at(place: Mapping[str, Any] | None) -> str:
    return f" at {place['file']}:{place['line']}" if place else ""


def _text(text: str) -> str:
    return escape(clean(text))
