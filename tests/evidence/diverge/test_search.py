"""Which runs are made to find a cause, and what is said of what they show; the runs are traces that lie ready."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.evidence.diverge.comparison import Entry, compare
from envlock.evidence.diverge.debug import (
    KEPT,
    LEFT,
    LEFT_AT_THE_END,
    LEFT_THERE,
    NOTHING,
    ONCE,
    OTHER_WORK,
    SHOW,
    debug,
)
from envlock.evidence.diverge.observed_runs import AGAIN, Observed, Request, RunTimeoutError
from envlock.evidence.diverge.trace import Record, Value
from envlock.guest.target import Target
from envlock.guest.tracing.source_lines import Places
from envlock.guest.training.store import LOG
from envlock.reports import render
from envlock.runtime.errors import FactError
from envlock.runtime.report import Report
from tests.evidence.diverge.traces import HEADER, op, write

Runs = Sequence[list[Record | Value]]


def searched(
    *made: Runs,
    drawing: str = "",
    reading: bool = False,
    elsewhere: int = 0,
    working: Runs | None = None,
    function: str = "step",
    datasets: Sequence[object] = (),
    watched: Runs | None = None,
) -> tuple[Report, list[str]]:
    """Return the report where these runs are made one after the other, and in which mode each was asked for.

    `drawing`: what a line of each has called before, with another result; `reading`: a line of each but the first has
    read what the one before had left. `elsewhere`: operations of threads that were not recorded; `working`: those of
    one that was. `datasets`: the pipelines that they read.
    `watched`: the runs of fresh processes whose statements are watched.
    """
    ready, asked = iter(made), []

    def observer(request: Request, folder: Path) -> Observed:
        runs: Runs | None = watched
        if request.lines is None:
            runs = next(ready, None)
        elif watched is None:  # no statement shows anything here
            raise RunTimeoutError("too long")
        if runs is None and request.keeps:
            raise RunTimeoutError("too long")
        assert runs is not None
        asked.append(request.mode + (AGAIN if folder.name.endswith(AGAIN) else ""))
        folder.mkdir()
        for number, entries in enumerate(runs):
            write(folder / f"{number}.trace", entries)
        compared: list[list[Entry]] = [list(each) for each in runs]
        ends = []
        for number in range(len(runs)):
            makers = drawn(number, function, drawing) if drawing else []
            if reading and number:
                makers = [{"name": "open", "place": ["train.py", 3, "load"], "calls": [[0, 1, str(number)]]}]
            ends.append({"end": "finished", "makers": makers, "elsewhere": elsewhere})
            if working is not None:
                ends[-1]["starts"] = {"1": 0}
                write(folder / f"{number}.trace.1", working[number])
        answers: dict[str, Any] = {"ends": dict(enumerate(ends)), "datasets": datasets}
        return Observed(request, folder, HEADER, compare(compared), answers)

    request = Request(Target(Path("train.py"), "step"), None, len(made[0]), fresh=watched is not None)
    return debug(request, lambda text: None, observer), asked


def drawn(number: int, function: str, name: str) -> list[dict[str, Any]]:
    return [{"name": name, "place": ["train.py", 5, function], "calls": [[0, 1, str(number)]]}]


def read(restored: int) -> list[Record | Value]:
    return [op("Sin", 7, [restored], [restored + 9])]


def test_runs_that_show_nothing_are_not_identical() -> None:
    """`identical: 0 entries of 0 steps compared` was exit code 0: a training in child processes, say."""
    with pytest.raises(FactError) as caught:
        searched([[], [], []])
    assert (caught.value.message, caught.value.hint) == (NOTHING, SHOW)


def test_a_program_that_leaves_everything_to_threads_is_compared_by_their_work() -> None:
    one, other = op("Sin", 7, [1], [2]), op("Cos", 8, [3], [4])
    report, _ = searched([[], [], []], working=[[one, other], [other, one], [one, other]])
    assert (report.match, report.headline.partition(":")[0]) == (True, "identical")
    assert "identical; 2 entries of 1 step compared" in "\n".join(render(report).splitlines())
    with pytest.raises(FactError) as caught:
        searched([[], []], working=[[one, other], [one, one]])
    assert (caught.value.message, caught.value.hint) == (OTHER_WORK, SHOW)


def test_equal_runs_of_a_pipeline_without_an_order_prove_nothing() -> None:
    """Threads that may finish in any order came in the same one in three traced runs, and in eight orders without."""
    shuffles = [
        "shuffles",
        "ShuffleDatasetV3",
        ["data", "size", "seed", "seed2"],
        {"reshuffle_each_iteration": True},
        {},
    ]
    unordered = ["map", "ParallelMapDatasetV2", ["shuffles"], {"deterministic": b"false"}, {}]
    body = {"nodes": [shuffles, unordered], "arguments": [], "returns": ["map"]}
    read_at = {"place": ["train.py", 20, "<module>"], "graph": {"main": body, "functions": {}, "deterministic": None}}
    report, _ = searched([read(1)] * 3, datasets=[read_at])
    assert (report.match, report.headline.partition(":")[0]) == (True, "identical")
    message = "ParallelMapDatasetV2 can give its elements in any order: these runs happened to agree"
    assert [(each.rule, each.severity, each.message, str(each.where)) for each in report.findings] == [
        ("ENV503", "warning", message, "train.py:20")
    ]
    assert render(report).splitlines()[2] == f"  ! {message} [ENV503] (read at train.py:20)"


@pytest.mark.parametrize("lines", [(18,), (18, 19)])
def test_the_line_that_made_a_pipeline_without_an_order_is_named_where_one_did(lines: tuple[int, ...]) -> None:
    unordered = ["map", "ParallelMapDatasetV2", ["range"], {"deterministic": b"false"}, {}]
    body = {"nodes": [unordered], "arguments": [], "returns": ["map"]}
    read_at = {"place": ["train.py", 20, "<module>"], "graph": {"main": body, "functions": {}, "deterministic": None}}
    maps = [op("ParallelMapDatasetV2", line, [1], [2]) for line in lines]
    runs: Runs = [[*maps, op("IteratorGetNext", 20, [None], [number])] for number in range(3)]
    report, _ = searched(*[runs] * 4, datasets=[read_at])
    cause = report.findings[0]
    message = "the input pipeline gave different data: IteratorGetNext, 3 different results in 3 runs"
    if len(lines) == 1:
        message += "; ParallelMapDatasetV2 at train.py:18 may have made it"
        assert cause.fix == "Leave deterministic=False out, or set it to True."
    assert (cause.rule, cause.message) == ("data", message)


def test_runs_that_are_the_same_again_say_so() -> None:
    """A model that is called once with a random input, to build it, differed, and its training did not."""

    def run(drawn: int, *, same: int) -> list[Record | Value]:
        training = [op("Mul", 30, [5], [6]) for _ in range(same)]
        return [op("Relu", 8, [1], [1]), op("MatMul", 9, [drawn], [drawn]), op("Tanh", 9, [drawn], [drawn]), *training]

    def list_notes(same: int) -> list[str]:
        report, _ = searched([run(number, same=same) for number in range(3)], *[[run(1, same=same)] * 3] * 3)
        return [note for note in report.notes if note.startswith("entries")]

    assert list_notes(4) == ["entries 1 to 2 differ: the 4 after them are the same in all runs"]
    assert list_notes(1) == []
    assert list_notes(0) == []


def test_what_only_the_first_run_does_otherwise_is_what_it_left_if_no_run_does_it_again() -> None:
    report, asked = searched([read(1), read(2), read(2)], [read(2)] * 3)
    assert asked == ["graph", "graph again"]
    seen = report.attachments
    assert (seen["verdict"], seen["maker"], seen["because"]) == ("outside", None, [LEFT])
    assert seen["known"]["row"] == "left-by-an-earlier-run"


def test_what_each_run_leaves_at_its_end_is_not_blamed_on_hashes() -> None:
    """Where runs end after the first difference, before they save, every experiment would seem to cure it."""
    other = [read(1), read(2), read(3)]
    report, asked = searched(other, watched=[read(1)] * 3)
    seen = report.attachments
    assert asked == ["graph", "graph"]
    assert (seen["verdict"], seen["maker"], seen["because"]) == ("outside", None, [LEFT_AT_THE_END])
    assert seen["known"]["row"] == "left-by-an-earlier-run"
    # Runs that showed nothing are no evidence.
    report, _ = searched(other, *[[read(2)] * 3] * 4, watched=[[], [], []])
    assert LEFT_AT_THE_END not in report.attachments["because"]
    # Two of three that are equal may be so by accident.
    report, _ = searched([read(1), read(2), read(2)], *[[read(2)] * 3] * 4, watched=[read(1)] * 3)
    assert LEFT_AT_THE_END not in report.attachments["because"]


def test_repeated_runs_that_show_nothing_are_no_evidence_of_what_was_left() -> None:
    report, _ = searched([read(1), read(2), read(2)], [[], [], []], *[[read(2)] * 3] * 2)
    assert LEFT not in report.attachments["because"]


def test_weights_that_the_first_run_did_not_find_are_what_it_left() -> None:
    """Later runs read other weights each, so that equal runs never come, and hashes were blamed."""
    begins: list[Record | Value] = [op("Cos", 3, [1], [2])]
    first: Runs = [begins, read(1), read(2)]
    report, asked = searched(first, [read(3), read(4), read(5)], watched=[])
    seen = report.attachments
    assert asked == ["graph", "graph again"]
    assert (seen["verdict"], seen["maker"], seen["because"]) == ("sequence", None, [LEFT_THERE])
    went_on = "run 1 went on with Cos it at train.py:3; runs 2, 3 went on with Sin it at train.py:7"
    assert list(report.notes) == [went_on]
    assert seen["known"]["row"] == "left-by-an-earlier-run"
    # Who takes the first run's way again took it by chance.
    report, _ = searched(first, [begins, read(4), read(5)], *[[read(2)] * 3] * 8, watched=[read(1), begins, read(2)])
    assert LEFT_THERE not in report.attachments["because"]


def test_the_line_that_reads_what_an_earlier_run_wrote_is_named() -> None:
    """Whole runs, which save at their end: nothing that is held makes them equal."""
    other = [read(1), read(2), read(3)]
    report, _ = searched(*[other] * 9, reading=True)
    seen = report.attachments
    assert seen["maker"]["place"] == {"file": "train.py", "line": 3, "function": "load"}
    assert seen["known"]["row"] == "left-by-an-earlier-run"
    assert "train.py:3 reads a file that an earlier one of these runs wrote" in seen["because"]
    assert report.findings[0].message.endswith("; open at train.py:3 may have made it")
    report, _ = searched([read(1), read(2), read(2)], [read(2)] * 3, reading=True)
    seen = report.attachments
    assert (seen["because"], seen["maker"]["place"]["line"]) == ([LEFT], 3)


def test_what_the_first_run_does_otherwise_each_time_is_tried_as_ever() -> None:
    first = [read(1), read(2), read(2)]
    report, asked = searched(first, first, [read(2)] * 3, [read(2)] * 3)
    assert asked == ["graph", "graph again", "graph", "graph"]
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


def test_another_graph_that_is_called_is_another_branch_and_no_graph_is_opened() -> None:
    one, two = op("Call", 7, [1], [2], name="f"), op("Call", 8, [1], [2], name="f")
    report, asked = searched([[one], [two], [one]], [[one]] * 3, [[one]] * 3)
    assert (report.attachments["verdict"], asked) == ("sequence", ["graph"] * 3)


def test_a_value_is_found_although_tensorflow_makes_another_difference_on_the_same_line() -> None:
    drawn: Runs = [[*read(number), op("Call", 7, [1], [number + 20], name="fit")] for number in (1, 2, 3)]
    held: Runs = [[*read(1), op("Call", 7, [1], [number + 20], name="fit")] for number in (1, 2, 3)]
    report, asked = searched(drawn, held, held)
    assert (report.attachments["verdict"], asked) == ("outside", ["graph"] * 3)
    assert report.attachments["because"] == ["with seeds for Python's and NumPy's generators, the difference is gone"]
    again: Runs = [[*read(1), op("Mul", 7, [number], [number + 20])] for number in (1, 2, 3)]  # it is drawn once more
    report, _ = searched(drawn, again)
    assert report.attachments["because"] == ["with seeds for Python's and NumPy's generators, the difference remains"]


def test_what_is_gone_for_once_is_tried_again() -> None:
    different: Runs = [read(number) for number in (1, 2, 3)]
    report, asked = searched(different, [read(1)] * 3, different)
    assert asked == ["graph"] * 3
    assert report.attachments["because"] == ["with seeds for Python's and NumPy's generators, the difference remains"]


def made_by(*makers: list[Any]) -> list[Any]:
    return [{"name": name, "place": ["train.py", line, "step"], "calls": calls} for name, line, calls in makers]


def test_a_line_is_searched_in_halves_where_the_last_ones_did_not_make_it() -> None:
    different: Runs = [read(number) for number in (1, 2, 3)]
    asked: list[Any] = []

    def observer(request: Request, folder: Path) -> Observed:
        if request.lines is not None:  # no statement shows anything here
            raise RunTimeoutError("too long")
        asked.append(sorted(line for _, _, line in request.held))
        equal = 3 in asked[-1]
        ends = {}
        runs: list[list[Entry]] = []
        folder.mkdir()
        for number, entries in enumerate(different):
            shown = read(1) if equal else entries
            write(folder / f"{number}.trace", shown)
            runs.append([*shown])
            makers = made_by(*(["os.urandom", at, [[0, at, str(number)]]] for at in range(1, 9)))
            ends[number] = {"end": "finished", "makers": makers}
        answers: dict[str, Any] = {"ends": ends}
        return Observed(request, folder, HEADER, compare(runs), answers)

    request = Request(Target(Path("train.py"), "step"), None, 3, fresh=False)
    seen = debug(request, lambda text: None, observer).attachments
    assert seen["maker"]["place"]["line"] == 3
    every = list(range(1, 9))
    assert asked[:6] == [[], [8], [7], [6], every, every]
    assert asked[-2:] == [[3], [3]]


def test_a_run_that_waits_for_what_is_held_is_ended_and_others_are_tried() -> None:
    different: Runs = [read(number) for number in (1, 2, 3)]

    def observer(request: Request, folder: Path) -> Observed:
        if request.lines is not None:  # no statement shows anything here
            raise RunTimeoutError("too long")
        if request.held:
            assert request.timeout == 60
            raise RunTimeoutError("too long")
        folder.mkdir()
        for number, entries in enumerate(different):
            write(folder / f"{number}.trace", entries)
        ends = {
            number: {"end": "finished", "makers": made_by(["time.time", 4, [[0, 1, str(number)]]])}
            for number in range(3)
        }
        return Observed(request, folder, HEADER, compare(list(different)), {"ends": ends})

    request = Request(Target(Path("train.py"), "step"), None, 3, fresh=False)
    seen = debug(request, lambda text: None, observer).attachments
    assert seen["because"] == [
        "with equal values from time.time at train.py:4 in every run, a run took more than 60 s and was ended",
        "not the same in every run before that: time.time at train.py:4",
    ]


@pytest.mark.parametrize(("finished", "verdict"), [(0, None), (1, None), (2, "identical"), (3, "outside")])
def test_a_search_that_is_stopped_in_the_first_runs_tells_of_those_that_ended(
    finished: int, verdict: str | None
) -> None:
    def observer(request: Request, folder: Path) -> Observed:
        if request.lines is not None:  # no statement shows anything here
            raise RunTimeoutError("too long")
        folder.mkdir()
        lines = []
        for number in range(finished):
            write(folder / f"{number}.trace", read(2 if number < 2 else 3))
            lines.append(json.dumps({"run": number, "end": "finished"}) + "\n")
        (folder / LOG).write_text("".join(lines))
        raise KeyboardInterrupt("SIGTERM")

    request = Request(Target(Path("train.py"), "step"), None, 5, fresh=False)
    if verdict is None:
        with pytest.raises(KeyboardInterrupt):
            debug(request, lambda text: None, observer)
        return
    report = debug(request, lambda text: None, observer)
    seen = report.attachments
    assert (report.match, report.exit_code > 0) == (False, True)
    assert (seen["verdict"], seen["runs"], seen["stopped"]) == (verdict, finished, "SIGTERM")
    assert report.findings[-1].message == (
        "SIGTERM came while running the program in its own mode: this is what was known by then"
    )


def test_a_search_that_is_stopped_later_tells_what_was_seen_and_tried() -> None:
    calls: Runs = [[op("Call", 7, [1], [made], name="f")] for made in (2, 3)]
    made = iter([calls])

    def observer(request: Request, folder: Path) -> Observed:
        if request.lines is not None:  # no statement shows anything here
            raise RunTimeoutError("too long")
        runs = next(made, None)
        if runs is None:
            raise KeyboardInterrupt
        folder.mkdir()
        for number, entries in enumerate(runs):
            write(folder / f"{number}.trace", entries)
        ends = {number: {"end": "finished"} for number in range(2)}
        return Observed(request, folder, HEADER, compare(list(runs)), {"ends": ends})

    request = Request(Target(Path("train.py"), "step"), None, 2, fresh=False)
    report = debug(request, lambda text: None, observer)
    assert (report.attachments["verdict"], report.attachments["stopped"]) == ("graph", "Ctrl-C")
    assert report.headline.startswith("runs differ: ")


def shown(number: int) -> list[Record | Value]:
    return [*read(1), Value(0, "loss", number, "float32[]")]


def test_where_repeat_finds_another_answer_it_is_said_why() -> None:
    same: Runs = [shown(1)] * 3
    report, asked = searched(same, [shown(1), shown(2)])
    assert (report.match, asked) == (True, ["graph", "graph"])
    assert report.notes[-1] == f"{KEPT}, first in loss"
    report, asked = searched(same, [shown(1), [op("Cos", 2, [1], [2]), *shown(1)]])
    assert [note for note in report.notes if note.startswith(KEPT)] == []
    report, asked = searched(same)  # it cannot be run so
    assert (report.match, asked) == (True, ["graph"])


def test_a_line_of_the_module_is_not_seen_by_repeat() -> None:
    different: Runs = [read(number) for number in (1, 2, 3)]
    report, _ = searched(different, [read(1)] * 3, [read(1)] * 3, drawing="random.choice")
    assert ONCE not in report.notes
    report, _ = searched(different, [read(1)] * 3, [read(1)] * 3, drawing="random.choice", function="<module>")
    assert ONCE in report.notes


def test_what_other_threads_did_is_no_verdict_where_the_line_is_known() -> None:
    different: Runs = [read(number) for number in (1, 2, 3)]
    report, _ = searched(different, *[[read(1)] * 3] * 3, drawing="time.time", elsewhere=2)
    assert report.attachments["verdict"] == "outside"
    report, _ = searched(different, *[different] * 6, elsewhere=2)
    assert report.attachments["verdict"] == "threads"


def test_eager_runs_in_which_python_drew_the_same_by_chance_are_made_once_more() -> None:
    calls: Runs = [[op("Call", 7, [1], [made], name="f")] for made in (2, 3, 2)]
    same: Runs = [[op("Sin", 6, [1], [2])]] * 3
    other: Runs = [[op(kind, 6, [1], [2])] for kind in ("Sin", "Cos", "Sin")]
    report, asked = searched(calls, same, other, same, same, drawing="random.choice")
    assert asked == ["graph", "eager", "eager", "eager", "eager"]
    seen = report.attachments
    assert (seen["verdict"], seen["place"]["line"], seen["maker"]["place"]["line"]) == ("sequence", 6, 5)
    _, asked = searched(calls, same, calls)
    assert asked == ["graph", "eager", "graph"]


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
