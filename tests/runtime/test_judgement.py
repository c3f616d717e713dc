"""Each door to the verdict: with whose policy, with whose rules, with which proof, and what it says first."""

from __future__ import annotations

import copy
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from envlock.runtime import judgement, machine_proof
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import LockfileError, UsageError
from envlock.runtime.extent import Extent
from envlock.runtime.files import deep
from envlock.runtime.judgement import judge, judge_here, judge_proven, needs_proof, remove_package, verify
from envlock.runtime.report import ERROR, NO_TENSORFLOW, UNKNOWN, Finding, Report
from envlock.runtime.user_cache import make_cache
from tests.evidence.canaries import section
from tests.locks import document

FACTS: dict[str, Any] = {
    "python": {"version": "3.11.7"},
    "packages": {"numpy": {"version": "1.26.4"}, "tensorflow-cpu": {"version": "2.21.0"}, "h5py": {"version": "3.1"}},
    "tensorflow": {"version": "2.21.0"},
    "cpu": {"model": "1", "flags": ["avx"]},
    "system": {"libc_version": "2.36"},
    "environ": {"TF_DETERMINISTIC_OPS": None},
}
OVERRIDE = {"packages.h5py.version": "ignore"}


def lock_of(policy: str = "strict", overrides: Any = None, **more: Any) -> dict[str, Any]:
    rules = {"name": policy, "overrides": overrides or {}}
    return document(facts=copy.deepcopy(FACTS), unavailable={}, policy=rules, **more)


def here(**changes: Any) -> Snapshot:
    """Return the locked facts with other ones: `packages__h5py__version`."""
    facts = copy.deepcopy(FACTS)
    for path, value in changes.items():
        *folders, name = path.split("__")
        node = facts
        for folder in folders:
            node = node[folder]
        node[name] = value
    return Snapshot(facts, {})


def errors(report: Report) -> list[str]:
    return [str(each.where) for each in report.of(ERROR)]


OLDER = here(packages__h5py__version="3.0")
ELSEWHERE = here(cpu__model="2")


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("ENVLOCK_NO_OVERRIDES", "ENVLOCK_ADDED"):
        monkeypatch.delenv(name, raising=False)


def test_the_named_policy_goes_before_that_of_the_lockfile() -> None:
    assert errors(judge_here(lock_of(), OLDER)) == ["packages.h5py.version"]
    for wanted, found in (("functional", []), ("strict", ["cpu.model"])):
        report = judge_here(lock_of("functional" if found else "strict"), ELSEWHERE, wanted)
        assert (report.policy, errors(report)) == (wanted, found)


@pytest.mark.parametrize(("overrides", "found"), [(True, []), (False, ["packages.h5py.version"])])
def test_rules_of_the_lockfile_apply_unless_they_are_forbidden(overrides: bool, found: list[str]) -> None:
    lock = lock_of(overrides=OVERRIDE)
    assert errors(judge_here(lock, OLDER, overrides=overrides)) == found
    assert errors(judge(lock, OLDER, overrides=overrides)) == found
    assert errors(judge(lock, OLDER)) == []


@pytest.mark.parametrize(("value", "found"), [(None, []), ("", []), ("0", []), ("1", ["packages.h5py.version"])])
def test_the_process_forbids_them_by_a_variable(
    value: str | None, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judgement, "take_snapshot", lambda host: OLDER)
    if value is not None:
        monkeypatch.setenv("ENVLOCK_NO_OVERRIDES", value)
    assert errors(verify(lock_of(overrides=OVERRIDE))) == found
    assert verify(lock_of(overrides=OVERRIDE), "functional").policy == "functional"


def test_a_file_that_is_not_as_recorded_decides_where_files_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def verify_files(lock: Any) -> tuple[list[Finding], int]:
        asked.append(lock)
        return [
            Finding("file-modified", ERROR, "a.py", message="a.py: differs", why="Why.", fix="Install it.", source="")
        ], 7

    monkeypatch.setattr(judgement, "take_snapshot", lambda host: here())
    monkeypatch.setattr(deep, "verify_files", verify_files)
    lock = lock_of()
    assert (verify(lock).match, asked) == (True, [])
    report = verify(lock, deep=True)
    assert (report.exit_code, errors(report), asked) == (1, ["a.py"], [lock])
    assert isinstance(report.extent, Extent)
    assert report.extent.files == 7
    assert report.extent.facts


def test_the_file_that_a_report_is_about() -> None:
    assert judge_here(lock_of(), here()).subject == "envlock.lock"
    assert judge_here(lock_of(), OLDER, subject="other.lock").subject == "other.lock"


def prove(lock: Any, snapshot: Snapshot) -> None:
    name = machine_proof.key(lock, snapshot)
    assert name is not None
    Path(make_cache(os.environ, machine_proof.PROOFS), name).write_bytes(machine_proof.content(name, 27))


def test_a_proof_counts_under_the_same_policy_and_rules() -> None:
    lock = lock_of("strict", {"packages.h5py.version": "ignore"}, numerics=section())
    assert (judge_here(lock, ELSEWHERE, "bits").match, needs_proof(judge_here(lock, ELSEWHERE, "bits"))) == (
        False,
        True,
    )
    both = here(cpu__model="2", packages__h5py__version="3.0")
    prove(lock, both)
    report = judge_here(lock, both, "bits", "my.lock")
    assert (report.match, report.policy, report.subject) == (True, "bits", "my.lock")
    assert report.notes == [machine_proof.NOTE]
    assert errors(judge_here(lock, both, "bits", overrides=False)) == ["packages.h5py.version"]
    assert errors(judge_here(lock, both)) == ["cpu.model"]
    results = machine_proof.list_results(lock)
    assert judge_proven(lock, both, "bits", True, results).match
    assert errors(judge_proven(lock, both, "bits", False, results)) == ["packages.h5py.version"]
    assert errors(judge_proven(lock, both, None, True, results)) == ["cpu.model"]
    assert errors(judge_proven(lock, both, "bits", True, frozenset())) == ["cpu.model"]


