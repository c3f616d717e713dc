"""Pictures of matrices."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser

from envlock.evidence import results
from envlock.evidence.repeat import outcome
from envlock.evidence.repeat.matrices import MEASURES, Matrix
from envlock.evidence.repeat.outcome import Outcome, PlacedQuantity, RepeatEvidence
from envlock.evidence.repeat.repeat_page import DOTS, render_page
from envlock.evidence.repeat.repeat_summary import Summary, summarize_quantities
from envlock.reports import render
from envlock.runtime.report import Report
from tests.evidence.test_comparison import run

CELLS: list[list[float | None]] = [[0.0, 1e-6, None], [1e-6, 0.0, 1e-3], [None, 1e-3, math.inf]]
ZEROS: list[list[float | None]] = [[0.0, 0.0], [0.0, 0.0]]


def report(
    cells: list[list[float | None]],
    labels: str = "012",
    name: str = "weights",
    note: str = "A note.",
    steps: int = 1,
    more: list[list[float | None]] | None = None,
) -> Report[RepeatEvidence]:
    """Return a report of `repeat` with a matrix at each step; with `more`, of two steps."""
    steps = steps if more is None else 2
    runs = [run(label, *({name: number} for _ in range(steps))) for number, label in enumerate(labels)]
    shown = [quantity for step in range(steps) for quantity in results.collect_quantities(runs, step)]
    matrices = [Matrix(quantity, dict.fromkeys(MEASURES, cells), (note,)) for quantity in shown]
    if more is not None:
        matrices[1] = Matrix(shown[1], dict.fromkeys(MEASURES, more), (note,))
    return outcome.report(Outcome(runs, [], len(runs), shown[0] if shown else None, shown, matrices, {}))


class Reader(HTMLParser):
    """Collects the tags and the cells of a page, and complains of tags that are not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.cells: list[tuple[str | None, str]] = []
        self.hover: list[str | None] = []
        self.bar: list[str | None] = []
        self.is_cell = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert {name for name, _ in attrs} & {"href", "src", "srcset", "action", "style"} == set()
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.is_cell = tag == "td" and "title" in dict(attrs)
        if self.is_cell:
            self.cells.append((dict(attrs)["class"], ""))
            self.hover.append(dict(attrs)["title"])
        if tag == "rect":
            self.bar.append(dict(attrs)["class"])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td" and self.is_cell:
            self.cells[-1] = (self.cells[-1][0], data)


def test_the_page_holds_every_number_and_nothing_that_runs_or_loads() -> None:
    found = report(CELLS)
    text = render_page(found, render(found))
    read = Reader(text)
    assert "<h3>Step 0</h3>" in text
    assert "<h4>weights</h4>" in text
    assert "<p>A note.</p>" in text
    assert '<h1 class="bad">not the same: 3 runs gave 3 different results</h1>' in text
    assert "default-src 'none'" in text
    assert "url(" not in text
    assert "<pre>not the same: 3 runs gave 3 different results\n" in text
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
    assert read.hover[1] == (
        "runs 0 and 1: sum of the absolute differences 1e-06; largest difference 1e-06; "
        "epsilons of the largest magnitude 1e-06"
    )
    assert read.hover[2] == "runs 0 and 2: no distance"
    assert set(read.tags) & {"script", "link", "img", "iframe", "object", "a", "use", "image"} == set()


def test_all_matrices_have_one_scale_and_its_legend() -> None:
    """The same distance has the same color in both, though it is the largest of one and the smallest of the other."""
    small: list[list[float | None]] = [[0.0, 1e-6, 3e-3], [1e-6, 0.0, 3e-3], [3e-3, 3e-3, 0.0]]
    large: list[list[float | None]] = [[0.0, 3e-3, 1e2], [3e-3, 0.0, 1e2], [1e2, 1e2, 0.0]]
    text = render_page(report(small, more=large), "")
    classes = {value: name for name, value in Reader(text).cells}
    assert classes == {"0": "z", "1.0e-06": "l0", "3.0e-03": "l3", "1.0e+02": "l7"}
    assert text.count('<span class="key l') == 8
    assert '<span class="key l7">from 1.0e+01</span>' in text
    one = render_page(report([[0.0, 1e-6], [1e-6, 0.0]], "01"), "")
    assert [part[:23] for part in one.split('<span class="key ')[1:]] == ['l7">from 1.0e-06</span>']


