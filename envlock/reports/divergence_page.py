"""The report of `envlock diverge` as one HTML page: no script, no network, every word escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envlock.reports.divergence_text import describe_reading
from envlock.reports.page import escape_text, render_whole_page
from envlock.runtime.report import Finding, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.divergence.comparison import Line, Origin
    from envlock.divergence.evidence import DivergeEvidence, Level
    from envlock.divergence.known_causes import Known
    from envlock.divergence.trace import Place

STYLE = """
code, pre, td { font-family: ui-monospace, monospace; font-size: 13px; }
.here { background: #c6282822; display: block; }
table { width: 100%; } th { text-align: left; font-weight: 600; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem; vertical-align: top; }
td { overflow-wrap: anywhere; min-width: 4em; } th { white-space: nowrap; }
.cause td { background: #c6282822; } .carried td { background: #b26a0018; }
.cause td:first-child { border-left: 4px solid var(--bad); } .carried td:first-child { border-left: 4px solid #b26a00; }
.same td:first-child { border-left: 4px solid var(--ok); }
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
    headline = report.headline if report.match else report.findings[0].message
    title = f"envlock diverge: {evidence.target}"
    parts = [_render_circumstances(evidence)]
    if evidence.match:
        parts.append(_render_list("Limits", report.notes))
        parts.append(_render_levels(evidence.levels))
        parts.append(_render_list("The pipeline", _list_pipelines(report.findings)))
        parts.append(_render_list("Other findings", _select_others(report.findings)))
    else:
        parts += _render_difference(report)
    for failure in evidence.failures:
        parts.append(f"<h2>Traceback</h2>\n<pre>{escape_text(failure.traceback)}</pre>\n")
    return render_whole_page(report, title, headline, STYLE, parts)


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
    return f'<p class="dim">{escape_text(text)}</p>\n'


def _render_levels(levels: Iterable[Level]) -> str:
    rows = ""
    for level in levels:
        found = f"step {level.step}: {level.name}" if level.name is not None else "identical"
        runs = "".join(map(_render_result, level.groups))
        cells = f'<td>{escape_text(level.mode)}</td><td>{escape_text(found)}</td><td class="runs">{runs}</td>'
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
    text = f"<h2>Why</h2>\n<p>{escape_text(cause.why)}</p>\n{remedies}"
    if known is not None:
        text += f'<p class="dim">{escape_text(known.row)}: {escape_text(known.source)}</p>\n'
    return text


def _render_place(evidence: DivergeEvidence) -> str:
    parts = ["<h2>Where</h2>\n"]
    place = evidence.place
    if place is None:
        parts.append("<p>Not in a line of the program.</p>\n")
    else:
        where = (
            f"<code>{escape_text(place.file)}:{place.line}</code> in {escape_text(place.function)}"
        )
        parts.append(f"<p>{where}</p>\n")
        parts.append(_render_source(evidence.source, evidence.source_from, place.line))
    maker = evidence.maker
    if maker is not None:
        line = maker.place.line
        where = f"<code>{escape_text(maker.place.file)}:{line}</code>"
        parts.append(f"<p>The value was made in {where}, by {escape_text(maker.name)}:</p>\n")
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
        row = f"{number:>5}  {escape_text(line)}"
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
        state = "differs" if origin.input in differing else "equal"
        cells = f"<td>{escape_text(origin.spec)}</td><td>{escape_text(source)}</td><td>{state}</td>"
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
            rows += f"<td>{escape_text(cell)}</td>"
        rows += "</tr>"
    head = _render_head(("entry", "step", "operation", "gives", "line", "in the runs", "results"))
    return f'<h2>Surrounding operations</h2>\n<table id="timeline">{head}{rows}</table>\n'


def _fill_row(line: Line) -> list[str]:
    """Return the cells of one entry of the timeline."""
    # The number of results matters only if the runs disagree.
    results = str(line.distinct) if line.state != "same" else ""
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
    listed = "".join(f"<li>{escape_text(item)}</li>" for item in items)
    if not listed:
        return ""
    return f"<h2>{escape_text(title)}</h2>\n<ul>{listed}</ul>\n"


def _locate(place: Place | None) -> str:
    """Return the place of a line after ` at `; empty if unknown."""
    if place is None:
        return ""
    return f" at {place.file}:{place.line}"
