"""One line a finding, as compilers and other linters print: editors and `grep` read it."""

from __future__ import annotations

from envlock.linter.lint_text import CODE_PARTS
from envlock.runtime.report import Report, clean


def render(report: Report) -> str:
    """Return `file:line:column: RULE severity: message` for each finding, then the headline.

    A finding that lies apart says where: ` (in tests)`.
    """
    lines = []
    for finding in report.findings:
        where = finding.where
        place = f"{where.file}:{where.line}:{where.column}"
        line = f"{place}: {finding.rule} {finding.severity}: {finding.message}"
        if where.part:
            line += f" ({CODE_PARTS[where.part]})"
        lines.append(clean(line))
    return "\n".join([*lines, report.headline])
