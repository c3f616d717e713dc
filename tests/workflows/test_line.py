"""What a line proves where facts could not be collected."""

from __future__ import annotations

from pathlib import Path

import pytest

import envlock
from envlock.runtime.collectors import Snapshot
from envlock.runtime.environment_line import make_line
from envlock.workflows import capture
from tests.locks import FACTS, UNAVAILABLE, document


def test_a_fact_that_nobody_could_tell_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same is unavailable on both sides, so that the lines are equal, and that is no evidence."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(capture, "collect_live", lambda python: Snapshot(FACTS, UNAVAILABLE))
    report = envlock.verify_line(make_line(document()))
    assert (report.exit_code, report.headline) == (4, "cannot decide: 1 needed fact unknown")
    assert [(finding.severity, str(finding.where)) for finding in report.findings] == [("unknown", "keras")]


def test_equal_lines_of_known_facts_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(capture, "collect_live", lambda python: Snapshot(FACTS, {}))
    report = envlock.verify_line(make_line(document(unavailable={})))
    assert (report.exit_code, report.headline, report.findings) == (0, "matches the line", [])
