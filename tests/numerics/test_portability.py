"""Caps for a team's machines: which is chosen, what it sets, and what proves it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from envlock.data.portable_table import load_portable_table
from envlock.lock.numerics import Numerics
from envlock.numerics.portability import (
    Member,
    choose_cap,
    find_missing,
    judge_portability,
    make_variables,
)
from envlock.reports import FORMATS, render
from envlock.runtime.report import Report
from tests.numerics.canaries import COUNT, numerics

CAPS = load_portable_table().cap
OLD = frozenset({"avx", "avx2", "fma", "f16c"})
WIDE = OLD | {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}
NEW = WIDE | {"avx512_bf16"}


def member(name: str, flags: frozenset[str] = OLD, found: Numerics | None = None, **changes: Any) -> Member:
    """Return a machine of a team."""
    threads = {"intra_op_threads": 8, "inter_op_threads": 8}
    versions = {"tensorflow": "2.21.0", "numpy": "2.4.6"}
    return replace(Member(name, f"processor of {name}", flags, threads, {}, versions, found), **changes)


def capped(name: str, found: Numerics | None, flags: frozenset[str] = OLD) -> Member:
    """Return a machine that was locked under the cap for AVX2."""
    return member(name, flags, found, variables=dict(CAPS[-1].variables))


def judge(*members: Member) -> Report[Any]:
    """Return the verdict on a team, which every format can show."""
    report = judge_portability(members, choose_cap(members, CAPS))
    for name in FORMATS:
        render(report, name)
    return report


def rules(report: Report[Any]) -> list[str]:
    """Return the rules of the findings."""
    return [finding.rule for finding in report.findings]


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ((OLD, NEW), "AVX2"),
        ((WIDE, NEW), "AVX512_CORE"),
        ((NEW, NEW), "AVX512_CORE"),
        ((OLD, frozenset({"avx"})), None),
    ],
)
def test_the_widest_cap_that_all_machines_have(flags: tuple[frozenset[str], ...], name: str | None) -> None:
    members = [member(str(number), each) for number, each in enumerate(flags)]
    cap = choose_cap(members, CAPS)
    assert (cap.name if cap else None) == name


def test_a_machine_that_is_named_twice_is_no_second_machine() -> None:
    one = capped("a.lock", numerics())
    report = judge(one, one, replace(one, name="copy.lock"))
    assert (report.exit_code, report.evidence.proven, report.evidence.compared) == (4, (), 0)
    assert [finding.message for finding in report.findings] == [
        "a.lock: the same machine as in a.lock, which counts once",
        "copy.lock: the same machine as in a.lock, which counts once",
        "a.lock (processor of a.lock): it is the only machine, so nothing was compared",
    ]


def test_a_cap_sets_the_smallest_number_of_threads_and_keeps_other_flags() -> None:
    one = member("a", variables={"XLA_FLAGS": "--xla_a=1 --xla_cpu_max_isa=AVX512"})
    assert make_variables(CAPS[-1], [one])["XLA_FLAGS"] == "--xla_a=1 --xla_cpu_max_isa=AVX2"
    assert make_variables(CAPS[-1], [member("b")])["XLA_FLAGS"] == "--xla_cpu_max_isa=AVX2"
    odd = member("c", variables={"XLA_FLAGS": "--xla_b=c=d --xla_cpu_max_isa=x=y"})
    assert make_variables(CAPS[-1], [odd])["XLA_FLAGS"] == "--xla_b=c=d --xla_cpu_max_isa=AVX2"
    assert "TF_NUM_INTRAOP_THREADS" not in make_variables(CAPS[-1], [one, member("b")])
    few = member("b", threads={"intra_op_threads": 4, "inter_op_threads": 8})
    variables = make_variables(CAPS[-1], [one, few])
    assert variables["TF_NUM_INTRAOP_THREADS"] == "4"
    assert "TF_NUM_INTEROP_THREADS" not in variables
    asked = member("c", variables={"TF_NUM_INTEROP_THREADS": "8"})
    assert make_variables(CAPS[-1], [asked])["TF_NUM_INTEROP_THREADS"] == "8"
    unknown = member("d", threads={}, variables={"TF_NUM_INTRAOP_THREADS": "4"})
    assert "TF_NUM_INTRAOP_THREADS" not in make_variables(CAPS[-1], [unknown])


def test_equal_canaries_under_the_cap_are_the_proof() -> None:
    report = judge(capped("a", numerics()), capped("b", numerics(), NEW))
    assert (report.exit_code, report.findings) == (0, [])
    assert report.headline == f"2 machines compute the same bits under the cap AVX2: {COUNT} results each"
    assert report.attachments["proven"] == ["a", "b"]
    assert "export ONEDNN_MAX_CPU_ISA='AVX2'" in report.notes


def test_other_bits_under_the_cap_are_a_no() -> None:
    report = judge(capped("a", numerics()), capped("b", numerics("matmul")), capped("c", numerics()))
    assert report.exit_code == 1
    (finding,) = report.findings
    assert finding.message == "b (processor of b): other bits than a in cpu-onednn.matmul"
    assert report.attachments["proven"] == ["a", "c"]
    assert report.headline == "3 machines: the cap AVX2 is proposed; 2 proven by their canary"


def test_a_canary_that_does_not_compare_is_no_proof() -> None:
    other = Numerics.model_validate({**numerics().model_dump(mode="json", exclude_unset=True), "battery": 99})
    report = judge(capped("a", numerics()), capped("b", other))
    assert (report.exit_code, rules(report)) == (4, ["other-bits"])
    assert report.attachments["proven"] == []
    assert judge(member("a"), member("b")).attachments["compared"] == 0


@pytest.mark.parametrize(
    ("second", "rule"),
    [
        (member("b", NEW, numerics()), "not-capped"),
        (capped("b", None), "no-canary"),
    ],
)
def test_a_machine_that_was_not_measured_under_the_cap_is_not_proven(second: Member, rule: str) -> None:
    report = judge(capped("a", numerics()), second)
    assert (report.exit_code, rules(report)) == (4, [rule])
    assert report.attachments["proven"] == []


def test_one_machine_is_equal_to_nothing() -> None:
    report = judge(capped("a", numerics()))
    assert (report.exit_code, report.attachments["compared"]) == (4, 0)


def test_a_cap_makes_no_versions_equal() -> None:
    other = replace(capped("b", numerics()), versions={"tensorflow": "2.20.0"})
    report = judge(capped("a", numerics()), other)
    assert (report.exit_code, rules(report)) == (1, ["other-software", "other-software"])
    assert report.findings[0].message == "numpy: a has 2.4.6, b has none"
    assert (report.findings[0].expected, report.findings[1].actual) == ("2.4.6", "2.20.0")
    turned = judge(other, capped("c", numerics()))
    assert turned.findings[0].message == "numpy: b has none, c has 2.4.6"


def test_without_a_common_cap_the_answer_is_no() -> None:
    report = judge(member("a"), member("b", frozenset({"asimd"})))
    assert (report.exit_code, rules(report), report.attachments["cap"]) == (1, ["no-cap"], None)
    assert report.headline == "no cap fits 2 machines"


def test_a_machine_lacks_the_variables_that_are_not_as_the_cap_sets_them() -> None:
    assert find_missing(member("a", variables={"A": "1", "B": "0"}), {"A": "1", "B": "1", "C": "1"}) == ["B", "C"]
