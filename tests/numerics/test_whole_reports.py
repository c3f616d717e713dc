"""Whole reports of what is measured, as text and as JSON, against files: every sentence and every key."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.numerics.invariance import InvarianceEvidence, Layer, ModeBits, judge_invariance
from envlock.reports import render
from envlock.runtime.report import Report
from tests.golden_files import assert_as_golden
from tests.reports.commands import COMMANDS

GOLDEN = Path(__file__).with_name("golden")
NAMES = ("bisect", "invariance", "upgrade")


def render_all(reports: list[Report]) -> str:
    """Return the reports as text and as JSON."""
    texts = [render(report, form) for report in reports for form in ("text", "json")]
    return "\n".join(texts) + "\n"


@pytest.mark.parametrize("name", NAMES)
def test_the_reports_of_a_command(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = COMMANDS[name]("word", tmp_path, monkeypatch)
    assert_as_golden(render_all(reports), GOLDEN / f"{name}.txt")


def list_batches() -> list[Report]:
    """Return reports in which each kind of measurement differs, is missing, or varies by itself."""
    sizes = {1: "a", 2: "b", 4: "c"}
    layer = Layer((1, 2), "dense", None)
    graph = ModeBits("graph", sizes, {2: {0: "b", 1: "x"}}, {2: {"zeros": "b", "others": "y"}}, layer=layer)
    eager = ModeBits("eager", {1: "d", 2: "d"}, {2: {0: "d", 1: "d"}}, {2: {"zeros": "d"}})
    unstable = ModeBits("predict", {}, {}, {}, unstable=2)
    failed = ModeBits("xla", {}, {}, {}, failed="strings")
    evidence = InvarianceEvidence({"keras": "3.15.1"}, "0", (graph, eager, unstable, failed), (eager,))
    nothing = InvarianceEvidence({}, None, (failed,))
    return [
        judge_invariance(evidence, (), "model.keras"),
        judge_invariance(evidence, ("xla", "tpu"), "model.keras"),
        judge_invariance(nothing, (), "model.keras"),
    ]


def test_the_reports_on_batches() -> None:
    assert_as_golden(render_all(list_batches()), GOLDEN / "batches.txt")
