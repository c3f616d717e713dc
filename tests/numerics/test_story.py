"""What people and programs are told."""

from __future__ import annotations

import json
import math
from pathlib import Path

from envlock.numerics import results
from envlock.numerics.matrices import Matrix
from envlock.numerics.results import Run, Value
from envlock.numerics.story import Story
from envlock.reports.json import dump
from envlock.reports.text import paint
from tests.numerics.test_comparison import run

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
VERSIONS = {"runs": {"python": "3.11.7", "tensorflow": "2.21.0"}}


def story(runs: list[Run], **more: object) -> Story:
    """Return the story of runs whose values are numbers; their distance is that of the numbers."""
    first = results.first(runs) if len(runs) > 1 else None
    at = [] if first is None else sorted({first.step, results.steps(runs)[-1]})
    shown = [quantity for step in at for quantity in results.at(runs, step)]
    fields = {"failed": [], "wanted": len(runs), "environments": VERSIONS, **more}
    matrices = [matrix(quantity) for quantity in shown if quantity.distinct > 1]
    return Story(runs=runs, first=first, shown=shown, matrices=matrices, **fields)  # type: ignore[arg-type]


def matrix(quantity: results.Quantity) -> Matrix:
    rows = [sum(int(value.digest, 16) for value in row if value) for row in quantity.values]
    cells: list[list[float | None]] = [[abs(a - b) * 1e-6 for b in rows] for a in rows]
    return Matrix(quantity, {"sum": cells, "max": cells, "norm": cells})


def text(told: Story) -> str:
    return paint(told.lines(), color=False)


def three() -> list[Run]:
    same = {"predictions": 1, "losses": 2}
    return [
        run("0", {**same, "weights/0/kernel": 30, "weights/1/bias": 1}, {"predictions": 7}),
        run("1", {**same, "weights/0/kernel": 33, "weights/1/bias": 1}, {"predictions": 700}),
        run("2", {**same, "weights/0/kernel": 30, "weights/1/bias": 1}, {"predictions": 7}),
    ]


def golden(name: str, found: str) -> None:
    assert found + "\n" == (GOLDEN / name).read_text(encoding="utf-8")


def test_runs_that_differ() -> None:
    golden("repeat.txt", text(story(three())))


def test_json() -> None:
    golden("repeat.json", dump(story(three()).to_json()))


def test_runs_that_are_the_same() -> None:
    one = run("0", {"loss": 1}, {"loss": 2})
    told = story([one, one, one])
    assert (told.match, text(told)) == (True, "the same bits in 3 runs, at all 2 steps")
    assert told.to_json()["first"] is None
    assert text(story([run("0", {"a": 1}), run("1", {"a": 1})])) == "the same bits in 2 runs, at 1 step"


def test_a_failed_run_is_a_difference_and_its_words_are_harmless() -> None:
    one = run("0", {"loss": 1})
    told = story([one, one], failed=[Run("2", {}, "failed", "ValueError: \x1b[31mred")], wanted=5)
    assert not told.match
    assert text(told) == (
        "the same bits in 2 runs, at 1 step\n"
        "  x run 2 failed: ValueError: \\x1b[31mred\n"
        "  ! 2 runs not made: the process had died"
    )


def test_ctrl_c_leaves_what_is_finished() -> None:
    told = story([run("0", {"loss": 1})], wanted=7, interrupted=True)
    assert text(told) == "nothing to compare: 1 run came to an end\n  ! 6 runs not made: interrupted"
    assert (told.match, told.to_json()["not_made"], told.to_json()["interrupted"]) == (False, 6, True)


def test_one_run_that_was_to_be_kept() -> None:
    told = story([run("0", {"loss": 1})])
    assert (told.match, text(told)) == (True, "1 run, and nothing yet to compare it with")
    assert not story([run("0", {"loss": 1})], wanted=2).match


def test_numbers_that_are_none() -> None:
    runs = [run(str(n), {"w": n}) for n in range(3)]
    (quantity,) = results.at(runs, 0)
    cells: list[list[float | None]] = [[0.0, None, 0.0], [None, 0.0, math.inf], [0.0, math.inf, 0.0]]
    told = Story(
        runs=runs,
        failed=[],
        wanted=3,
        first=quantity,
        shown=[quantity],
        matrices=[Matrix(quantity, {"sum": cells, "max": cells, "norm": cells}, ("A note.",))],
        environments={},
    )
    assert text(told).splitlines()[4:] == [
        "                   0       1       2",
        "           0       0       -      0*",
        "           1       -       0     inf",
        "           2      0*     inf       0",
        "    largest difference inf, inf epsilons of the largest magnitude",
        "    A note.",
    ]
    (shown,) = json.loads(dump(told.to_json()))["matrices"]
    assert shown["sum"] == [[0.0, None, 0.0], [None, 0.0, "Infinity"], [0.0, "Infinity", 0.0]]


def test_of_many_runs_the_first_ten_are_shown() -> None:
    runs = [run(str(n), {"w": n % 4}) for n in range(25)]
    lines = text(story(runs)).splitlines()
    assert lines[0] == "not the same: 25 runs gave 4 different results"
    assert lines[2].startswith("      alike: 0 4 8 12 16 20 24; 1 5 9")
    assert [line.split()[0] for line in lines if line.endswith(("0", "e-06"))][-10:] == [str(n) for n in range(10)]
    assert "    15 more runs are in --format json and --html" in lines


def test_names_of_quantities_cannot_write_on_a_terminal() -> None:
    value, other = Value("float32", (), "0" * 64), Value("float32", (), "1" * 64)
    told = story([Run("0", {0: {"\x1b[2J": value}}, "finished"), Run("1", {0: {"\x1b[2J": other}}, "finished")])
    assert "\x1b" not in text(told)
    assert "\x1b" not in dump(told.to_json())
