"""Whole reports of what is measured, as text and as JSON, against files: every sentence and every key."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.reports import render
from envlock.runtime.report import Report
from tests.golden_files import assert_as_golden
from tests.reports.commands import COMMANDS

GOLDEN = Path(__file__).with_name("golden")
NAMES = ("bisect", "upgrade")


def render_all(reports: list[Report]) -> str:
    """Return the reports as text and as JSON."""
    texts = [render(report, form) for report in reports for form in ("text", "json")]
    return "\n".join(texts) + "\n"


@pytest.mark.parametrize("name", NAMES)
def test_the_reports_of_a_command(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = COMMANDS[name]("word", tmp_path, monkeypatch)
    assert_as_golden(render_all(reports), GOLDEN / f"{name}.txt")
