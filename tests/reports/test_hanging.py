"""Long lines in a terminal."""

from __future__ import annotations

import pytest

from envlock.reports import render
from envlock.reports.text import NARROW, hang_lines
from envlock.runtime.report import ERROR, Finding, Report

LONG = "The number of threads of NumPy's matrix product, hence its bits"


@pytest.mark.parametrize(
    ("line", "wrapped"),
    [
        ("short", ["short"]),
        (f"  x a: {LONG}", ["  x a: The number of threads of NumPy's", "    matrix product, hence its bits"]),
        (
            f"      why: {LONG}",
            ["      why: The number of threads of", "           NumPy's matrix product, hence", "           its bits"],
        ),
        (f"note: {LONG}", ["note: The number of threads of NumPy's", "matrix product, hence its bits"]),
        ("  step 1    0.25   0.5   0.75  1.5  3.25  9.5", ["  step 1    0.25   0.5   0.75  1.5  3.25  9.5"]),
        (f"  x /{'p' * 50}", ["  x", f"    /{'p' * 50}"]),
    ],
)
def test_a_line_hangs_below_its_first_word(line: str, wrapped: list[str]) -> None:
    assert [part for _, part in hang_lines([("plain", line)], 41)] == wrapped


def test_a_narrow_terminal_wraps_for_itself() -> None:
    assert list(hang_lines([("plain", LONG)], NARROW - 1)) == [("plain", LONG)]
    assert len(list(hang_lines([("plain", LONG)], NARROW))) == 2


def test_only_a_terminal_wraps() -> None:
    report = Report(
        [Finding("exact", ERROR, "a", message="a: differs", why=LONG, fix="Do it.", source="s")], policy="strict"
    )
    assert max(map(len, render(report).splitlines())) > 60
    assert max(map(len, render(report, width=50).splitlines())) <= 50
    assert render(report, "json", width=50) == render(report, "json")
