"""Pictures of matrices."""

from __future__ import annotations

import math
import struct
import sys
from html.parser import HTMLParser

import pytest

from envlock.numerics import outcome, results
from envlock.numerics.matrices import MEASURES, Matrix
from envlock.numerics.outcome import Outcome
from envlock.reports import render
from envlock.reports.heatmap import COLORS, need_png, page, png
from envlock.runtime.errors import UsageError
from envlock.runtime.report import Report
from tests.numerics.test_comparison import run

CELLS: list[list[float | None]] = [[0.0, 1e-6, None], [1e-6, 0.0, 1e-3], [None, 1e-3, math.inf]]
ZEROS: list[list[float | None]] = [[0.0, 0.0], [0.0, 0.0]]


def report(
    cells: list[list[float | None]], labels: str = "012", name: str = "weights", note: str = "A note.", steps: int = 1
) -> Report:
    """Return a report of `repeat` with a matrix at each step."""
    runs = [run(label, *({name: number} for _ in range(steps))) for number, label in enumerate(labels)]
    shown = [quantity for step in range(steps) for quantity in results.at(runs, step)]
    matrices = [Matrix(quantity, dict.fromkeys(MEASURES, cells), (note,)) for quantity in shown]
    return outcome.report(Outcome(runs, [], len(runs), shown[0] if shown else None, shown, matrices, {}))


class Reader(HTMLParser):
    """Collects the tags and the cells of a page, and complains of tags that are not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.cells: list[tuple[str | None, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert {name for name, _ in attrs} <= {"class", "lang", "charset"}
        if tag != "meta":
            self.open.append(tag)
        if tag == "td":
            self.cells.append((dict(attrs)["class"], ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells[-1] = (self.cells[-1][0], data)


def test_the_page_holds_every_number_and_nothing_that_runs_or_loads() -> None:
    found = report(CELLS)
    text = page(found, render(found))
    read = Reader(text)
    assert "<h2>step 0, weights: sum of the absolute differences</h2>" in text
    assert "<p>A note.</p>" in text
    assert "<h1>envlock repeat</h1>\n<pre>not the same: 3 runs gave 3 different results\n" in text
    assert read.open == []
    assert read.cells == [
        ("z", "0"),
        ("l0", "1.0e-06"),
        ("z", "-"),
        ("l0", "1.0e-06"),
        ("z", "0"),
        ("l7", "1.0e-03"),
        ("z", "-"),
        ("l7", "1.0e-03"),
        ("l7", "inf"),
    ]
    assert set(read.tags) <= {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "pre",
        "table",
        "tr",
        "th",
        "td",
        "p",
    }


def test_what_a_user_names_is_text() -> None:
    evil = "<script>alert(1)"
    text = page(report(CELLS, "<&>", evil, evil), evil)
    assert "<script" not in text
    assert text.count("&lt;script&gt;alert(1)") == 3
    assert Reader(text).open == []


def test_a_page_without_matrices() -> None:
    same = report([], steps=0)
    assert Reader(page(same, render(same))).cells == []


@pytest.mark.processes  # matplotlib asks `fc-list` once for each user
def test_the_picture_is_a_png_of_all_matrices_and_always_the_same() -> None:
    one, two = png(report(CELLS)), png(report(CELLS, steps=2))
    assert one[:8] == b"\x89PNG\r\n\x1a\n"
    assert [struct.unpack(">II", picture[16:24]) for picture in (one, two)] == [(700, 600), (700, 1200)]
    assert png(report(CELLS)) == one
    assert png(report(ZEROS, "01", "$w_1$ and <b>"))[:4] == b"\x89PNG"
    assert png(report([], steps=0))[:4] == b"\x89PNG"
    assert len(COLORS) == 8


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    need_png()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError) as caught:
        need_png()
    assert caught.value.message == "PNG needs matplotlib, which is not installed with envlock"
    assert caught.value.hint == "install envlock again with its extra `plots`, or use `--html`"
