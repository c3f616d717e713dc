"""Exemptions: each owner has a row, is counted, and is shown in every format; the headline says what the lockfile allows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envlock.data.runtime_tables import load_policy_table
from envlock.reports import FORMATS, render
from envlock.runtime import exemptions
from envlock.runtime.collectors import Snapshot
from envlock.runtime.exemptions import Exemption, describe_judge, list_exemptions
from envlock.runtime.judgement import judge
from envlock.runtime.machine_proof import list_results
from envlock.runtime.report import Report
from envlock.runtime.tables import table
from tests.evidence.canaries import section
from tests.locks import document

OWNERS = [row.owner for row in load_policy_table().exemption]
FORBIDDEN = {"override", "held", "tooling", "variable"}


def test_every_owner_that_the_code_names_has_a_row_and_the_other_way_round() -> None:
    constants = [value for name, value in vars(exemptions).items() if name.isupper() and isinstance(value, str)]
    assert sorted(constants) == sorted(OWNERS)
    assert list(table("exemptions")) == OWNERS


def test_what_the_lockfile_says_is_forbidden_without_its_rules_and_what_is_found_here_is_not() -> None:
    assert {owner for owner in OWNERS if Exemption(owner, 1).is_forbidden} == FORBIDDEN


def test_what_the_lockfile_or_envlock_lets_pass_is_in_the_headline() -> None:
    hidden = {owner for owner in OWNERS if not Exemption(owner, 1).is_in_headline}
    assert hidden == {"machine", "envlock", "policy"}
    report = Report([], policy="strict", overrides=2, exempt=[Exemption("policy", 3), Exemption("held", 1)])
    assert report.headline == (
        "matches under policy strict, with 2 overrides and 1 package exempt by the lockfile's entry points"
    )
    assert list(map(str, report.exemptions)) == [
        "2 overrides",
        "3 differences that the policy allows",
        "1 package exempt by the lockfile's entry points",
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_shows_what_the_lockfile_exempts(name: str) -> None:
    report = Report([], policy="strict", overrides=1, exempt=[Exemption("tooling", 2)])
    text = render(report, name)
    assert "1 override" in text
    assert "2 packages exempt by the lockfile as tooling" in text
    assert "exempt" not in render(Report([], command="lint", headline="no findings"), name)


@pytest.mark.parametrize(
    "wrong",
    [{}, {"owner": "override"}, {"count": 1}],
)
def test_what_another_process_sent_is_complete(wrong: Any) -> None:
    kept = {"owner": "held", "count": 2, "forbidden": True}
    assert Exemption.read(json.loads(json.dumps(kept))).to_json() == kept
    with pytest.raises(KeyError):
        Exemption.read(wrong)


def test_what_another_process_sent_is_of_an_owner_and_counted() -> None:
    with pytest.raises(ValueError, match=r"^no owner of exemptions$"):
        Exemption.read({"owner": "nobody", "count": 1})
    with pytest.raises(ValueError, match=r"^not a count$"):
        Exemption.read({"owner": "held", "count": True})


def test_where_no_policy_judged_nobody_is_said_to_have_accepted_anything() -> None:
    assert describe_judge(None, 2, [Exemption("held", 1)]) == ""


def test_where_nothing_passed_no_table_is_needed() -> None:
    assert list_exemptions({}) == list_exemptions({"held": 0}) == []


def snapshot(**facts: Any) -> dict[str, Any]:
    packages = {"numpy": {"version": "2"}, "h5py": {"version": "3"}, "tqdm": {"version": "1"}}
    return {"python": {"version": "3.11.7"}, "packages": packages, "cpu": {"model": "1"}, **facts}


def count_owners(lock: dict[str, Any], live: dict[str, Any], tooling: list[str], **options: Any) -> dict[str, int]:
    report = judge(lock, Snapshot(live, {}, tooling), **options)
    return {each.owner: each.count for each in report.exemptions}


def test_each_owner_is_counted_by_what_it_lets_pass() -> None:
    lock = {**document(facts=snapshot(), unavailable={}), "numerics": section()}
    here = snapshot()
    here["packages"] = {**here["packages"], "h5py": {"version": "4"}, "tqdm": {"version": "2"}}
    assert count_owners({**lock, "project": {"held": {"numpy": "imported"}}}, here, []) == {"held": 2}
    assert count_owners({**lock, "project": {"tooling": ["tqdm"]}}, here, ["h5py"]) == {"tooling": 1, "envlock": 1}
    overrides = {"name": "strict", "overrides": {"packages.**": "ignore"}}
    assert count_owners({**lock, "policy": overrides}, here, []) == {"override": 1}
    assert count_owners({**lock, "policy": overrides}, here, [], overrides=False) == {}
    quota = snapshot(cpu={"model": "1", "quota": 2.0})
    assert count_owners(lock, quota, []) == {"policy": 1}
    named = {**lock, "project": {"name": "mine"}}
    own = snapshot()
    own["packages"] = {**own["packages"], "mine": {"version": "1"}}
    assert count_owners(named, own, []) == {"project.name": 1}
    other = snapshot(cpu={"model": "2"})
    assert count_owners(lock, other, [], policy="bits", proof=list_results(lock)) == {"proof": 1}
    machine = {"facts": {"cpu": {"model": "2"}}, "unavailable": {}}
    assert count_owners({**lock, "machines": [machine]}, other, []) == {"machine": 1}
    assert count_owners({**lock, "machines": [machine]}, snapshot(), []) == {}
