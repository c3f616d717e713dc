"""The story that a report tells, whole, and the same as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from envlock.divergence.knowledge import about
from envlock.divergence.verdict import Level, Suspect, Verdict, headline
from tests.divergence.reports import KNOWN, PLACE, report

STORY = """\
runs differ: 5 runs of train.py:step (TensorFlow 2.21.0, Keras 3.15.1)
  in the program's own mode: differs from step 0 on, first in variable table after step; results of the runs: 0 1 0 2 0
  operation by operation (eager): differs from step 0 on, first in ResourceScatterSub; results of the runs: 0 1 0 2 0
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
  ! also, by itself: Sum at train.py:30, step 1: 2 results"""


def test_the_story() -> None:
    assert str(report()) == STORY


def test_identical_runs_are_told_in_two_lines() -> None:
    same = replace(report("identical"), levels=(Level("as it is", (0,) * 5, None, None, 74, 3),), record=None)
    assert str(same) == (
        "identical: 5 runs of train.py:step (TensorFlow 2.21.0, Keras 3.15.1)\n"
        "  in the program's own mode: identical; 74 entries of 3 steps compared"
    )
    assert (same.match, same.exit_code, report().exit_code) == (True, 0, 1)


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        ("data", "the input pipeline gave other data: ResourceScatterSub, 3 different results in 5 runs"),
        (
            "outside",
            "a value that ResourceScatterSub reads came from outside TensorFlow, and differs: "
            "3 different results in 5 runs",
        ),
        ("sequence", "other operations ran: Python took another way before ResourceScatterSub"),
        ("graph", "the runs differ only in graph mode or under XLA, eagerly they are identical"),
        ("quantity", "what the run shows differs, although every operation gave the same: Python computed it"),
    ],
)
def test_every_verdict_has_its_sentence(verdict: Verdict, sentence: str) -> None:
    assert headline(report(verdict)) == sentence


def test_in_graphs_the_likeliest_suspect_is_named_with_its_line() -> None:
    found = replace(report("graph"), suspects=(Suspect("AddN", "AddN_1", PLACE, KNOWN),))
    assert (found.culprit, found.place) == ("AddN", PLACE)
    assert headline(found).endswith("; the likeliest cause is AddN")


def test_the_json_says_the_same() -> None:
    found = json.loads(json.dumps(report().to_json()))
    assert found["report_version"] == 1
    assert (found["match"], found["verdict"], found["culprit"]) == (False, "operation", "ResourceScatterSub")
    assert found["place"] == {"file": "train.py", "line": 12, "function": "step"}
    assert [each["state"] for each in found["timeline"]] == ["same", "cause", "carried"]
    assert found["origins"][1]["made_by"]["type"] == "Reshape"
    assert found["operation"]["outputs"] == [{"spec": "float32[4,2]", "fingerprint": "0000000000000003"}]


def test_what_is_known_of_an_operation_depends_on_where_it_stands_and_on_the_version() -> None:
    unseeded = about("RandomUniform", frozenset({"unseeded"}), "2.21.0")
    assert unseeded is not None
    assert unseeded.row == "unseeded-random-ops"
    compiled = about("RandomUniform", frozenset({"xla"}), "2.21.0")
    assert compiled is not None
    assert compiled.row == "xla-stateful-random"
    assert about("RandomUniform", frozenset(), "2.21.0") is None
    assert about("Identity", frozenset(), "2.21.0") is None


def test_a_remedy_that_is_in_force_and_did_not_help_is_not_named() -> None:
    off = about("ResourceScatterAdd", frozenset(), "2.21.0")
    on = about("ResourceScatterAdd", frozenset(), "2.21.0", determinism=True)
    assert off is not None
    assert on is not None
    assert [each for each in off.fixes if "enable_op_determinism" in each] != []
    assert [each for each in on.fixes if "enable_op_determinism" in each] == []
