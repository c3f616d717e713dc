"""Which runs are made to find a cause, and what is said of what they show; the runs are traces that lie ready."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.divergence.comparison import Entry, compare
from envlock.divergence.debug import LEFT, NOTHING, SHOW, debug
from envlock.divergence.observed_runs import AGAIN, Observed, Request
from envlock.divergence.trace import Record, Value
from envlock.guest.target import Target
from envlock.guest.tracing.source_lines import Places
from envlock.runtime.errors import FactError
from envlock.runtime.report import Report
from tests.divergence.traces import HEADER, op, write

Runs = Sequence[list[Record | Value]]


def searched(*made: Runs, drawing: bool = False) -> tuple[Report, list[str]]:
    """Return the report where these runs are made one after the other, and in which mode each was asked for.

    `drawing`: before anything else a line of each has drawn another number.
    """
    ready, asked = iter(made), []

    def observer(request: Request, folder: Path) -> Observed:
        asked.append(request.mode + (AGAIN if folder.name.endswith(AGAIN) else ""))
        runs: Runs = next(ready)
        folder.mkdir()
        for number, entries in enumerate(runs):
            write(folder / f"{number}.trace", entries)
        compared: list[list[Entry]] = [list(each) for each in runs]
        ends = [{"end": "finished", "makers": drawn(number) if drawing else []} for number in range(len(runs))]
        answers: dict[str, Any] = {"ends": dict(enumerate(ends))}
        return Observed(request, folder, HEADER, compare(compared), answers)

    request = Request(Target(Path("train.py"), "step"), None, len(made[0]), fresh=False)
    return debug(request, lambda text: None, observer), asked


def drawn(number: int) -> list[dict[str, Any]]:
    return [{"name": "random.choice", "place": ["train.py", 5, "step"], "calls": [[0, 1, str(number)]]}]


def read(restored: int) -> list[Record | Value]:
    return [op("Sin", 7, [restored], [restored + 9])]


def test_runs_that_show_nothing_are_not_identical() -> None:
    """`identical: 0 entries of 0 steps compared` was exit code 0: a training in child processes, say."""
    with pytest.raises(FactError) as caught:
        searched([[], [], []])
    assert (caught.value.message, caught.value.hint) == (NOTHING, SHOW)


def test_what_only_the_first_run_does_otherwise_is_what_it_left_if_no_run_does_it_again() -> None:
    report, asked = searched([read(1), read(2), read(2)], [read(2)] * 3)
    assert asked == ["graph", "graph again"]
    seen = report.attachments
    assert (seen["verdict"], seen["maker"], seen["because"]) == ("outside", None, [LEFT])
    assert seen["known"]["row"] == "left-by-an-earlier-run"


def test_what_the_first_run_does_otherwise_each_time_is_tried_as_ever() -> None:
    first = [read(1), read(2), read(2)]
    report, asked = searched(first, first, [read(2)] * 3)
    assert asked == ["graph", "graph again", "graph"]
    assert report.attachments["because"] == [
        "with seeds for Python's and NumPy's generators, the difference is gone",
    ]


def test_other_operations_in_the_first_run_are_its_process_if_it_does_them_in_each() -> None:
    begins, goes_on = [op("Cos", 3, [1], [2]), *read(1)], read(1)
    report, asked = searched([begins, goes_on, goes_on], [begins, goes_on])
    assert (report.match, asked) == (True, ["graph", "graph again"])
    assert "the first run ran other operations, as it initialized the process, and is left out" in report.notes
    report, asked = searched([begins, goes_on, goes_on], [goes_on, goes_on], [goes_on] * 3)
    assert (report.attachments["verdict"], report.attachments["because"]) == ("sequence", [LEFT])


def test_what_stays_a_graph_in_eager_runs_is_looked_into() -> None:
    calls: Runs = [[op("Call", 7, [1], [made], name="f")] for made in (2, 3)]
    inside: Runs = [
        [op("RandomUniform", 9, [1], [made], name="seed=0 seed2=0"), *run] for made, run in enumerate(calls)
    ]
    report, asked = searched(calls, calls, inside)
    seen = report.attachments
    assert asked == ["graph", "eager", "in-graph"]
    assert (seen["verdict"], seen["culprit"], seen["place"]["line"]) == ("operation", "RandomUniform", 9)
    assert seen["known"]["row"] == "unseeded-random-ops"
    report, _ = searched(calls, calls, calls)
    assert (report.attachments["verdict"], report.attachments["culprit"]) == ("call", "Call")


def test_another_graph_that_is_called_is_another_branch_and_no_graph_is_opened() -> None:
    one, two = op("Call", 7, [1], [2], name="f"), op("Call", 8, [1], [2], name="f")
    report, asked = searched([[one], [two], [one]], [[one]] * 3)
    assert (report.attachments["verdict"], asked) == ("sequence", ["graph", "graph"])


def test_a_value_is_found_although_tensorflow_makes_another_difference_on_the_same_line() -> None:
    drawn: Runs = [[*read(number), op("Call", 7, [1], [number + 20], name="fit")] for number in (1, 2, 3)]
    held: Runs = [[*read(1), op("Call", 7, [1], [number + 20], name="fit")] for number in (1, 2, 3)]
    report, asked = searched(drawn, held)
    assert (report.attachments["verdict"], asked) == ("outside", ["graph", "graph"])
    assert report.attachments["because"] == ["with seeds for Python's and NumPy's generators, the difference is gone"]
    again: Runs = [[*read(1), op("Mul", 7, [number], [number + 20])] for number in (1, 2, 3)]  # it is drawn once more
    report, _ = searched(drawn, again)
    assert report.attachments["because"] == ["with seeds for Python's and NumPy's generators, the difference remains"]


def test_eager_runs_in_which_python_drew_the_same_by_chance_are_made_once_more() -> None:
    calls: Runs = [[op("Call", 7, [1], [made], name="f")] for made in (2, 3, 2)]
    same: Runs = [[op("Sin", 6, [1], [2])]] * 3
    other: Runs = [[op(kind, 6, [1], [2])] for kind in ("Sin", "Cos", "Sin")]
    report, asked = searched(calls, same, other, same, drawing=True)
    assert asked == ["graph", "eager", "eager", "eager"]
    seen = report.attachments
    assert (seen["verdict"], seen["place"]["line"], seen["maker"]["place"]["line"]) == ("sequence", 6, 5)
    _, asked = searched(calls, same, calls, calls)
    assert asked == ["graph", "eager", "graph", "in-graph"]


def test_a_line_that_autograph_made_is_the_line_it_was_made_of(tmp_path: Path) -> None:
    places, generated = Places(str(tmp_path)), "/tmp/__autograph_generated_file1.py"
    made: dict[str, Any] = {"places": places}
    exec(compile("def loss():\n    return places.find_caller()", generated, "exec"), made)
    origin = SimpleNamespace(loc=SimpleNamespace(filename=str(tmp_path / "train.py"), lineno=7), function_name="loss")
    made["loss"].ag_source_map = {(generated, 2): origin}

    library = "def converted_call(converted_f):\n    return converted_f()"
    exec(compile(library, "/env/site-packages/tensorflow/api.py", "exec"), made)
    assert made["converted_call"](made["loss"]) == ("train.py", 7, "loss")
    made["loss"].ag_source_map = {}
    found = made["converted_call"](made["loss"])
    assert (found[0], found[2]) == (Path(__file__).name, "test_a_line_that_autograph_made_is_the_line_it_was_made_of")