def test_a_difference_that_no_proof_allows_asks_for_none() -> None:
    report = judge_here(lock_of("bits"), OLDER)
    assert (report.match, needs_proof(report)) == (False, False)
    allowed = judge(lock_of("functional"), ELSEWHERE)
    assert not needs_proof(allowed)


@pytest.mark.parametrize("python", [None, "venv/bin/python\x1b[2J"])
def test_where_tensorflow_is_not_installed_that_comes_first(python: str | None) -> None:
    snapshot = here(tensorflow=None, packages__h5py__version="3.0")
    del snapshot.facts["packages"]["tensorflow-cpu"]
    report = judge_here(lock_of(), snapshot, python=python)
    first = report.findings[0]
    named = sys.executable if python is None else "venv/bin/python\\x1b[2J"
    assert (first.rule, str(first.where), first.weight) == (NO_TENSORFLOW, "tensorflow", 100)
    assert first.message == f"no TensorFlow in {named}, but 2.21.0 in the lockfile"
    assert (first.why, first.fix) == (judgement.ELSEWHERE, judgement.NAME_IT)
    assert report.headline.startswith(f"does not match under policy strict: {first.message}, and ")
    assert sorted(errors(report)) == ["packages.h5py.version", "packages.tensorflow-cpu", "tensorflow"]


def test_a_tensorflow_of_another_version_does_not_lead() -> None:
    report = judge_here(lock_of(), here(tensorflow__version="2.20.0"))
    assert {each.rule for each in report.of(ERROR)} == {"exact"}


def test_the_projects_package_goes_with_what_is_unavailable_of_it_and_nothing_else() -> None:
    hidden = {"reason": "so it is said", "code": "x"}
    paths = ("packages.mine", "packages.mine.version", "packages.mine-too", "packages.mine-too.version")
    found = Snapshot({**FACTS, "packages": {"mine": {}, "mine-too": {}}}, dict.fromkeys(paths, hidden), ("typer",))
    left = remove_package(found, "mine")
    assert (list(left.facts["packages"]), sorted(left.unavailable)) == (["mine-too"], sorted(paths[2:]))
    assert left.tooling == ("typer",)
    assert remove_package(found, None) is found
    none = Snapshot({**FACTS, "packages": None}, {})
    assert remove_package(none, "mine") is none


@pytest.mark.parametrize("facts", [{"python": None}, {"python": {}}, {"python": {"startup": {}}}])
def test_a_project_of_which_no_startup_code_is_known(facts: dict[str, Any]) -> None:
    found = Snapshot({**facts, "packages": {"mine": {}}}, {})
    assert remove_package(found, "mine").facts == {**facts, "packages": {}}


def test_what_does_not_exist_is_named_with_the_choices() -> None:
    with pytest.raises(UsageError) as caught:
        judge(lock_of(), here(), "loose")
    assert caught.value.message == "unknown policy `loose`"
    assert caught.value.hint == "choose from: strict, bits, same-arch, functional"
    with pytest.raises(LockfileError) as refused:
        judge(lock_of("loose"), here())
    assert refused.value.message.startswith("invalid policy in the lockfile: unknown policy `loose`")
    assert refused.value.hint == "capture again"


def test_the_machine_that_fits_best_is_judged_and_named() -> None:
    others = [
        {"facts": {"cpu": {"model": "2", "flags": ["avx"]}, "system": {"libc_version": "2.36"}}, "unavailable": {}}
    ]
    lock = lock_of(machines=others)
    for snapshot, place in ((here(), 1), (ELSEWHERE, 2)):
        report = judge(lock, snapshot)
        assert report.match
        assert report.notes[0].startswith(f"machine {place} of 2")
        assert judgement.choose_machine(lock, snapshot)["facts"]["cpu"]["model"] == str(place)
    assert judgement.choose_machine(lock_of(), ELSEWHERE)["facts"]["cpu"]["model"] == "1"


def test_packages_of_other_origin_are_looked_up_only_where_they_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts: list[Any] = []

    def snapshot(host: Any) -> Snapshot:
        hosts.append(host)
        return here()

    monkeypatch.setattr(judgement, "take_snapshot", snapshot)
    monkeypatch.setattr("envlock.runtime.locked_wheels.complete_packages", lambda *_: Snapshot({"looked": True}, {}))
    assert judgement.collect_here(lock_of()).facts == FACTS
    assert hosts[0] is not None
    assert judgement.collect_here(document(facts={"packages": {}})).facts == {"looked": True}


def test_what_envlock_has_set_itself_is_added_to_what_was_found() -> None:
    found = judgement._with_variables(Snapshot({**FACTS}, {}, ("typer",)), {"OMP_NUM_THREADS": "1"})
    assert found.facts["environ"] == {"TF_DETERMINISTIC_OPS": None, "OMP_NUM_THREADS": "1"}
    assert found.tooling == ("typer",)


def test_what_the_verdict_lacks_is_unknown() -> None:
    gone = Snapshot({**FACTS, "cpu": {"model": "1"}}, {"cpu.flags": {"reason": "so it is said", "code": "x"}})
    assert [str(each.where) for each in judge(lock_of(), gone).of(UNKNOWN)] == ["cpu.flags"]
