"""Delta debugging over facts: the causes are found whatever they are, alone or together, in few runs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.evidence.bisect.bisection import (
    BisectEvidence,
    Cause,
    Causes,
    Differences,
    digest_run,
    find_smallest,
    judge_bisection,
    list_differences,
    read_thread_counts,
    read_variables,
    read_versions,
    split_evenly,
)
from envlock.evidence.results import Run, Value
from envlock.runtime.report import UNKNOWN, Finding

MANY = [Cause(f"packages.p{number:03}.version", "1", "2") for number in range(250)]


class Runs:
    """A program whose bits change where all causes of one of these sets act; it counts how often it is asked."""

    def __init__(self, *sets: Causes) -> None:
        self.sets = sets
        self.asked: dict[Causes, bool] = {}

    def __call__(self, causes: Causes) -> bool:
        self.asked[causes] = any(needed <= causes for needed in self.sets)
        return self.asked[causes]


def test_one_cause_of_250_is_found_in_about_twice_its_logarithm() -> None:
    runs = Runs(frozenset({MANY[137]}))
    assert find_smallest(MANY, runs) == (MANY[137],)
    assert len(runs.asked) <= 2 * math.ceil(math.log2(len(MANY)))


def test_two_causes_that_only_act_together_are_found() -> None:
    wanted = frozenset({MANY[3], MANY[200]})
    runs = Runs(wanted)
    assert frozenset(find_smallest(MANY, runs)) == wanted
    assert len(runs.asked) <= 80


def test_parts_are_whole_and_even() -> None:
    assert [len(part) for part in split_evenly(MANY[:10], 4)] == [2, 3, 2, 3]
    assert [cause for part in split_evenly(MANY, 7) for cause in part] == MANY


@given(st.lists(st.sets(st.integers(0, 15), min_size=1, max_size=4), min_size=1, max_size=3))
def test_what_is_found_is_enough_and_nothing_of_it_can_be_left_out(sets: list[set[int]]) -> None:
    causes = MANY[:16]
    runs = Runs(*(frozenset(causes[number] for number in chosen) for chosen in sets))
    found = frozenset(find_smallest(causes, runs))
    assert runs(found)
    assert not any(runs(found - {cause}) for cause in found)


CPU = {"intra_op_threads": 4, "inter_op_threads": 2, "model_name": "old", "flags": ["avx2"]}
A: dict[str, object] = {
    "packages": {"odd": None, "numpy": {"version": "2.2.6"}, "h5py": {"version": "3.13.0"}, "gone": {"version": "1.0"}},
    "environ": {
        "XLA_FLAGS": None,
        "TF_NUM_INTRAOP_THREADS": "4",
        "NCCL_CONF_FILE": "sha256:aa",
        "OMP_NUM_THREADS": "2",
        "A": "1",
        "X": "1",
    },
    "cpu": CPU,
    "gpu": {"driver": "1"},
    "system": {"libc": "2.36"},
    "numpy": {"version": "2.2.6"},
}
B: dict[str, object] = {
    "packages": {"numpy": {"version": "2.4.6"}, "h5py": {"version": "3.13.0"}, "new": {"version": "7"}, "odd": {}},
    "environ": {
        "XLA_FLAGS": "b",
        "TF_NUM_INTRAOP_THREADS": "8",
        "NCCL_CONF_FILE": "sha256:bb",
        "OMP_NUM_THREADS": "2",
        "B": "1",
        "X": "2",
    },
    "cpu": {**CPU, "intra_op_threads": 8, "model_name": "new", "flags": ["avx512f"]},
    "gpu": {"driver": "2", "devices": ["one"]},
    "numpy": {"version": "2.4.6"},
}


def test_differences_are_what_an_overlay_a_variable_or_nothing_can_put_here() -> None:
    """What an installed package and a hashed variable are cannot be put; a thread count is put by its variable."""
    found = list_differences(A, B, {"packages": {"gone": {"version": "1.0"}}})
    assert found.causes == (
        Cause("cpu.intra_op_threads", "4", "8"),
        Cause("packages.new.version", None, "7"),
        Cause("packages.numpy.version", "2.2.6", "2.4.6"),
        Cause("environ.A", "1", None),
        Cause("environ.B", None, "1"),
        Cause("environ.X", "1", "2"),
        Cause("environ.XLA_FLAGS", None, "b"),
    )
    assert found.out_of_reach == (
        "packages.gone.version",
        "environ.NCCL_CONF_FILE",
        "cpu.flags",
        "cpu.model_name",
        "gpu.devices",
        "gpu.driver",
        "system",
    )
    assert Cause("packages.gone.version", "1.0", None) in list_differences(A, B, {}).causes
    assert list_differences(A, A, {}) == Differences((), ())


def test_one_side_of_a_variable_that_is_hashed_is_enough() -> None:
    one: dict[str, object] = {"environ": {"NCCL_CONF_FILE": "sha256:aa"}}
    other: dict[str, object] = {"environ": {"NCCL_CONF_FILE": "nccl.conf"}}
    for a, b in ((one, other), (other, one)):
        assert list_differences(a, b, {}) == Differences((), ("environ.NCCL_CONF_FILE",))


def test_facts_of_another_shape_are_no_versions_and_no_variables() -> None:
    others: list[dict[str, object]] = [{}, {"packages": [], "environ": [], "cpu": []}]
    for facts in others:
        assert (read_versions(facts), read_variables(facts), read_thread_counts(facts)) == ({}, {}, {})
    assert read_versions(A) == {"numpy": "2.2.6", "h5py": "3.13.0", "gone": "1.0"}
    assert read_variables({"environ": {"XLA_FLAGS": None, "TF_X": 3}}) == {"XLA_FLAGS": None}
    assert str(Cause("environ.X", None, None)) == "environ.X: none -> none"
    assert read_thread_counts(A) == {"TF_NUM_INTRAOP_THREADS": "4", "TF_NUM_INTEROP_THREADS": "2"}


def test_a_digest_changes_with_each_part_of_a_result() -> None:
    own = Value("<f4", (2,), "aa")

    def digest(step: int = 0, name: str = "loss", value: Value = own) -> str:
        return digest_run(Run("0", {step: {name: value}}))

    others = [
        digest(step=1),
        digest(name="weights"),
        digest(value=Value("<f8", (2,), "aa")),
        digest(value=Value("<f4", (2, 1), "aa")),
        digest(value=Value("<f4", (2,), "bb")),
        digest_run(Run("0", {})),
    ]
    assert len({digest(), *others}) == 7
    names = {"loss": own, "weights": Value("<f4", (1,), "cc")}
    turned = dict(reversed(names.items()))
    assert digest_run(Run("0", {0: names})) == digest_run(Run("1", {0: turned})), "their order says nothing"


@pytest.mark.parametrize(("a", "b"), [(None, "b"), ("a", None), (None, None)])
def test_a_side_without_a_result_is_not_compared(a: str | None, b: str | None) -> None:
    report = judge_bisection(BisectEvidence(Differences((MANY[0],), ()), (), a, b, 2), None, "train.py:step")
    assert (report.exit_code, report.headline) == (4, "cannot say what moves the bits: 2 runs of train.py:step")
    (finding,) = report.findings
    assert (finding.rule, finding.severity, finding.where.fact) == ("run-failed", "unknown", "program")
    assert (finding.message, finding.why, finding.fix, finding.source) == (
        "a side has no result, so nothing was compared",
        "A program that ends early has no bits to compare.",
        "run `envlock repeat` on it in that environment",
        "docs/concepts/evidence.md",
    )


@pytest.mark.parametrize(
    ("number", "beyond", "smallest", "headline"),
    [
        (1, 0, 1, "1 of 1 difference turns the first bits into the second"),
        (3, 0, 2, "2 of 3 differences turn the first bits into the second"),
        (1, 0, 0, "1 difference moves no bit"),
        (2, 0, 0, "2 differences move no bit"),
        (1, 2, 0, "1 difference that can be put on this machine moves no bit, 2 cannot be put on it"),
        (2, 1, 0, "2 differences that can be put on this machine move no bit, 1 cannot be put on it"),
    ],
)
def test_the_answer_in_one_line(number: int, beyond: int, smallest: int, headline: str) -> None:
    differences = Differences(tuple(MANY[:number]), ("cpu.vendor", "gpu.driver")[:beyond])
    evidence = BisectEvidence(differences, tuple(MANY[:smallest]), "a", "b" if smallest else "a", 5)
    report = judge_bisection(evidence, None, "train.py:step")
    assert (report.headline, report.subject) == (f"{headline}: 5 runs of train.py:step", "train.py:step")
    together = ", together with the others that are named" if smallest > 1 else ""
    for cause, finding in zip(evidence.smallest, report.findings, strict=False):
        assert finding.message == f"{cause.path}: 1 -> 2: this moves the bits{together}"
        assert (finding.expected, finding.actual) == ("1", "2")
    assert [finding.severity for finding in report.findings] == ["error"] * smallest + ["unknown"] * beyond


def test_a_side_that_varies_is_the_first_finding() -> None:
    problem = Finding("run-varies", UNKNOWN, "program", message="it varies", why="", fix="", source="")
    evidence = BisectEvidence(Differences((MANY[0],), ("cpu.vendor",)), (), None, None, 3)
    report = judge_bisection(evidence, problem, "train.py:step")
    assert (report.exit_code, report.findings[0]) == (4, problem)
    assert [finding.severity for finding in report.findings] == ["unknown", "info"]
