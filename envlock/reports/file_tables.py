"""The files that are not as recorded, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envlock.runtime.report import ERROR, FILE_RULE, INFO, MARKS, Finding, clean, count

SHOWN = {ERROR: 20, INFO: 5}
"""How many files of a kind are shown; JSON has all of them."""
FILE_WIDTH, PACKAGE_WIDTH = 56, 36
"""Characters of the widest columns; longer cells shift the rest of the line."""


def is_file(finding: Finding) -> bool:
    """Return whether a finding is about an installed file."""
    return finding.rule.startswith(FILE_RULE)


def render_lines(findings: Iterable[Finding]) -> Iterator[tuple[str, str]]:
    """Yield (style, line): a table for each kind, in the order of the findings."""
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        kinds.setdefault((finding.severity, finding.rule), []).append(finding)
    for (severity, rule), group in kinds.items():
        kind = rule.removeprefix(FILE_RULE).replace("-", " ")
        title = f"{kind}: {count(len(group), 'file')}"
        if severity == INFO:
            title += " (for information)"
        yield "title", title
        yield from _render_table(severity, group)
        for why in dict.fromkeys(finding.why for finding in group):
            yield "note", f"      why: {why}"
        if severity != INFO:
            yield "note", f"      fix: {group[0].fix}"


def _render_table(severity: str, group: list[Finding]) -> Iterator[tuple[str, str]]:
    most = SHOWN.get(severity, SHOWN[ERROR])
    rows = list(map(_fill_row, group[:most]))
    file_width = package_width = 0
    for file, package, _ in rows:
        file_width = max(file_width, len(file))
        package_width = max(package_width, len(package))
    file_width, package_width = min(file_width, FILE_WIDTH), min(package_width, PACKAGE_WIDTH)
    for file, package, what in rows:
        cells = f"{file:<{file_width}}  "
        if package_width:
            cells += f"{package:<{package_width}}  "
        yield severity, f"  {MARKS[severity]} {cells}{what}"
    if len(group) > most:
        yield "note", f"    and {len(group) - most:,} more (`--format json` lists all)"


def _fill_row(finding: Finding) -> tuple[str, str, str]:
    packages, what = "", ""
    if isinstance(finding.expected, dict):
        packages = ", ".join(finding.expected.get("packages", []))
    if isinstance(finding.actual, dict):
        what = finding.actual["what"]
    return clean(finding.where.fact), clean(packages), clean(what)
