"""A machine that is not the locked one, under policy `bits`: what becomes of its proof, and what the report says."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.lock.locks import load_lock
from envlock.runtime.collectors import Snapshot
from envlock.runtime.extent import Extent
from envlock.runtime.report import ERROR, Finding, Report
from envlock.workflows import verify, verify_further
from tests.evidence.canaries import section
from tests.locks import document, encode

FACTS: dict[str, Any] = {
    "python": {"version": "3.11.7"},
    "packages": {"keras": {"version": "1.0", "origin": None, "wheel_tags": None, "installer": "pip"}},
    "tensorflow": {"version": "2.21.0"},
    "cpu": {"flags": ["avx", "avx2"]},
}
LOCK = document(facts=FACTS, unavailable={}, policy={"name": "bits", "overrides": {}}, numerics=section())
MATCH = "matches under policy bits, with 1 fact proven by the canary"


class World:
    """An environment, and how many results of its canary have the locked bits."""

    def __init__(self, folder: Path) -> None:
        self.facts = copy.deepcopy(FACTS)
        self.facts["cpu"]["flags"] = ["avx"]
        self.equal = 2
        self.asked = 0
        self.proofs = folder / "cache" / "envlock" / "proofs"
        self.lock = folder / "envlock.lock"
        self.lock.write_bytes(encode(LOCK))

    def compare(self, *_: object, **__: object) -> Any:
        """Stand in for the canary."""
        self.asked += 1
        found = Finding(
            "bits", ERROR, "numerics.matmul", message="other bits", why="It matters.", fix="Find out why.", source=""
        )
        findings = [] if self.equal else [found]
        report = Report(findings, notes=["2 operations compared"], extent=Extent(operations=2))
        return SimpleNamespace(report=report, equal=self.equal)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verify, "collect_live_for", lambda lock, python: Snapshot(world.facts, {}))
    monkeypatch.setattr(verify_further, "compare_with_lock", world.compare)
    return world


def test_the_locked_bits_are_a_proof_that_is_kept_and_read(world: World) -> None:
    report = verify.verify(world.lock)
    assert (report.headline, len(list(world.proofs.iterdir()))) == (MATCH, 1)
    assert any(note.startswith("the canary gave the locked bits on this machine") for note in report.notes)
    assert verify.verify(world.lock).headline == MATCH
    assert world.asked == 1, "the second call reads the proof"


def test_other_bits_are_findings_and_change_the_remedy(world: World) -> None:
    world.equal = 0
    report = verify.verify(world.lock)
    errors = {str(finding.where): finding.fix for finding in report.of(ERROR)}
    assert errors == {"cpu.flags": verify_further.REFUTED, "numerics.matmul": "Find out why."}
    assert "2 operations compared" in report.notes
    assert (report.compared or {})["operations"] == 2
    assert list(world.proofs.iterdir()) == []


def test_a_canary_that_is_asked_for_is_computed_once_and_each_result_counts_once(world: World) -> None:
    world.equal = 0
    report = verify.verify(world.lock, numerics=True)
    assert report.headline == "does not match under policy bits: 1 fact differs and 1 canary result differs"
    assert report.notes.count("2 operations compared") == 1
    assert ((report.compared or {})["operations"], world.asked) == (2, 1)
    assert verify.verify(world.lock).to_json() == report.to_json()


@pytest.mark.parametrize("asked", [False, True])
def test_a_proof_names_the_results_of_the_canary_if_they_were_asked_for(world: World, asked: bool) -> None:
    report = verify.verify(world.lock, numerics=asked)
    assert (report.headline, world.asked) == (MATCH, 1)
    assert report.notes.count("2 operations compared") == int(asked)
    assert (report.compared or {}).get("operations") == (2 if asked else None)


def test_no_canary_can_help_where_the_software_is_another_one(world: World) -> None:
    world.facts["tensorflow"]["version"] = "2.20.0"
    report = verify.verify(world.lock)
    assert {str(finding.where) for finding in report.of(ERROR)} == {"cpu.flags", "tensorflow.version"}
    assert (world.asked, world.proofs.exists()) == (0, False)


def test_another_number_of_threads_counts_and_is_no_obstacle_to_a_proof(world: World) -> None:
    world.lock.write_bytes(encode({**LOCK, "facts": {**FACTS, "cpu": {**FACTS["cpu"], "intra_op_threads": 8}}}))
    world.facts["cpu"]["intra_op_threads"] = 2
    report = verify.verify(world.lock)
    assert [str(finding.where) for finding in report.of(ERROR)] == ["cpu.intra_op_threads"]
    assert (world.asked, len(list(world.proofs.iterdir()))) == (1, 1)


def test_without_a_canary_in_the_lockfile_a_note_says_why_there_is_no_proof(world: World) -> None:
    world.lock.write_bytes(encode({key: value for key, value in LOCK.items() if key != "numerics"}))
    report = verify.verify(world.lock)
    assert not report.match
    reason = "the lockfile has no canary (`envlock capture --canary`)"
    assert f"no proof for this machine is possible: {reason}" in report.notes


def test_without_a_home_folder_a_note_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    report = verify.verify(world.lock)
    assert "no proof for this machine is possible: this process has no home folder" in report.notes
    assert world.asked == 0


def test_a_folder_that_others_can_write_is_closed_before_a_proof_is_kept(world: World) -> None:
    world.proofs.mkdir(parents=True)
    for folder in (world.proofs, world.proofs.parent):
        folder.chmod(0o777)
    assert verify.verify(world.lock).headline == MATCH
    assert [folder.stat().st_mode & 0o777 for folder in (world.proofs, world.proofs.parent)] == [0o700, 0o700]


@pytest.mark.parametrize("overrides", [True, False])
def test_the_canary_is_asked_by_the_rules_that_the_facts_are_judged_by(
    world: World, overrides: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []

    def compare(lock: object, name: str, *_: object, overrides: bool) -> Any:
        given.append((lock, name, overrides))
        return world.compare()

    monkeypatch.setattr(verify_further, "compare_with_lock", compare)
    verify.verify(world.lock, overrides=overrides, numerics=True)
    assert given == [(load_lock(world.lock), str(world.lock), overrides)]
