"""How much a verdict rests on: what was compared is counted, and nothing compared is never a match."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.runtime.collectors import Snapshot
from envlock.runtime.extent import KINDS, NOTHING, Extent, decide
from envlock.runtime.judgement import judge
from envlock.runtime.policies import names
from envlock.runtime.report import (
    ERROR,
    INFO,
    SEVERITIES,
    UNKNOWN,
    WARNING,
    Finding,
    Report,
    Severity,
)
from tests.locks import FACTS, document

COUNTS = st.dictionaries(st.sampled_from(KINDS), st.integers(0, 3))
SEVERE = st.lists(st.sampled_from(SEVERITIES), max_size=4)
BREAKING = st.sampled_from([(ERROR,), (ERROR, WARNING), (ERROR, UNKNOWN)])


def answer(severities: list[Severity], breaking: tuple[str, ...], extent: Extent | None) -> int:
    found = [
        Finding("planted", each, "cpu.flags", message="it differs", why="Why.", fix="Fix it.", source="")
        for each in severities
    ]
    report = Report(found, breaking=breaking, extent=extent)
    assert report.match is (report.exit_code == 0)
    return report.exit_code


@pytest.mark.parametrize(
    ("is_wrong", "is_open", "extent", "code"),
    [
        (False, False, None, 0),
        (False, False, Extent(runs=2), 0),
        (False, False, Extent(runs=0), 4),
        (False, False, Extent(), 4),
        (False, True, Extent(runs=2), 4),
        (True, True, None, 1),
        (True, False, Extent(runs=0), 1),
    ],
)
def test_one_function_decides(is_wrong: bool, is_open: bool, extent: Extent | None, code: int) -> None:
    assert decide(is_wrong, is_open, extent) == code


@pytest.mark.parametrize(
    ("severities", "breaking", "code"),
    [
        ([], (ERROR, UNKNOWN), 0),
        ([INFO, WARNING], (ERROR, UNKNOWN), 0),
        ([UNKNOWN], (ERROR, UNKNOWN), 4),
        ([UNKNOWN], (ERROR,), 0),
        ([UNKNOWN, ERROR], (ERROR, UNKNOWN), 1),
        ([WARNING], (ERROR, WARNING), 1),
    ],
)
def test_findings_decide(severities: list[Severity], breaking: tuple[str, ...], code: int) -> None:
    assert answer(severities, breaking, None) == code
    assert answer(severities, breaking, Extent(runs=2)) == code


@given(SEVERE, BREAKING, COUNTS)
def test_where_nothing_was_compared_the_answer_is_never_yes(
    severities: list[Severity], breaking: tuple[str, ...], counts: dict[str, int]
) -> None:
    extent = Extent(**counts)
    code = answer(severities, breaking, extent)
    without = answer(severities, breaking, None)
    assert code == (without or (0 if any(counts.values()) else 4))
    assert (code == 1) == bool(set(severities) & set(breaking) - {UNKNOWN})


def test_a_report_for_which_nothing_was_compared_says_so() -> None:
    report = Report([], policy="strict", extent=Extent(operations=0))
    assert (report.match, report.exit_code, report.headline) == (False, 4, NOTHING)
    assert report.compared == {"operations": 0, "unknown": 0}


@given(COUNTS, COUNTS)
def test_what_was_compared_adds_up_and_comes_back(one: dict[str, int], other: dict[str, int]) -> None:
    both = Extent(**one).add(Extent(**other))
    sums = {kind: one.get(kind, 0) + other.get(kind, 0) for kind in KINDS if kind in one or kind in other}
    assert both.to_json() == sums
    assert Extent.read({**sums, "unknown": 3}).to_json() == sums
    assert pickle.loads(pickle.dumps(both)).to_json() == sums
    assert both.is_nothing is not any(sums.values())


@pytest.mark.parametrize("wrong", [True, -1, "3", 1.0, [1]])
def test_what_is_no_count_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"^not a count$"):
        Extent.read({"ranks": wrong})


def test_facts_are_counted_when_asked_for_and_once() -> None:
    asked: list[int] = []

    def count() -> int:
        asked.append(1)
        return 7

    extent = Extent(facts=count).add(Extent(files=2))
    assert (asked, extent.is_nothing) == ([], False)
    assert (extent.facts, extent.facts, asked) == (7, 7, [1])
    assert extent.add(Extent(facts=1)).facts == 8


SIDES = {"python": {"version": "3.12"}, "packages": {"a": {"version": "1"}}, "cpu": {"flags": ["a"], "vendor": None}}


@pytest.mark.parametrize(
    ("here", "unavailable", "number"),
    [
        ({}, [], 4),
        ({"cpu": {"flags": [], "vendor": None}}, [], 4),  # another value is compared, too
        ({"cpu": {"flags": ["a"]}}, [], 3),  # what one side lacks is no pair
        ({}, ["cpu.flags"], 3),
        ({}, ["cpu"], 2),
        ({"cpu": None}, [], 3),
    ],
)
def test_a_fact_counts_where_both_sides_know_it(here: dict[str, object], unavailable: list[str], number: int) -> None:
    hidden = {path: {"reason": "so it is said", "code": "x"} for path in unavailable}
    lock = document(facts=SIDES, unavailable={}, policy={"name": "strict", "overrides": {}})
    report = judge(lock, Snapshot({**SIDES, **here}, hidden))
    assert report.extent is not None
    assert report.extent.facts == number


def test_what_the_policy_ignores_is_not_compared() -> None:
    rules = {"cpu.flags": "ignore", "cpu.vendor": "ignore", "cpu.quota": "exact"}
    lock = document(facts=SIDES, unavailable={}, policy={"name": "strict", "overrides": rules})
    assert judge(lock, Snapshot(SIDES, {})).compared == {"facts": 2, "unknown": 0}


@pytest.mark.parametrize("tier", names())
def test_every_match_rests_on_facts(tier: str) -> None:
    report = judge(
        document(unavailable={}, policy={"name": tier, "overrides": {"cpu.*": "ignore"}}), Snapshot(FACTS, {})
    )
    assert report.match
    assert report.compared is not None
    assert report.compared["facts"] >= 2  # Python and a package
