"""For programs. `report_version` says which shape it has."""

from __future__ import annotations

import json

from envlock.runtime.report import Report


def render(report: Report, *, color: bool = False) -> str:
    """Return the report as JSON with sorted keys."""
    return json.dumps(report.to_json(), indent=2, sort_keys=True, ensure_ascii=False)
