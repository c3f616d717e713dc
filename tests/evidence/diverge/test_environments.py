"""The report on two traces: what is said, in text and JSON, and what cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envlock.evidence.diverge.trace import Record, TraceError, Value
from envlock.evidence.diverge.two_traces import report
from envlock.reports import render
from envlock.runtime.errors import UsageError
from tests.evidence.diverge.traces import HEADER, op, value, write

RUN: list[Record | Value] = [
    op("Relu", 3, [1], [2]),
    op("MatMul", 4, [2, None], [3], name="dense/MatMul"),
    value("loss", 9),
]
OTHER = [RUN[0], op("MatMul", 4, [2, None], [5], name="dense_1/MatMul"), value("loss", 8)]


def lines(folder: Path, a: list[Record | Value], b: list[Record | Value]) -> list[str]:
    """Return the text on two traces, without the folder's name."""
    conditions = {**HEADER.conditions, "environ.ONEDNN_MAX_CPU_ISA": "AVX2"}
    found = report(
        str(write(folder / "a.trace", a, {"threads.intra_op": 2})),
        str(write(folder / "b.trace", b, {"threads.intra_op": 4}, tensorflow="2.18.1", conditions=conditions)),
    )
    return render(found).replace(str(folder) + "/", "").splitlines()


def test_the_first_operation_its_line_and_what_differs(tmp_path: Path) -> None:
    assert lines(tmp_path, RUN, OTHER) == [
        "different bits: A a.trace (TensorFlow 2.21.0) and B b.trace (TensorFlow 2.18.1)",
        "  3 pairs of entries of 1 step compared",
        "  x MatMul is the first operation that gave different bits from inputs that are equal as far as they are known",
        "      where: train.py:4 in step, step 0",
        "      named: dense/MatMul and dense_1/MatMul",
        "      reads: float32[2], float32[2]",
        "      gives: float32[2]",
        "      of its 2 inputs 1 have a fingerprint, and were compared",
        "      why: Another version, device or instruction set computes this operation with another kernel, "
        "or in another order.",
        "      fix: Make the conditions that differ equal; `envlock verify` says how.",
        "differences between the two environments",
        "  i environ.ONEDNN_MAX_CPU_ISA: none in A, AVX2 in B",
        "  i tensorflow.version: 2.21.0 in A, 2.18.1 in B",
        "  i threads.intra_op: 2 in A, 4 in B",
    ]


def test_only_where_every_input_is_known_are_inputs_called_equal(tmp_path: Path) -> None:
    known = [op("MatMul", 4, [2, 6], [output]) for output in (3, 5)]
    assert lines(tmp_path, [RUN[0], known[0]], [RUN[0], known[1]])[2] == (
        "  x MatMul is the first operation that gave different bits from equal inputs"
    )


def test_the_same_bits(tmp_path: Path) -> None:
    assert lines(tmp_path, RUN, RUN)[:3] == [
        "the same bits: A a.trace (TensorFlow 2.21.0) and B b.trace (TensorFlow 2.18.1)",
        "  3 pairs of entries of 1 step compared",
        "    all operations gave the same bits",
    ]


@pytest.mark.parametrize(
    ("b", "answer", "rule", "message"),
    [
        (
            [op("Exp", 30, [], [])],
            "not comparable",
            "not-comparable",
            "the traces cannot be aligned: the runs ran different operations, or at different lines",
        ),
        (
            [RUN[0], *(op("Exp", 30, [], []) for _ in range(20))],  # what goes together is equal, and says nothing
            "not comparable",
            "not-comparable",
            "the traces cannot be aligned: the runs ran different operations, or at different lines",
        ),
        (
            [op("Relu", 3, [7], [8]), *RUN[1:]],
            "different bits",
            "carried",
            "Relu differs first, and so does its input, which came from outside the traced operations",
        ),
        (
            [*RUN, op("Relu", 3, [1], [2], step=1)],
            "different bits",
            "longer",
            "they are equal up to the end of the shorter one; B has more steps",
        ),
    ],
)
def test_other_verdicts(tmp_path: Path, b: list[Record | Value], answer: str, rule: str, message: str) -> None:
    found = report(str(write(tmp_path / "a", RUN)), str(write(tmp_path / "b", b)))
    assert [(each.rule, each.severity, each.message) for each in found.findings] == [(rule, "error", message)]
    assert (found.headline.partition(": ")[0], found.exit_code) == (answer, 1)
    assert "kernel" not in found.findings[0].why


def test_what_one_has_more_in_the_same_step_is_no_difference(tmp_path: Path) -> None:
    found = report(str(write(tmp_path / "a", RUN)), str(write(tmp_path / "b", RUN[:2])))
    assert (found.match, found.exit_code, found.attachments["alone"]) == (True, 0, [1, 0])
    assert render(found).splitlines()[1:] == [
        "  2 pairs of entries of 1 step compared; 1 of A and 0 of B have no counterpart",
        "    all operations gave the same bits",
    ]


def test_json_has_it_all(tmp_path: Path) -> None:
    found = report(str(write(tmp_path / "a", RUN)), str(write(tmp_path / "b", OTHER))).to_json()
    assert json.loads(json.dumps(found)) == found
    assert (found["command"], found["match"]) == ("diverge compare", False)
    shown = found["attachments"]
    assert (shown["comparable"], shown["compared"], shown["alone"]) == (True, 3, [0, 0])
    assert shown["first"]["a"]["outputs"] == [{"spec": "float32[2]", "fingerprint": "0000000000000003"}]
    assert (shown["first"]["kind"], shown["first"]["inputs_known"]) == ("operation", 1)
    (difference,) = found["findings"]
    assert difference["where"] == {"file": "train.py", "line": 4, "function": "step", "operation": "MatMul"}


@pytest.mark.parametrize(
    ("one", "other"),
    [({}, {"mode": "graph"}), ({"mode": "graph"}, {"mode": "graph"}), ({}, {"fingerprint": "crc32"})],
)
def test_traces_of_other_kinds_are_not_compared(one: dict[str, Any], other: dict[str, Any], tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", RUN, **one), write(tmp_path / "b", RUN, **other)
    with pytest.raises(UsageError) as caught:
        report(str(a), str(b))
    message = "the traces cannot be compared: they were recorded in different ways"
    assert (caught.value.message, caught.value.hint) == (message, "record both with this envlock")


def test_a_trace_that_is_cut_off_gives_no_verdict(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", RUN), write(tmp_path / "b", RUN)
    b.write_bytes(b.read_bytes()[:-20])
    with pytest.raises(TraceError, match="is truncated"):
        report(str(a), str(b))


def test_what_a_trace_says_cannot_move_a_cursor(tmp_path: Path) -> None:
    evil = "\x1b[2J"
    a = [op(evil, 3, [1], [2], name=evil)._replace()]
    b = [op(evil, 3, [1], [3], name=evil)]
    found = report(
        str(write(tmp_path / "a", [*a])), str(write(tmp_path / "b", [*b], tensorflow=evil, conditions={evil: evil}))
    )
    assert all(line.isprintable() for line in render(found).split("\n"))
