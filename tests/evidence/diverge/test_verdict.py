"""What a report says of what was seen, whole, and the same as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from envlock.data.determinism import load_makers
from envlock.evidence.diverge.evidence import Level, Suspect, Verdict
from envlock.evidence.diverge.known_causes import look_up
from envlock.evidence.diverge.makers import Maker
from envlock.evidence.diverge.sentences import make_headline
from envlock.evidence.diverge.trace import Place
from envlock.reports import render
from envlock.runtime.finding_place import Where
from envlock.runtime.report import Finding
from tests.evidence.diverge.reports import KNOWN, PLACE, evidence, report

TEXT = """\
runs differ: 5 runs of train.py:step (TensorFlow 2.21.0, Keras 3.15.1)
  in the program's own mode: differs from step 0, first in variable table after step; results of the runs: 0 1 0 2 0
  operation by operation (eager): differs from step 0, first in ResourceScatterSub; results of the runs: 0 1 0 2 0
  x ResourceScatterSub on <b>table</b>\\x1b[31m gave 3 different results in 5 runs, although its inputs were equal
      where: train.py:12 in step, step 0, entry 23
            11 | g = tape.gradient(loss, table)
        >   12 | table.scatter_sub(g)  # <script>alert(1)</script>
            13 | yield loss
      reads: resource[], not written in this run before
      reads: int32[8], made by Reshape at train.py:11
      why: Threads add in no order.
      fix: call tf.config.experimental.enable_op_determinism() at the start
      fix: set TF_NUM_INTRAOP_THREADS=1
      known as: resource-scatter-add-cpu
  ! also an independent cause: Sum at train.py:30, step 1: 2 results"""


def test_the_text() -> None:
    assert render(report()) == TEXT


def test_printed_without_a_layout_it_has_its_place_and_remedy() -> None:
    assert str(report()).splitlines() == [
        "runs differ: 5 runs of train.py:step (TensorFlow 2.21.0, Keras 3.15.1)",
        "  x train.py:12: ResourceScatterSub on <b>table</b>\\x1b[31m gave 3 different results in 5 runs, "
        "although its inputs were equal [operation]",
        "      why: Threads add in no order.",
        "      fix: call tf.config.experimental.enable_op_determinism() at the start",
        "      fix: set TF_NUM_INTRAOP_THREADS=1",
        "  ! train.py:30: also an independent cause: Sum at train.py:30, step 1: 2 results [operation]",
        "      why: The cause is not in envlock's tables; TensorFlow's op determinism may refuse or fix it.",
        "      fix: Call `tf.config.experimental.enable_op_determinism()` first: "
        "TensorFlow then raises an error for operations without a deterministic kernel.",
    ]


def test_identical_runs_are_told_in_two_lines() -> None:
    same = report("identical", levels=(Level("as it is", (0,) * 5, None, None, 74, 3),), record=None)
    assert render(same) == (
        "identical: 5 runs of train.py:step (TensorFlow 2.21.0, Keras 3.15.1)\n"
        "  in the program's own mode: identical; 74 entries of 3 steps compared"
    )
    assert (same.match, same.exit_code, report().exit_code) == (True, 0, 1)


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        ("data", "the input pipeline gave different data: ResourceScatterSub, 3 different results in 5 runs"),
        (
            "outside",
            "ResourceScatterSub reads a value from outside TensorFlow, which differs: 3 different results in 5 runs",
        ),
        ("sequence", "different operations ran: the Python code took another branch before ResourceScatterSub"),
        ("graph", "the runs differ only in graph mode or under XLA (eager runs are identical)"),
        (
            "quantity",
            "a returned or recorded value differs, although every operation gave the same: Python computed it",
        ),
    ],
)
def test_every_verdict_has_its_sentence(verdict: Verdict, sentence: str) -> None:
    assert make_headline(evidence(verdict)) == sentence


def test_a_race_and_what_was_not_seen_have_their_own_words() -> None:
    race = report("race", known=None, threads=3, others=()).findings[0]
    assert race.message == "3 threads used variable <b>table</b>\\x1b[31m in 3 different orders in 5 runs"
    assert race.fix == "Change the variable from one thread, in a fixed order; a lock alone leaves the order open."
    blind = report("threads", known=None, blind="thread 1 did something else in each run", others=()).findings[0]
    assert blind.message == (
        "the difference, first in variable table after step, came from outside the traced thread: "
        "thread 1 did something else in each run"
    )
    assert blind.why == "What other threads computed was not compared whole, so the cause can be there or in Python."
    others = "the program is one of 2 that TF_CONFIG names, and the others are not traced"
    workers = report("processes", known=None, blind=others, others=(), record=None).findings[0]
    assert workers.message == (
        f"the difference, first in variable table after step, can come from outside the traced process: {others}"
    )
    outside = report("outside", known=None, threads=2, others=()).findings[0]
    assert outside.why.endswith(", or the order in which threads finished.")
    assert outside.fix.startswith("Make that value the same in every run: ")


def test_in_graphs_the_likeliest_suspect_is_named_with_its_line() -> None:
    found = report("graph", suspects=(Suspect("AddN", "AddN_1", PLACE, KNOWN),))
    assert (found.attachments["culprit"], found.attachments["place"]) == ("AddN", PLACE._asdict())
    assert found.findings[0].message.endswith("; the most likely cause is AddN")
    assert (found.findings[0].where.operation, str(found.findings[0].where)) == ("AddN", "train.py:12")


def test_the_json_says_the_same() -> None:
    found = json.loads(json.dumps(report().to_json()))
    assert (found["report_version"], found["command"], found["match"]) == (2, "diverge", False)
    shown = found["attachments"]
    assert (shown["verdict"], shown["culprit"]) == ("operation", "ResourceScatterSub")
    assert shown["place"] == {"file": "train.py", "line": 12, "function": "step"}
    assert [each["state"] for each in shown["timeline"]] == ["same", "cause", "carried"]
    assert shown["origins"][1]["made_by"]["type"] == "Reshape"
    assert shown["operation"]["outputs"] == [{"spec": "float32[4,2]", "fingerprint": "0000000000000003"}]
    assert [(each["rule"], each["where"]) for each in found["findings"]] == [
        (
            "operation",
            {
                "file": "train.py",
                "line": 12,
                "function": "step",
                "operation": "ResourceScatterSub",
                "text": "table.scatter_sub(g)  # <script>alert(1)</script>",
            },
        ),
        ("operation", {"file": "train.py", "line": 30, "operation": "Sum"}),
    ]


def test_a_line_that_the_file_no_longer_has_is_named_without_its_text() -> None:
    found = report(source=("g = tape.gradient(loss, table)",))
    assert (str(found.findings[0].where), found.findings[0].where.text) == ("train.py:12", "")
    assert report(source=()).findings[0].where.text == ""


def test_what_the_linter_says_of_the_pipeline_that_was_read() -> None:
    place = Where(operation="shuffle", file="train.py", line=8)
    found = report(
        "data",
        pipelines=(Finding("ENV501", "error", place, message="it has no seed", why="Why.", fix="Seed it.", source=""),),
        others=(),
    )
    assert render(found).splitlines()[-4:] == [
        "      known as: resource-scatter-add-cpu",
        "  x it has no seed [ENV501] (read at train.py:8)",
        "      why: Why.",
        "      fix: Seed it.",
    ]
    (found_first, pipeline) = found.to_json()["findings"]
    assert (found_first["rule"], pipeline["where"]) == ("data", {"file": "train.py", "line": 8, "operation": "shuffle"})


def test_what_no_operation_explains_is_about_what_differs_first() -> None:
    found = report("quantity", record=None, others=())
    assert found.to_json()["findings"][0]["where"] == {"operation": "variable table after step"}
    assert report("graph", record=None, levels=(), others=()).to_json()["findings"][0]["where"] == {
        "operation": "the runs"
    }


def test_what_limits_the_verdict_is_a_note() -> None:
    found = report("identical", record=None, levels=(), notes=("it says \x1b[2J",))
    assert found.to_json()["notes"] == ["it says \x1b[2J"]
    assert render(found).splitlines()[1:] == ["  note: it says \\x1b[2J"]


def test_what_is_known_of_an_operation_depends_on_where_it_stands_and_on_the_version() -> None:
    unseeded = look_up("RandomUniform", frozenset({"unseeded"}), "2.21.0")
    assert unseeded is not None
    assert unseeded.row == "unseeded-random-ops"
    compiled = look_up("RandomUniform", frozenset({"xla"}), "2.21.0")
    assert compiled is not None
    assert compiled.row == "xla-stateful-random"
    assert look_up("RandomUniform", frozenset(), "2.21.0") is None
    assert look_up("Identity", frozenset(), "2.21.0") is None


def test_a_remedy_that_is_in_force_and_did_not_help_is_not_named() -> None:
    off = look_up("ResourceScatterAdd", frozenset(), "2.21.0")
    on = look_up("ResourceScatterAdd", frozenset(), "2.21.0", determinism=True)
    assert off is not None
    assert on is not None
    assert [each for each in off.fixes if "enable_op_determinism" in each] != []
    assert [each for each in on.fixes if "enable_op_determinism" in each] == []


def test_the_line_that_made_a_value_is_told_with_its_remedy() -> None:
    (random,) = [row for row in load_makers() if "random.sample" in row.functions]
    maker = Maker("random.sample", Place("data.py", 4, "batch"), random, text="rows = random.sample(rows, 8)")
    row = replace(KNOWN, row="unseeded-random-ops")
    shown = report("outside", known=row, others=(), maker=maker)
    assert shown.findings[0].message.endswith("; random.sample at data.py:4 made it")
    assert (shown.findings[0].why, shown.attachments["maker"]["text"]) == (
        "random.sample gives something else in each run.",
        "rows = random.sample(rows, 8)",
    )
    assert "made by: random.sample, data.py:4 in batch" in render(shown)
    likely = report("outside", known=None, others=(), maker=replace(maker, is_shown=False))
    assert likely.findings[0].message.endswith("; random.sample at data.py:4 may have made it")
    (queue,) = [row for row in load_makers() if "queue.Queue.get" in row.functions]
    assert report("outside", known=None, maker=replace(maker, row=queue)).findings[0].fix == queue.fix


def test_what_python_makes_is_not_cured_by_op_determinism() -> None:
    python = Finding(
        "ENV509",
        "warning",
        Where(operation="GeneratorDataset"),
        message="it calls Python",
        why="x",
        fix="y",
        source="z",
    )
    of_python, of_tensorflow = (report("data", known=None, pipelines=each) for each in ((python,), ()))
    assert "`workers=1`" in of_python.findings[0].fix
    assert "enable_op_determinism()" in of_tensorflow.findings[0].fix
