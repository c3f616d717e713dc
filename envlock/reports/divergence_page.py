"""The report of `envlock diverge` as one HTML page: no script, no network, every word escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from envlock.reports.divergence_text import describe_reading
from envlock.runtime.report import Finding, Report, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.divergence.comparison import Line, Origin
    from envlock.divergence.evidence import DivergeEvidence, Level
    from envlock.divergence.known_causes import Known
    from envlock.divergence.trace import Place

STYLE = """
:root { color-scheme: light dark; --bad: #c62828; --warn: #b26a00; --ok: #2e7d32; --dim: #777; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
code, pre, td { font-family: ui-monospace, monospace; font-size: 13px; }
pre { border: 1px solid var(--line); border-radius: 6px; padding: .6rem; overflow-x: auto; }
.here { background: #c6282822; display: block; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem; vertical-align: top; }
td { overflow-wrap: anywhere; min-width: 4em; } th { white-space: nowrap; } .wide { overflow-x: auto; }
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
COLORS = 12
"""Colors of results; further results repeat them, and are distinguished by number."""


def render_page(report: Report[DivergeEvidence]) -> str:
    """Return the page for a report of `diverge`."""
    evidence = report.evidence
    headline = report.headline
    verdict = "ok"
    if not report.match:
        verdict = "bad"
        headline = report.findings[0].message
    title = f"envlock diverge: {evidence.target}"
    # A page is passed on: whatever names of a script are in it, it loads and runs nothing.
    # https://developer.mozilla.org/en-US/docs/Web/HTTP/Guides/CSP
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_escape(title)}</title><style>{STYLE}</style></head><body>\n",
        f'<h1 class="{verdict}">{_escape(headline)}</h1>\n',
        _render_circumstances(evidence),
    ]
    if evidence.match:
        parts.append(_render_list("Limits", report.notes))
        parts.append(_render_levels(evidence.levels))
        parts.append(_render_list("The pipeline", _list_pipelines(report.findings)))
        parts.append(_render_list("Other findings", _select_others(report.findings)))
    else:
        parts += _render_difference(report)
    for failure in evidence.failures:
        parts.append(f"<h2>Traceback</h2>\n<pre>{_escape(failure.traceback)}</pre>\n")
    parts.append("</body></html>\n")
    return "".join(parts)


def _render_difference(report: Report[DivergeEvidence]) -> list[str]:
    """Return the sections about runs that differ: the cause first, then the evidence."""
    evidence = report.evidence
    return [
        _render_explanation(report.findings[0], evidence.known),
        _render_list("Limits", report.notes),
        _render_place(evidence),
        _render_levels(evidence.levels),
        _render_evidence(evidence, report.findings),
        _render_list("Other findings", _select_others(report.findings)),
        _render_timeline(evidence.timeline),
    ]


def _select_others(findings: Sequence[Finding]) -> list[str]:
    """Return the operations other than the first finding, which is already the headline."""
    return [finding.message for finding in findings[1:] if finding.rule == "operation"]


def _render_circumstances(evidence: DivergeEvidence) -> str:
    text = f"{evidence.runs} runs of {evidence.target} with TensorFlow {evidence.tensorflow}"
    if evidence.keras:
        text += f", Keras {evidence.keras}"
    return f'<p class="dim">{_escape(text)}</p>\n'


def _render_levels(levels: Iterable[Level]) -> str:
    rows = ""
    for level in levels:
        found = "identical"
        if level.name is not None:
            found = f"step {level.step}: {level.name}"
        runs = "".join(map(_render_result, level.groups))
        cells = (
            f'<td>{_escape(level.mode)}</td><td>{_escape(found)}</td><td class="runs">{runs}</td>'
        )
        rows += f"<tr>{cells}<td>{level.entries:,}</td><td>{level.steps}</td></tr>"
    names = ("run", "first difference", "result of each run", "entries", "steps")
    return f"<h2>Comparisons</h2>\n<table>{_render_head(names)}{rows}</table>\n"


def _render_head(names: Iterable[str]) -> str:
    return f"<tr><th>{'</th><th>'.join(names)}</th></tr>"


def _render_result(number: int) -> str:
    """Return the number of a run's result on the color of that result."""
    hue = number % COLORS * 360 // COLORS
    return f'<span style="background:hsl({hue} 60% 60% / .45)">{number}</span>'


