"""Verdicts about an upgrade, from what was seen with the old and the new versions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from envlock.numerics.canary.canary_comparison import Comparison, Difference, Incomparable
from envlock.numerics.programs.hlo_text import Instruction, Module
from envlock.numerics.programs.parts import Observed, Part
from envlock.numerics.programs.program_changes import find_changes
from envlock.numerics.upgrade_verdict import (
    KERNELS,
    PROGRAM,
    UNCHANGED,
    UNPROVEN,
    VALUES,
    Change,
    Compared,
    Trial,
    UpgradeEvidence,
    compare_observed,
    compare_operations,
    find_unsteady,
    judge_upgrade,
    list_changes,
    list_switch_changes,
)
from envlock.numerics.upgrade_verdict import Difference as Found

KERAS, NUMPY = Change("keras", "3.8.0", "3.15.1"), Change("numpy", "2.1.3", "2.4.6")
COUNTED = Compared(2, 14, 300, 2)


def observed(**fields: Any) -> Observed:
    parts = {"train": Part("train", "graph", "a", 3, ("a of ", "%0 = MatMul  (@0:0)"))}
    return replace(Observed("2.21.0", {"jit": "off"}, parts), **fields)


def judge(together: Trial, *alone: Trial, **more: Any) -> Any:
    return judge_upgrade(UpgradeEvidence(together, alone, COUNTED, **more), "train.py:step")


def trial(*changes: Change, kinds: tuple[str, ...] = ()) -> Trial:
    return Trial(changes, tuple(Found(kind, f"about {kind}") for kind in kinds))


def test_where_all_is_equal_no_bit_changes() -> None:
    report = judge(trial(KERAS))
    assert (report.exit_code, report.findings, report.notes) == (0, [], [])
    assert report.headline == (
        "no bit changes in the first 2 steps: keras 3.8.0 -> 3.15.1 under train.py:step: "
        "2 parts of the program, 14 operations computed again and 300 traced values are equal"
    )
    assert judge(trial(KERAS, NUMPY)).notes == [
        "keras 3.8.0 -> 3.15.1: no bit changes",
        "numpy 2.1.3 -> 2.4.6: no bit changes",
    ]


@pytest.mark.parametrize(("kind", "code"), [(PROGRAM, 1), (KERNELS, 1), (VALUES, 1), (UNPROVEN, 4)])
def test_each_kind_has_its_exit_code(kind: str, code: int) -> None:
    report = judge(trial(KERAS, kinds=(kind,)))
    (finding,) = report.findings
    assert (report.exit_code, finding.rule, finding.where.fact) == (code, kind, "packages.keras.version")
    assert report.attachments["trials"][0]["verdict"] == kind


def test_what_differs_stands_before_what_is_missing() -> None:
    report = judge(trial(KERAS, kinds=(UNPROVEN, KERNELS)))
    assert [finding.rule for finding in report.findings] == [KERNELS, UNPROVEN]
    assert (report.exit_code, report.evidence.together.verdict) == (1, KERNELS)


def test_of_several_packages_the_one_is_named_that_does_it_alone() -> None:
    report = judge(trial(KERAS, NUMPY, kinds=(VALUES,)), trial(KERAS), trial(NUMPY, kinds=(VALUES,)))
    assert [finding.where.fact for finding in report.findings] == ["packages.numpy.version"]
    assert report.notes == ["keras 3.8.0 -> 3.15.1: no bit changes by itself"]


@pytest.mark.parametrize("kinds", [(), (UNPROVEN,)])
def test_packages_that_only_act_together_are_named_together(kinds: tuple[str, ...]) -> None:
    report = judge(trial(KERAS, NUMPY, kinds=(VALUES,)), trial(KERAS), trial(NUMPY, kinds=kinds))
    assert (report.exit_code, [finding.where.fact for finding in report.findings]) == (1, ["packages"])


def test_equal_packages_do_not_hide_that_the_whole_is_not_provable() -> None:
    report = judge(trial(KERAS, NUMPY, kinds=(UNPROVEN,)), trial(KERAS), trial(NUMPY))
    assert (report.exit_code, [finding.where.fact for finding in report.findings]) == (4, ["packages"])


def test_an_unmet_requirement_is_a_warning() -> None:
    report = judge(trial(KERAS), unmet=("tensorflow 2.18.1 requires keras<3.9",))
    assert (report.exit_code, [finding.severity for finding in report.findings]) == (0, ["warning"])


OTHER = Part("train", "graph", "b", 3, ("a of ", "%0 = Add  (@0:0)"))


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        (
            {"tensorflow": "2.22.0"},
            UNPROVEN,
            "the program of TensorFlow 2.21.0 cannot be compared with that of 2.22.0: "
            "each rewrites and compiles it in its own way",
        ),
        ({"switches": {"jit": "on"}}, PROGRAM, "jit: off -> on"),
        ({"switches": {}}, PROGRAM, "jit: off -> unset"),
        ({"parts": {}}, PROGRAM, "train runs with the locked version only"),
        ({"parts": {**observed().parts, "eager": OTHER}}, PROGRAM, "eager runs with the new version only"),
        ({"parts": {}, "failed": {"train": "no module"}}, UNPROVEN, "train was not seen: no module"),
        ({"is_cut": True}, UNPROVEN, "the time was up before the steps had run"),
        ({"parts": {"train": OTHER}}, PROGRAM, "train: gone 1 MatMul; new 1 Add"),
        ({"parts": {"train": replace(OTHER, digest="a", kind="xla")}}, PROGRAM, "train: gone 1 MatMul; new 1 Add"),
    ],
)
def test_programs_are_compared_within_one_tensorflow(changes: Any, kind: str, message: str) -> None:
    assert compare_observed(observed(), observed(**changes)) == [Found(kind, message)]


def test_equal_programs_have_no_difference() -> None:
    assert compare_observed(observed(), observed()) == []


def test_a_program_that_varies_by_itself_proves_nothing() -> None:
    other = observed(parts={"train": Part("train", "graph", "b", 3)})
    message = "train is another program in each run of the locked environment"
    assert find_unsteady(observed(), other) == [Found(UNPROVEN, message)]
    assert find_unsteady(observed(), observed(parts={})) == [Found(UNPROVEN, message)]
    assert find_unsteady(observed(), observed()) == []


def test_operations_are_named_with_how_far_they_are_apart() -> None:
    apart = [Difference("program", f"matmul_{number}", "a", "b", f"MatMul {number}: 2 ulp") for number in range(6)]
    missing = Incomparable("numerics.program.cast_1", "failed", "failed", "again")
    found = compare_operations(Comparison(equal=["x"], differences=apart, incomparable=[missing]))
    assert found[1] == Found(UNPROVEN, "cast_1 was not compared: failed")
    assert [each.kind for each in found] == [KERNELS, UNPROVEN]
    assert found[0].message == (
        "6 of 7 operations compute other bits: MatMul 0: 2 ulp; MatMul 1: 2 ulp; MatMul 2: 2 ulp; MatMul 3: 2 ulp; "
        "and 2 others"
    )


def test_as_many_operations_are_named_as_a_sentence_can_hold() -> None:
    apart = [Difference("program", f"matmul_{number}", "a", "b", f"MatMul {number}") for number in range(4)]
    (found,) = compare_operations(Comparison(equal=[], differences=apart, incomparable=[]))
    assert found.message == "4 of 4 operations compute other bits: MatMul 0; MatMul 1; MatMul 2; MatMul 3"


def test_without_one_kind_of_evidence_no_trial_proves_anything() -> None:
    evidence = UpgradeEvidence(trial(KERAS, NUMPY, kinds=(VALUES,)), (trial(KERAS), trial(NUMPY)), Compared(2, 0, 9, 2))
    report = judge_upgrade(evidence, "train.py:step")
    lacking = Found(UNPROVEN, "no operation could be computed again")
    assert [each.differences for each in report.evidence.alone] == [(lacking,), (lacking,)]
    assert report.evidence.together.differences == (Found(VALUES, "about values-differ"), lacking)
    assert report.subject == "train.py:step"


def test_instructions_are_named_though_all_numbers_have_moved() -> None:
    before = Part("train", "graph", "a", 2, ("%0 = MatMul  (@0:0)", "%1 = Add  (%0:0)"))
    after = Part("train", "graph", "b", 3, ("%0 = Cast  (@0:0)", "%1 = MatMul  (@0:0)", "%2 = Mul  (%1:0)"))
    assert str(find_changes(before, after)) == "train: gone 1 Add; new 1 Cast, 1 Mul"
    turned = Part("train", "graph", "b", 2, ("%0 = MatMul  (@1:0)", "%1 = Add  (%0:0)"))
    assert str(find_changes(before, turned)) == "train: the same instructions, connected otherwise or in another order"


@pytest.mark.parametrize(
    ("file", "origin"),
    [
        ("train.py", "train.py:7"),
        ("/x/site-packages/tensorflow/ops.py", "gradient_tape/MatMul"),
        (None, "gradient_tape/MatMul"),
    ],
)
def test_an_instruction_of_xla_has_its_line_or_its_operation(file: str | None, origin: str) -> None:
    line = "%0 = f32[2] dot(%1, %2)"
    module = Module((line,), (Instruction(line, "gradient_tape/MatMul", file, 7),))
    before = Part("train", "xla", "a", 1, ("%0 = f32[2] add(%1, %2)",))
    after = Part("train", "xla", "b", 1, (line,), (module,))
    assert str(find_changes(before, after)) == f"train: gone 1 add; new 1 dot, from {origin}"


def test_only_packages_with_another_version_are_changes() -> None:
    found = list_changes({"keras": "3.15.1", "six": "1", "new": "2"}, {"keras": "3.8.0", "six": "1", "numpy": "2"})
    assert found == (Change("keras", "3.8.0", "3.15.1"), Change("new", None, "2"))


def test_the_tables_say_which_switches_and_seeds_change() -> None:
    found = list_switch_changes("2.7.4", "2.9.3")
    assert any("enable_op_determinism" in sentence for sentence in found)
    assert list_switch_changes("2.21.0", "2.21.0") == ()


def test_verdicts_are_ordered() -> None:
    assert trial(KERAS).verdict == UNCHANGED
    assert trial(KERAS, kinds=(UNPROVEN, VALUES, KERNELS, PROGRAM)).verdict == PROGRAM
