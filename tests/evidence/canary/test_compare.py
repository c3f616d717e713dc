"""Two canaries against each other, and the causes that their differences speak for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.data.canary_tables import Cause, load_canary_table
from envlock.evidence.canary.canary_comparison import (
    CanaryEvidence,
    Comparison,
    Incomparable,
    Suspect,
    _collect_possible_signs,
    _compare_conditions,
    _describe_suspect,
    _find_precision,
    compare,
    describe_causes,
    find_unexplained,
    list_findings,
    list_notes,
    rank_causes,
)
from envlock.evidence.canary.canary_run import Canary
from envlock.lock.numerics import Group, Numerics, Operation
from envlock.runtime.policies import Policy
from envlock.runtime.report import INFO, UNKNOWN, Report
from tests.evidence.canaries import COUNT, conditions, group_of, numerics, section, with_program

AGAIN = "Compute the canary again on the locked machine: `envlock capture --canary`."
THREADS = ("conv_filter_gradient", "bias_gradient", "reduce", "batch_norm")
ISA = ("matmul", "conv_filter_gradient", "depthwise", "train", "train_xla")
WIDER = (*ISA, "matmul_big", "conv_forward", "conv_input_gradient", "batch_norm")
OFF = ("conv_input_gradient", "conv_filter_gradient", "depthwise", "batch_norm", "matmul_bf16")

MEASURED: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [
    ("threads", THREADS, {}),
    ("threads", (*THREADS, "depthwise"), {}),
    ("onednn-off", OFF, {}),
    ("isa-avx2", ISA, {}),
    ("isa-avx2", ISA, {"died": "bf16"}),
    ("isa-sse41", WIDER, {"died": "bf16"}),
    ("reduced-precision", ("conv_forward", "conv_input_gradient", "depthwise"), {"value": 1.0078125}),
    ("determinism", ("train", "train_xla"), {}),
    ("xla", ("train_xla",), {}),
    ("tensorflow", ("transcendental", "train_xla"), {"tensorflow": "2.20.0"}),
    ("tensorflow", ("np_sum", "transcendental", "train_xla"), {"tensorflow": "2.18.1", "numpy": "2.0.2"}),
    (
        "tensorflow",
        ("np_sum", "np_exp64", "cross_entropy", "transcendental", "train_xla"),
        {"tensorflow": "2.16.2", "numpy": "1.26.4"},
    ),
    ("numpy", ("np_dot",), {}),
    ("numpy", ("np_sum", "np_exp64"), {"numpy": "1.26.4"}),
    ("numpy", ("np_sum", "np_exp64", "np_log64", "np_pow64"), {"numpy": "1.26.4"}),
    ("numpy-loops", ("np_exp", "np_exp64", "np_log64", "np_pow64", "np_tanh64", "np_tanh32"), {}),
    (
        "libm-kernels",
        (
            *("np_sin64", "np_cos64", "math_sin", "math_cos", "math_exp", "math_log", "math_pow", "math_tanh"),
            "math_others",
        ),
        {},
    ),
    ("libm", ("libm_tanhf",), {}),
]
"""What was measured (benchmarks/canary.py): the cause, the operations that differed, and what else did."""


def live(other: tuple[str, ...], died: str | None = None, value: float = 1.0 + 2.0**-23, **fields: Any) -> Numerics:
    found = section(other, value=value, **fields)
    if died is not None:
        found["groups"][died] = {**found["groups"][died], "operations": {}, "ended": "signal 11 (SIGSEGV)"}
    return Numerics.model_validate(found)


@pytest.mark.parametrize(("cause", "other", "fields"), MEASURED, ids=lambda value: str(value)[:40])
def test_what_was_measured_is_named(cause: str, other: tuple[str, ...], fields: dict[str, Any]) -> None:
    found = compare(numerics(), live(other, **fields))
    assert {each.operation for each in found.differences} - {None} == set(other)
    assert found.suspects[0].cause.id == cause
    assert found.suspects[0].share > 0.5


@pytest.mark.parametrize(("cause", "other", "fields"), MEASURED, ids=lambda value: str(value)[:40])
def test_the_other_way_round_too(cause: str, other: tuple[str, ...], fields: dict[str, Any]) -> None:
    assert compare(live(other, **fields), numerics()).suspects[0].cause.id == cause


def test_every_cause_of_the_table_was_measured() -> None:
    assert {cause for cause, _, _ in MEASURED} == {row.id for row in load_canary_table().cause}


def test_two_causes_at_once_are_not_passed_off_as_one() -> None:
    found = compare(numerics(), live((*ISA, "np_dot"), died="bf16"))
    assert (found.suspects[0].cause.id, found.unexplained) == ("isa-avx2", ["np_dot"])
    assert describe_causes(found.suspects, found.unexplained) == (
        "Most likely cause: oneDNN takes AVX2 on one side, AVX-512 on the other (more than 99 %); "
        "no other cause is close. It does not explain np_dot."
    )


def test_equal_canaries() -> None:
    found = compare(numerics(), numerics())
    assert (found.match, len(found.equal), found.differences, found.incomparable, found.suspects) == (
        True,
        COUNT,
        [],
        [],
        [],
    )
    assert list_notes(found) == [f"numerics: all {COUNT} results have the locked bits"]


def test_another_version_with_the_same_bits_says_so() -> None:
    found = compare(numerics(), live((), tensorflow="2.21.1", numpy="2.4.7"))
    assert (found.match, found.suspects) == (True, [])
    assert list_notes(found) == [
        f"numerics: all {COUNT} results have the locked bits, although TensorFlow is 2.21.1, locked 2.21.0 "
        "and NumPy is 2.4.7, locked 2.4.6"
    ]


def test_unequal_conditions_do_not_compare() -> None:
    other = section(THREADS)
    for name, group in other["groups"].items():
        if name not in ("numpy", "libm"):
            group["conditions"] = conditions(name, intra_op_threads=8, inter_op_threads=8)
    found = compare(numerics(), Numerics.model_validate(other))
    assert {each.split(".")[1] for each in found.equal} == {"libm", "numpy"}
    assert found.differences == []
    reason, fix = "not comparable: 2 vs 8 threads", AGAIN
    groups = ["bf16", "cpu-eigen", "cpu-graph", "cpu-onednn", "xla"]
    untold = [Incomparable(f"numerics.{group}", reason, "other-conditions", fix) for group in groups]
    assert sorted(found.incomparable, key=lambda each: each.path) == untold


def test_other_determinism_and_another_device_do_not_compare() -> None:
    one = {"battery": 1, "tensorflow": "2.21.0", "numpy": "2.4.6"}
    left = {"gpu-0": {"conditions": conditions("gpu-0", device="NVIDIA A100"), "operations": {}}}
    right = {"gpu-0": {"conditions": conditions("gpu-0", device="NVIDIA T4", determinism="off"), "operations": {}}}
    found = compare(Numerics.model_validate({**one, "groups": left}), Numerics.model_validate({**one, "groups": right}))
    reason = "not comparable: NVIDIA A100 vs NVIDIA T4 device, on vs off op determinism"
    assert found.incomparable == [Incomparable("numerics.gpu-0", reason, "other-conditions", AGAIN)]
    assert not found.match
    gone = compare(Numerics.model_validate({**one, "groups": left}), Numerics.model_validate({**one, "groups": {}}))
    assert [(each.path, each.reason) for each in gone.incomparable] == [
        ("numerics.gpu-0", "not comparable: no NVIDIA A100 on this machine")
    ]


def test_a_newer_battery_than_this_one_does_not_compare() -> None:
    found = compare(numerics(battery=3), live(ISA))
    assert [(each.path, each.code) for each in found.incomparable] == [("numerics", "another-battery")]
    assert (found.equal, found.differences) == ([], [])


NEWER = tuple(row.name for row in load_canary_table().operation if row.since > 1)


def as_of_battery_1(died: str | None = None) -> Numerics:
    """Return what an older envlock wrote: it had no group of the C library."""
    found = section(without=NEWER, battery=1)
    del found["groups"]["libm"]
    if died is not None:
        found["groups"][died] = {**found["groups"][died], "operations": {}, "ended": "signal 11 (SIGSEGV)"}
    return Numerics.model_validate(found)


def test_a_lockfile_of_an_older_battery_is_compared_as_far_as_it_goes_and_what_it_lacks_is_named() -> None:
    found = compare(as_of_battery_1(), live(ISA))
    assert {each.operation for each in found.differences} == set(ISA)
    assert len(found.equal) == COUNT - len(NEWER) - len(ISA)
    (lacking,) = found.incomparable
    assert (lacking.path, lacking.code, lacking.fix) == ("numerics", "older-battery", AGAIN)
    assert lacking.reason == f"the lockfile's battery 1 has no {', '.join(NEWER)}"
    assert not compare(as_of_battery_1(), numerics()).match


def test_what_an_older_lockfile_has_under_a_newer_name_is_not_compared() -> None:
    """No lockfile that envlock wrote has it: the operation was another one then, if there was any."""
    locked = Numerics.model_validate(section(battery=1))
    found = compare(locked, live(("math_sin",)))
    assert (found.differences, [each.code for each in found.incomparable]) == ([], ["older-battery"])


def test_a_group_of_an_older_lockfile_that_ended_its_process_is_still_compared() -> None:
    found = compare(as_of_battery_1("bf16"), numerics())
    assert [each.path for each in found.differences] == ["numerics.bf16"]


def test_unstable_operations_are_never_compared() -> None:
    unstable = {"dtype": "<f4", "shape": [1], "unstable": True}
    noisy = section()
    noisy["groups"]["cpu-eigen"]["operations"]["reduce"] = unstable
    model = Numerics.model_validate(noisy)
    for right in (numerics(), numerics("reduce"), model):
        found = compare(model, right)
        assert (found.match, found.unstable) == (True, ["numerics.cpu-eigen.reduce"])
        assert list_notes(found)[1] == "numerics: unstable, so not compared: numerics.cpu-eigen.reduce"
    found = compare(numerics(), model)
    assert [(each.path, each.code) for each in found.incomparable] == [("numerics.cpu-eigen.reduce", "unstable")]
    assert (found.match, found.differences) == (False, [])


def test_an_operation_that_fails_on_one_side_cannot_be_told() -> None:
    broken = section()
    broken["groups"]["cpu-eigen"]["operations"]["reduce"] = {"failed": "NotFoundError"}
    model = Numerics.model_validate(broken)
    assert [each.reason for each in compare(numerics(), model).incomparable] == ["NotFoundError"]
    assert len(compare(model, numerics()).incomparable) == 1
    assert compare(model, model).incomparable == []


def test_an_operation_that_is_not_there_is_no_match() -> None:
    found = compare(numerics(), live((), without=("reduce",)))
    assert [(each.path, each.code) for each in found.incomparable] == [("numerics.cpu-eigen.reduce", "not-computed")]


def test_bits_that_the_sample_does_not_show_differ_all_the_same() -> None:
    other = section()
    other["groups"]["xla"]["operations"]["train_xla"]["sha256"] = "1" * 64
    (found,) = compare(numerics(), Numerics.model_validate(other)).differences
    assert found.distance is not None
    assert (found.path, found.distance.kind) == ("numerics.xla.train_xla", "unseen")


def test_where_nothing_could_be_compared_nothing_matches() -> None:
    dead = section()
    dead["groups"] = {"bf16": {"conditions": conditions("bf16"), "operations": {}, "ended": "signal 4 (SIGILL)"}}
    found = compare(Numerics.model_validate(dead), Numerics.model_validate(dead))
    assert (found.match, found.differences, list_notes(found)) == (False, [], [])
    (finding,) = list_findings(found, Policy())
    assert (finding.severity, finding.message) == (
        "unknown",
        "numerics: the lockfile's canary has no result that can be compared, so nothing was compared",
    )


@pytest.mark.parametrize("left", [{}, {"operations": {}}])
def test_a_canary_from_which_parts_were_taken_proves_nothing(left: dict[str, Any]) -> None:
    """Three lockfiles were believed: without groups, with groups without operations, and with all unstable."""
    whole, less = section(), section()
    less["groups"] = {name: {**group, **left} for name, group in less["groups"].items() if left}
    for locked in (less, unstable(section())):
        found = compare(Numerics.model_validate(locked), Numerics.model_validate(whole))
        assert (found.match, found.equal) == (False, [])
        assert {each.severity for each in list_findings(found, Policy())} == {"unknown"}


def unstable(canary: dict[str, Any]) -> dict[str, Any]:
    for group in canary["groups"].values():
        group["operations"] = {name: {"dtype": "<f4", "shape": [1], "unstable": True} for name in group["operations"]}
    return canary


def test_a_group_that_dies_on_both_sides_alike_is_equal() -> None:
    assert compare(live((), died="bf16"), live((), died="bf16")).match
    found = compare(live((), died="bf16"), numerics())
    assert [each.what for each in found.differences] == [
        "it computes; locked as a crash of TensorFlow (signal 11 (SIGSEGV))"
    ]


def test_another_shape_is_a_difference_without_a_distance() -> None:
    other = section()
    other["groups"]["cpu-eigen"]["operations"]["reduce"] = {
        "dtype": "<f4",
        "shape": [2],
        "sha256": "1" * 64,
        "sample": "0x1p+0 0x1p+0",
    }
    (found,) = compare(numerics(), Numerics.model_validate(other)).differences
    assert (found.what, found.distance) == ("another result: locked <f4[1], live <f4[2]", None)


NAMES = [row.name for row in load_canary_table().operation]


@given(st.sets(st.sampled_from(NAMES), min_size=1))
def test_whatever_differs_the_shares_are_a_ranking(other: set[str]) -> None:
    found = compare(numerics(), live(tuple(other)))
    assert {each.path for each in found.differences} == {f"numerics.{group_of(name)}.{name}" for name in other}
    shares = [each.share for each in found.suspects]
    assert shares == sorted(shares, reverse=True)
    assert 0.9 < sum(shares) <= 1.0 + 1e-9
    assert describe_causes(found.suspects).endswith(".")


def test_the_shares_are_those_of_bayes() -> None:
    row = {"why": "It is.", "fix": "Do it.", "sources": ["x"]}
    one = Cause.model_validate({"id": "one", "title": "the one", "always": ["a"], **row})
    two = Cause.model_validate({"id": "two", "title": "the other", "always": ["b"], "often": ["a"], **row})
    first, second = rank_causes({"a"}, {"a", "b"}, [one, two])
    weights = 0.97 * (1 - 0.015), 0.5 * (1 - 0.97)
    assert (first.cause.id, second.cause.id) == ("one", "two")
    assert first.share == pytest.approx(weights[0] / sum(weights))
    assert describe_causes([first, second]) == "Most likely cause: the one (98 %); next: the other (2 %)."
    assert rank_causes(set(), {"a"}, [one, two]) == []
    assert describe_causes([]) == "No known cause explains it."


def test_differences_of_a_gpu_are_not_explained_by_what_was_measured_on_processors() -> None:
    heads = {"battery": 1, "tensorflow": "2.21.0", "numpy": "2.4.6"}
    a, b = section(), section(("matmul",))
    gpu = [
        {
            "gpu-0": {
                "conditions": conditions("gpu-0", device="NVIDIA A100"),
                "operations": each["groups"]["cpu-onednn"]["operations"],
            }
        }
        for each in (a, b)
    ]
    found = compare(*(Numerics.model_validate({**heads, "groups": groups}) for groups in gpu))
    assert ([each.path for each in found.differences], found.suspects) == (["numerics.gpu-0.matmul"], [])
    (finding,) = list_findings(found, Policy())
    why = "This is an effect, not a cause: the same operation on the same numbers gives different bits here."
    assert finding.why == why


def test_a_program_with_other_bits_changes_no_share_of_a_cause() -> None:
    alone = compare(numerics(), live(("train_xla",), value=1.5))
    sides = (with_program(section()), with_program(section(("train_xla",), value=1.5), 1.5))
    both = compare(*(Numerics.model_validate(each) for each in sides))
    assert {each.group for each in both.differences} == {"xla", "program"}
    assert both.suspects == alone.suspects != []


def report(found: Comparison, policy: Policy) -> Report:
    return Report(list_findings(found, policy), command="canary", policy=policy.name, notes=list_notes(found))


def test_the_report() -> None:
    found = compare(numerics(), live(("train_xla",), value=1.5))
    assert report(found, Policy()).to_text() == (
        "does not match under policy strict: 1 canary result differs\n"
        "  x numerics.xla.train_xla: 1 of 1 values differ, median 4,194,304 ULP, 4,194,304 eps normwise: "
        "typical of lower precision or another algorithm\n"
        "      why: Most likely cause: XLA compiles for other instructions or with other flags (97 %); "
        "next: op determinism on one side only (3 %).\n"
        "      fix: Set or unset XLA_FLAGS and TF_XLA_FLAGS as locked.\n"
        f"numerics: {COUNT - 1} results have the locked bits"
    )


def test_the_policy_decides_what_is_an_error() -> None:
    found = compare(numerics(), live(("train_xla", "np_sum")))
    assert report(found, Policy()).exit_code == 1
    assert report(found, Policy("functional")).exit_code == 0
    assert report(found, Policy("strict", {"numerics.xla.**": "ignore"})).exit_code == 1
    assert report(found, Policy("strict", {"numerics.*.train_xla": "ignore", "numerics.numpy.**": "ignore"})).match
    untold = compare(numerics(battery=3), live(()))
    assert report(untold, Policy()).exit_code == 4
    assert report(untold, Policy()).to_text().splitlines()[0] == (
        "cannot decide under policy strict: 1 part of the canary could not be compared"
    )


def test_an_operation_of_a_program_with_other_bits_is_named_with_its_shapes() -> None:
    locked, live = (Numerics.model_validate(with_program(section(), value)) for value in (1.0, 1.5))
    found = compare(locked, live)
    assert [each.message for each in list_findings(found, Policy())] == [
        "numerics.program.mat_mul_1: MatMul of float32[2,2], float32[2,2]: 1 of 1 values differ, median 4,194,304 ULP, "
        "4,194,304 eps normwise: typical of lower precision or another algorithm"
    ]
    assert found.suspects == []  # the table of causes knows the battery only
    assert list_notes(found)[1:] == [
        "numerics: covers 1 of 2 distinct operations of train.py:step; evidence over these operations and shapes, "
        "one by one, not a proof for the program"
    ]


def test_another_operation_of_a_program_under_the_same_name_is_not_compared() -> None:
    locked, live = (with_program(section()) for _ in range(2))
    live["program"]["operations"]["mat_mul_1"]["attributes"]["transpose_b"] = True
    found = compare(Numerics.model_validate(locked), Numerics.model_validate(live))
    assert [each.path for each in found.incomparable] == ["numerics.program.mat_mul_1"]


def test_a_program_that_one_side_has_not_computed_is_not_equal() -> None:
    found = compare(Numerics.model_validate(with_program(section())), Numerics.model_validate(section()))
    assert [each.reason for each in found.incomparable] == [
        "the operations of a program were computed on one side only"
    ]


def test_a_program_under_other_conditions_is_not_compared() -> None:
    locked, live = (with_program(section()) for _ in range(2))
    live["program"]["conditions"] = {**live["program"]["conditions"], "intra_op_threads": 64}
    found = compare(Numerics.model_validate(locked), Numerics.model_validate(live))
    assert [each.path for each in found.incomparable] == ["numerics.program"]


def test_a_group_that_no_longer_crashes_differs() -> None:
    died = live((), died="bf16")
    said = [each.what for each in compare(died, numerics()).differences]
    assert said == ["it computes; locked as a crash of TensorFlow (signal 11 (SIGSEGV))"]
    other = live((), died="bf16").model_dump()
    other["groups"]["bf16"]["ended"] = "signal 4 (SIGILL)"
    said = [each.what for each in compare(died, Numerics.model_validate(other)).differences]
    assert said == ["TensorFlow crashes (signal 4 (SIGILL)); locked as signal 11 (SIGSEGV)"]
    assert find_unexplained([], {"matmul"}) == []


def test_a_part_that_the_policy_ignores_may_be_incomparable() -> None:
    found = compare(numerics(), numerics(without=("reduce",)))
    assert [each.severity for each in list_findings(found, Policy("strict"))] == [UNKNOWN]
    assert [each.severity for each in list_findings(found, Policy("strict", {"numerics.**": "ignore"}))] == [INFO]


def test_a_group_that_died_on_one_side_has_its_path_and_no_distance() -> None:
    here = numerics()
    ended = here.groups["xla"].model_copy(update={"operations": {}, "ended": "signal 11 (SIGSEGV)"})
    died = here.model_copy(update={"groups": {**here.groups, "xla": ended}})
    (found,) = list_findings(compare(numerics(), died), Policy("strict"))
    assert found.where.fact == "numerics.xla"
    assert sorted(found.actual) == ["result", "what"]


def test_an_operation_that_the_table_does_not_know_has_the_precision_of_its_type() -> None:
    kinds: dict[str, Any] = {"float32": "<f4", "float64": "<f8"}
    for precision, dtype in kinds.items():
        operation = Operation(dtype=dtype, shape=[1], unstable=True)
        assert _find_precision("cpu-eigen", "no such operation", operation) == precision
        assert _find_precision("program", "matmul", operation) == precision


def test_what_is_attached_is_the_canary_and_the_causes_if_there_are_any() -> None:
    canary = Canary(numerics(), 0.5, None)
    found = compare(numerics(), numerics("np_sum"))
    document = CanaryEvidence(canary, tuple(found.suspects)).to_json()
    assert (CanaryEvidence().to_json(), list(CanaryEvidence(canary).to_json())) == (
        {},
        ["numerics", "seconds", "cpu_seconds"],
    )
    assert document["causes"] == [each.to_json() for each in found.suspects] != []


def test_another_device_is_compared_there() -> None:
    here, there = (
        Group.model_validate({"conditions": conditions("cpu-eigen", device=name), "operations": {}})
        for name in ("cpu", "gpu")
    )
    assert _compare_conditions("numerics.cpu-eigen", there, here).fix == "Compare on gpu."


def test_signs_are_of_processors_and_of_the_battery() -> None:
    found = section()
    found["groups"]["gpu-eager"] = {"conditions": conditions("gpu-eager"), "operations": {}}
    compared = Comparison(equal=["numerics.cpu-eigen.matmul", "numerics.gpu-eager.matmul_big"])
    signs = _collect_possible_signs(compared, Numerics.model_validate(found))
    assert {"matmul", "ended:cpu-eigen"} <= signs
    assert not {"matmul_big", "ended:gpu-eager"} & signs


@pytest.mark.parametrize(("share", "shown"), [(0.995, "more than 99 %"), (0.5, "50 %"), (0.001, "less than 1 %")])
def test_a_share_is_rounded_honestly(share: float, shown: str) -> None:
    cause = load_canary_table().cause[0]
    assert _describe_suspect(Suspect(cause, share)) == f"{cause.title} ({shown})"
