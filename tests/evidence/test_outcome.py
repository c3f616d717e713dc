"""What people and programs are told."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from envlock.evidence import results
from envlock.evidence.repeat import outcome
from envlock.evidence.repeat.matrices import Matrix
from envlock.evidence.repeat.outcome import Outcome
from envlock.evidence.results import Run, Value
from envlock.reports import render
from envlock.runtime.report import Report
from tests.evidence.test_comparison import run
from tests.golden_files import assert_as_golden

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
VERSIONS = {"runs": {"python": "3.11.7", "tensorflow": "2.21.0"}}


def report(runs: list[Run], **more: Any) -> Report:
    """Return the report on runs whose values are numbers; their distance is that of the numbers."""
    first = results.find_first(runs) if len(runs) > 1 else None
    at = [] if first is None else sorted({first.step, results.list_steps(runs)[-1]})
    shown = [quantity for step in at for quantity in results.collect_quantities(runs, step)]
    fields = {"failed": [], "wanted": len(runs), "environments": VERSIONS, **more}
    matrices = [matrix(quantity) for quantity in shown if quantity.distinct > 1]
    return outcome.report(Outcome(runs=runs, first=first, shown=shown, matrices=matrices, **fields))


def matrix(quantity: results.Quantity) -> Matrix:
    rows = [sum(int(value.digest, 16) for value in row if value) for row in quantity.values]
    cells: list[list[float | None]] = [[abs(a - b) * 1e-6 for b in rows] for a in rows]
    return Matrix(quantity, {"sum": cells, "max": cells, "norm": cells})


def three() -> list[Run]:
    same = {"predictions": 1, "losses": 2}
    return [
        run("0", {**same, "weights/0/kernel": 30, "weights/1/bias": 1}, {"predictions": 7}),
        run("1", {**same, "weights/0/kernel": 33, "weights/1/bias": 1}, {"predictions": 700}),
        run("2", {**same, "weights/0/kernel": 30, "weights/1/bias": 1}, {"predictions": 7}),
    ]


def golden(name: str, found: str) -> None:
    assert_as_golden(found + "\n", GOLDEN / name)


def test_runs_that_differ() -> None:
    golden("repeat.txt", render(report(three())))


def test_json() -> None:
    golden("repeat.json", render(report(three()), "json"))


def test_runs_that_are_the_same() -> None:
    one = run("0", {"loss": 1}, {"loss": 2})
    told = report([one, one, one])
    assert (told.match, told.headline) == (True, "the same bits in 3 runs, at all 2 steps")
    head, row = render(told).splitlines()[1:]
    assert head.split() == ["quantity", "shape", "type", "steps", "digest"]
    assert row.split()[:4] == ["loss", "scalar", "float32", "2"]
    assert told.attachments["first"] is None
    assert render(report([run("0", {"a": 1}), run("1", {"a": 1})])).startswith("the same bits in 2 runs, at 1 step\n")


def test_numbers_of_steps_and_results_have_their_thousands_apart() -> None:
    steps = [{"loss": number + 1} for number in range(1000)]
    assert report([run("0", *steps), run("1", *steps)]).headline == "the same bits in 2 runs, at all 1,000 steps"
    others = [run(str(number), {"loss": number + 1}) for number in range(1001)]
    quantity = results.collect_quantities(others, 0)[0]
    told = outcome.report(Outcome(others, [], len(others), quantity, [quantity], [], VERSIONS))
    assert told.headline == "not the same: 1,001 runs gave 1,001 different results"


def test_a_failed_run_leaves_the_answer_open_and_its_words_are_harmless() -> None:
    one = run("0", {"loss": 1})
    told = report([one, one], failed=[Run("2", {}, "failed", "ValueError: \x1b[31mred")], wanted=5)
    assert (told.match, told.exit_code) == (False, 4)
    assert render(told) == (
        "the same bits in 2 runs, at 1 step\n"
        "  ? run 2 failed: ValueError: \\x1b[31mred\n"
        "  ! 2 runs missing: the process had crashed\n"
        "  quantity  shape   type     steps  digest\n"
        "  loss      scalar  float32  1      c386d8e8d073"
    )


def test_ctrl_c_leaves_what_is_finished() -> None:
    told = report([run("0", {"loss": 1})], wanted=7, interrupted=True)
    assert render(told) == "nothing to compare: 1 run finished\n  ? 6 runs missing: interrupted"
    assert (told.match, told.exit_code) == (False, 4)
    assert (told.attachments["not_made"], told.attachments["interrupted"]) == (6, True)


def test_one_run_that_was_to_be_kept() -> None:
    told = report([run("0", {"loss": 1})])
    assert (told.match, render(told)) == (True, "1 run, and no other to compare it with")
    assert report([run("0", {"loss": 1})], wanted=2).exit_code == 4


def test_where_too_few_runs_finish_no_run_decides() -> None:
    told = report([run("0", {"loss": 1})], failed=[Run("1", {}, "failed", "no memory")], wanted=2)
    assert (told.match, told.exit_code) == (False, 4)
    assert (told.headline, told.findings[0].message) == (
        "nothing to compare: 1 run finished",
        "run 1 failed: no memory",
    )


def test_numbers_that_are_none() -> None:
    runs = [run(str(n), {"w": n}) for n in range(3)]
    (quantity,) = results.collect_quantities(runs, 0)
    cells: list[list[float | None]] = [[0.0, None, 0.0], [None, 0.0, math.inf], [0.0, math.inf, 0.0]]
    told = outcome.report(
        Outcome(
            runs=runs,
            failed=[],
            wanted=3,
            first=quantity,
            shown=[quantity],
            matrices=[Matrix(quantity, {"sum": cells, "max": cells, "norm": cells}, ("A note.",))],
            environments={},
        )
    )
    assert render(told).splitlines()[4:] == [
        "                   0       1       2",
        "           0       0       -      0*",
        "           1       -       0     inf",
        "           2      0*     inf       0",
        "    largest difference inf, inf epsilons of the largest magnitude",
        "    A note.",
    ]
    (shown,) = json.loads(render(told, "json"))["attachments"]["matrices"]
    assert shown["sum"] == [[0.0, None, 0.0], [None, 0.0, "Infinity"], [0.0, "Infinity", 0.0]]


def test_of_many_runs_the_first_ten_are_shown() -> None:
    runs = [run(str(n), {"w": n % 24}) for n in range(25)]
    lines = render(report(runs)).splitlines()
    assert lines[0] == "not the same: 25 runs gave 24 different results"
    assert lines[2] == "      alike: 0 24"
    assert [line.split()[0] for line in lines if line.endswith(("0", "e-06"))][-10:] == [str(n) for n in range(10)]
    assert "    14 more results: see `--format json` or `--html`" in lines
    assert "    the same bits: 0 24" in lines


def test_names_of_quantities_cannot_write_on_a_terminal() -> None:
    value, other = Value("float32", (), "0" * 64), Value("float32", (), "1" * 64)
    told = report([Run("0", {0: {"\x1b[2J": value}}, "finished"), Run("1", {0: {"\x1b[2J": other}}, "finished")])
    assert "\x1b" not in render(told)
    assert "\x1b" not in render(told, "json")


def test_what_a_resumed_run_lost_is_named() -> None:
    runs = [run("A0", {"w": 1}), run("B0", {"w": 2}), run("B1", {"w": 2})]
    for resumed in runs[1:]:
        resumed.lost = ("optimizer", "iterator")
    told = report(runs)
    sentence = (
        "Save the optimizer and iterator in the checkpoint, too: 2 runs (B0, B1) resumed from a checkpoint without."
    )
    assert told.findings[0].fix.split("\n")[0] == sentence
    assert f"      {sentence}" in render(told).splitlines()