def _render_explanation(cause: Finding, known: Known | None) -> str:
    """Return why it happens and a remedy, which are what a reader wants first."""
    remedies = _render_list("Remedies", cause.fix.split("\n"))
    text = f"<h2>Why</h2>\n<p>{_escape(cause.why)}</p>\n{remedies}"
    if known is not None:
        text += f'<p class="dim">{_escape(known.row)}: {_escape(known.source)}</p>\n'
    return text


def _render_place(evidence: DivergeEvidence) -> str:
    parts = ["<h2>Where</h2>\n"]
    place = evidence.place
    if place is None:
        parts.append("<p>Not in a line of the program.</p>\n")
    else:
        where = f"<code>{_escape(place.file)}:{place.line}</code> in {_escape(place.function)}"
        parts.append(f"<p>{where}</p>\n")
        parts.append(_render_source(evidence.source, evidence.source_from, place.line))
    maker = evidence.maker
    if maker is not None:
        line = maker.place.line
        where = f"<code>{_escape(maker.place.file)}:{line}</code>"
        parts.append(f"<p>The value was made in {where}, by {_escape(maker.name)}:</p>\n")
        parts.append(_render_source([maker.text], line, line))
    return "".join(parts)


def _list_pipelines(findings: Sequence[Finding]) -> list[str]:
    """Return what the dataset linter says, with the lines that read the pipelines."""
    pipelines = []
    for finding in findings:
        if finding.rule.startswith("ENV"):
            text = f"{finding.rule} {finding.message}{describe_reading(finding)}; {finding.fix}"
            pipelines.append(text)
    return pipelines


def _render_evidence(evidence: DivergeEvidence, findings: Sequence[Finding]) -> str:
    """Return the evidence for the verdict."""
    suspects = []
    for suspect in evidence.suspects:
        text = f"{suspect.type} {suspect.name}{_locate(suspect.place)}"
        suspects.append(text)
    parts = [
        _render_origins(evidence.origins, evidence.differing),
        _render_list("Attempts", evidence.because),
        _render_list("The pipeline", _list_pipelines(findings)),
        _render_list("Graph operations that can be the cause", suspects),
    ]
    return "".join(parts)


def _render_source(lines: Iterable[str], start: int, wanted: int) -> str:
    """Return numbered lines of a program with the wanted one marked; empty without lines."""
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


def _render_origins(origins: Iterable[Origin], differing: Sequence[int]) -> str:
    rows = ""
    for origin in origins:
        source = "outside operations: a constant, or Python"
        if origin.made_by is not None:
            operation = origin.made_by.operation
            source = f"{operation.type}{_locate(operation.place)}"
        state = "equal"
        if origin.input in differing:
            state = "differs"
        cells = f"<td>{_escape(origin.spec)}</td><td>{_escape(source)}</td><td>{state}</td>"
        rows += f"<tr>{cells}</tr>"
    if not rows:
        return ""
    head = _render_head(("input", "made by", "in the runs"))
    return f"<h2>Inputs</h2>\n<table>{head}{rows}</table>\n"


def _render_timeline(lines: Iterable[Line]) -> str:
    rows = ""
    for line in lines:
        rows += f'<tr class="{line.state}">'
        for cell in _fill_row(line):
            rows += f"<td>{_escape(cell)}</td>"
        rows += "</tr>"
    head = _render_head(("entry", "step", "operation", "gives", "line", "in the runs", "results"))
    return f'<h2>Surrounding operations</h2>\n<table id="timeline">{head}{rows}</table>\n'


def _fill_row(line: Line) -> list[str]:
    """Return the cells of one entry of the timeline."""
    # The number of results matters only if the runs disagree.
    results = ""
    if line.state != "same":
        results = str(line.distinct)
    return [
        str(line.index),
        str(line.entry.step),
        line.entry.title,
        " ".join(line.entry.output_specs),
        _locate(line.entry.place).removeprefix(" at "),
        STATES[line.state],
        results,
    ]


def _render_list(title: str, items: Iterable[str]) -> str:
    """Return a heading with a list; empty without items."""
    listed = "".join(f"<li>{_escape(item)}</li>" for item in items)
    if not listed:
        return ""
    return f"<h2>{_escape(title)}</h2>\n<ul>{listed}</ul>\n"


def _locate(place: Place | None) -> str:
    """Return the place of a line after ` at `; empty if unknown."""
    if place is None:
        return ""
    return f" at {place.file}:{place.line}"


def _escape(text: str) -> str:
    return escape(clean(text))