def test_the_chart_has_every_step_whose_distance_is_known_and_its_bar_all_steps() -> None:
    found = report(CELLS, steps=5)
    found.evidence = replace(
        found.evidence,
        distances=tuple(each for each in found.evidence.distances if each.step in (1, 2, 4)),
        differing=tuple(each for each in found.evidence.differing if each.step != 0),
    )
    text = render_page(found, "")
    assert text.count("<circle") == 4
    assert "<title>weights, step 0: 0</title>" in text
    assert "<title>weights, step 1: 0.001</title>" in text
    # No line goes over a step that was not measured.
    assert [line.count(",") for line in re.findall('<polyline points="([^"]+)"', text)] == [3, 1]
    assert "1 of them is not measured: the arrays are large." in text
    # A line that has the same values is seen through the gaps.
    assert re.findall(r"\.s([0-3]) polyline { stroke: [^;]+; stroke-dasharray", text) == ["1", "3"]
    assert Reader(text).bar == ["even", "rug"]
    assert "<title>step 0: the same bits</title>" in text
    assert "<title>steps 1 to 4: weights differ</title>" in text
    assert "<svg" not in render_page(report(CELLS), "")  # one step is no line
    assert "<circle" not in render_page(report(CELLS, steps=DOTS + 1), "")


def test_runs_of_one_result_share_a_row() -> None:
    cells: list[list[float | None]] = [[0.0, 0.0, 1e-6], [0.0, 0.0, 1e-6], [1e-6, 1e-6, 0.0]]
    found = report(cells)
    matrix = replace(found.evidence.matrices[0], results=(0, 0, 1))
    found.evidence = replace(found.evidence, matrices=(matrix,))
    text = render_page(found, render(found))
    assert [value for _, value in Reader(text).cells] == ["0", "1.0e-06", "1.0e-06", "0"]
    assert "<p>The same bits: 0 1.</p>" in text
    assert "the same bits: 0 1\n" in render(found)


def test_what_is_zero_is_a_line() -> None:
    found = report(CELLS, more=CELLS)
    evidence = found.evidence
    found.evidence = replace(
        evidence,
        matrices=evidence.matrices[1:],
        equal=(PlacedQuantity(0, "weights"),),
        differing=evidence.differing[1:],
        distances=evidence.distances[1:],
    )
    text = render_page(found, "")
    assert '<h3>Step 0</h3>\n<p class="dim">The same bits in all runs: weights.</p>\n<h3>Step 1</h3>' in text
    assert (
        "<td>weights</td><td>scalar</td><td>float32</td><td>45725791c47b</td>"
        "<td>step 1</td><td>1 of 2 steps</td><td>1.00e-03 at step 1</td>" in text
    )


def test_a_quantity_is_told_by_its_first_step_how_often_and_how_far() -> None:
    evidence = report(CELLS, more=[[0.0, 2.0], [2.0, 0.0]]).evidence
    assert summarize_quantities(evidence) == [Summary("weights", 0, 2, "2.00e+00 at step 1")]
    some = replace(evidence, distances=evidence.distances[:1])
    assert summarize_quantities(some)[0].largest == "1.00e-03 at step 0, known at 1 of 2 steps"
    # Never 0, where bits differ.
    zeros = replace(evidence, distances=tuple(replace(each, largest=0.0) for each in evidence.distances))
    assert summarize_quantities(zeros)[0].largest == "0*"
    rest = replace(evidence, distances=(), equal=(PlacedQuantity(1, "loss"),))
    assert summarize_quantities(rest) == [
        Summary("weights", 0, 2, "not computed"),
        Summary("loss", None, 0, "0"),
    ]


def test_the_page_says_what_was_run() -> None:
    found = report(CELLS)
    circumstances = {"program": "train.py:step", "command": "envlock repeat train.py:step --runs 3", "seed": "5"}
    environments = {"A": {"tensorflow": "2.21.0"}, "B": {"tensorflow": "2.20.0", "processor": "AMD <EPYC>"}}
    found.evidence = replace(found.evidence, circumstances=circumstances, environments=environments)
    text = render_page(found, "")
    assert "<title>envlock repeat: train.py:step</title>" in text
    assert "<th>command</th><td>envlock repeat train.py:step --runs 3</td>" in text
    assert "<th>processor (B)</th><td>AMD &lt;EPYC&gt;</td>" in text


def test_what_a_user_names_is_text() -> None:
    evil = "<script>alert(1)"
    text = render_page(report(CELLS, "<&>", evil, evil), evil)
    assert "<script" not in text
    assert text.count("&lt;script&gt;alert(1)") == 5
    assert Reader(text).open == []


def test_a_page_without_matrices() -> None:
    same = report([], steps=0)
    assert Reader(render_page(same, render(same))).cells == []
