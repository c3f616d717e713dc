"""For programs. `report_version` says which shape it has."""

from __future__ import annotations

import json
from typing import Any

from envlock.runtime.report import Report


def render(report: Report, *, color: bool = False) -> str:
    """Return the report as JSON with sorted keys; what a terminal would obey is escaped, not only below U+0020."""
    return dump(report.to_json())


def dump(value: Any) -> str:
    """Return a value as JSON that is safe for a terminal."""
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    return "\n".join(
        line if line.isprintable() else "".join(map(_escape, line)) for line in text.split("\n")
    )


def _escape(char: str) -> str:
    return char if char.isprintable() else json.dumps(char)[1:-1]
