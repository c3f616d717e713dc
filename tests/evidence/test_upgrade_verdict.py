"""Verdicts about an upgrade, from what was seen with the old and the new versions."""

from __future__ import annotations

from typing import Any

import pytest

from envlock.evidence.canary.canary_comparison import Comparison, Difference, Incomparable
from envlock.evidence.results import Run, Value
from envlock.evidence.upgrade.upgrade_verdict import (
    KERNELS,
    UNCHANGED,
    UNPROVEN,
    VALUES,
    Change,
    Compared,
    Trial,
    UpgradeEvidence,
    compare_operations,
    compare_values,
    judge_upgrade,
    list_changes,
    list_switch_changes,
)
from envlock.evidence.upgrade.upgrade_verdict import Difference as Found

KERAS, NUMPY = Change("keras", "3.8.0", "3.15.1"), Change("numpy", "2.1.3", "2.4.6")
COUNTED = Compared(6, 2, 43)


def judge(together: Trial, *alone: Trial, **more: Any) -> Any:
    return judge_upgrade(UpgradeEvidence(together, alone, COUNTED, **more), "train.py:step")


def trial(*changes: Change, kinds: tuple[str, ...] = ()) -> Trial:
    return Trial(changes, tuple(Found(kind, f"about {kind}") for kind in kinds))


def test_where_all_is_equal_no_bit_changes() -> None:
    report = judge(trial(KERAS))
    assert (report.exit_code, report.findings, report.notes) == (0, [], [])
    assert report.headline == (
        "no bit changes: keras 3.8.0 -> 3.15.1 under train.py:step: "
        "6 values of 2 steps and 43 operations of the canary are equal"
    )
    assert judge(trial(KERAS, NUMPY)).notes == [
        "keras 3.8.0 -> 3.15.1: no bit changes",
        "numpy 2.1.3 -> 2.4.6: no bit changes",
    ]


@pytest.mark.parametrize(("kind", "code"), [(KERNELS, 1), (VALUES, 1), (UNPROVEN, 4)])
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


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ({"loss": "a"}, {"loss": "b"}, "first at step 0, in loss"),
        ({"loss": "a", "w/0": "a", "w/1": "a"}, {"loss": "a", "w/0": "a", "w/1": "b"}, "first at step 0, in w (w/1)"),
        ({"loss": "a"}, {}, "first at step 0, in loss"),
    ],
)
def test_the_first_value_that_differs_is_named(before: Any, after: Any, message: str) -> None:
    runs = [
        Run("0", {0: {name: Value("float32", (), bits) for name, bits in each.items()}}) for each in (before, after)
    ]
    assert compare_values(*runs) == [Found(VALUES, message)]
    assert compare_values(runs[0], runs[0]) == []


def test_operations_are_named_with_how_far_they_are_apart() -> None:
    apart = [Difference("program", f"matmul_{number}", "a", "b", "2 ulp") for number in range(6)]
    missing = Incomparable("numerics.program.cast_1", "failed", "failed", "again")
    found = compare_operations(Comparison(equal=["x"], differences=apart, incomparable=[missing]))
    assert found[1] == Found(UNPROVEN, "cast_1 was not compared: failed")
    assert [each.kind for each in found] == [KERNELS, UNPROVEN]
    assert found[0].message == (
        "6 of 7 operations of the canary compute other bits: matmul_0: 2 ulp; matmul_1: 2 ulp; matmul_2: 2 ulp; "
        "matmul_3: 2 ulp; and 2 others"
    )


def test_as_many_operations_are_named_as_a_sentence_can_hold() -> None:
    apart = [Difference("program", f"matmul_{number}", "a", "b", "2 ulp") for number in range(4)]
    (found,) = compare_operations(Comparison(equal=[], differences=apart, incomparable=[]))
    shown = "; ".join(f"matmul_{number}: 2 ulp" for number in range(4))
    assert found.message == f"4 of 4 operations of the canary compute other bits: {shown}"


def test_without_one_kind_of_evidence_no_trial_proves_anything() -> None:
    evidence = UpgradeEvidence(trial(KERAS, NUMPY, kinds=(VALUES,)), (trial(KERAS), trial(NUMPY)), Compared(6, 2, 0))
    report = judge_upgrade(evidence, "train.py:step")
    lacking = Found(UNPROVEN, "no operation of the canary could be compared")
    assert [each.differences for each in report.evidence.alone] == [(lacking,), (lacking,)]
    assert report.evidence.together.differences == (Found(VALUES, "about values-differ"), lacking)
    assert report.subject == "train.py:step"


def test_only_packages_with_another_version_are_changes() -> None:
    found = list_changes({"keras": "3.15.1", "six": "1", "new": "2"}, {"keras": "3.8.0", "six": "1", "numpy": "2"})
    assert found == (Change("keras", "3.8.0", "3.15.1"), Change("new", None, "2"))


def test_the_tables_say_which_switches_and_seeds_change() -> None:
    found = list_switch_changes("2.7.4", "2.9.3")
    assert any("enable_op_determinism" in sentence for sentence in found)
    assert list_switch_changes("2.21.0", "2.21.0") == ()


def test_verdicts_are_ordered() -> None:
    assert trial(KERAS).verdict == UNCHANGED
    assert trial(KERAS, kinds=(UNPROVEN, KERNELS, VALUES)).verdict == VALUES
