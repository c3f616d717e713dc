"""The files that are not as recorded, as tables for people: what is wrong and what to do once, then file by file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envlock.runtime.report import ERROR, FILE_RULE, INFO, MARKS, Finding, clean, count

SHOWN = {ERROR: 20, INFO: 5}
"""How many files of a kind are shown; JSON has all."""
WIDEST = (
    56,
    36,
)  # characters of the columns for file and package; what is longer pushes the rest aside


def is_file(finding: Finding) -> bool:
    """Return whether a finding is about an installed file."""
    return finding.rule.startswith(FILE_RULE)


def render_lines(findings: Iterable[Finding]) -> Iterator[tuple[str, str]]:
    """Yield (style, line): the kinds in the order of their most telling finding, those that are no error last."""
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        kinds.setdefault((finding.severity, finding.rule), []).append(finding)
    for (severity, rule), group in kinds.items():
        yield (
            "title",
            f"{rule[len(FILE_RULE) :].replace('-', ' ')}: {count(len(group), 'file')}{_aside(severity)}",
        )
        yield from _table(severity, group)
        reasons = list(dict.fromkeys(finding.why for finding in group))
        yield from (("note", f"      why: {why}") for why in reasons)
        if severity != INFO:
            yield "note", f"      fix: {group[0].fix}"


def _table(severity: str, group: list[Finding]) -> Iterator[tuple[str, str]]:
    most = SHOWN.get(severity, SHOWN[ERROR])
    rows = [_row(finding) for finding in group[:most]]
    widths = [min(max(len(row[column]) for row in rows), WIDEST[column]) for column in (0, 1)]
    for file, package, what in rows:
        cells = (
            f"{file:<{widths[0]}}  {package:<{widths[1]}}  {what}"
            if widths[1]
            else f"{file:<{widths[0]}}  {what}"
        )
        yield severity, f"  {MARKS[severity]} {cells}"
    if len(group) > most:
        yield "note", f"    and {len(group) - most:,} more (`--format json` lists all)"


def _row(finding: Finding) -> tuple[str, str, str]:
    expected = finding.expected if isinstance(finding.expected, dict) else {}
    packages = expected.get("packages", [])
    return clean(finding.where.fact), clean(", ".join(packages)), clean(finding.actual["what"])


def _aside(severity: str) -> str:
    return " (for information)" if severity == INFO else ""
