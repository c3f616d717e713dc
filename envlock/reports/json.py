"""The report for programs. `report_version` is the version of its structure."""

from __future__ import annotations

import json

from envlock.runtime.report import Report


def render(report: Report, *, color: bool = False) -> str:
    """Return the report as JSON with sorted keys, safe for a terminal."""
    return dump(report.to_json())


def dump(value: object) -> str:
    """Return a value as JSON that is safe for a terminal."""
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    return "\n".join(map(_escape_line, text.split("\n")))


def _escape_line(line: str) -> str:
    if line.isprintable():
        return line
    escaped = ""
    for char in line:
        if not char.isprintable():
            char = json.dumps(char)[1:-1]
        escaped += char
    return escaped
