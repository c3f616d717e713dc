"""The policy `bits`: what may differ on a machine that is known to compute the locked bits."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envlock.runtime import machine_proof
from envlock.runtime.collectors import Snapshot
from envlock.runtime.judgement import judge_here, needs_proof
from envlock.runtime.report import Report
from tests.evidence.canaries import section
from tests.locks import document

FACTS: dict[str, Any] = {
    "cpu": {"model": "1", "intra_op_threads": 16},
    "system": {"libc_version": "2.36", "machine": "x86_64", "os_version": "22.04"},
    "python": {"version": "3.11.7"},
    "packages": {"numpy": {"version": "1.26.4"}},
}
LOCK = {**document(facts=FACTS, unavailable={}, policy={"name": "bits", "overrides": {}}), "numerics": section()}


def live(**changes: Any) -> Snapshot:
    """Return the locked facts, with some of another machine."""
    facts = copy.deepcopy(FACTS)
    for path, value in changes.items():
        section, _, name = path.partition("__")
        facts[section][name] = value
    return Snapshot(facts, {})


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "envlock" / "proofs"


def prove(lock: dict[str, Any], here: Snapshot, cache: Path) -> None:
    for folder in (cache.parent, cache):
        folder.mkdir(mode=0o700, exist_ok=True)
    name = machine_proof.key(lock, here)
    assert name is not None
    (cache / name).write_bytes(machine_proof.content(name, 27))


def by_another_user(file: Path, patch: pytest.MonkeyPatch) -> None:
    owner = file.stat().st_uid
    patch.setattr("os.geteuid", lambda: owner + 1)


def writable_by_others(file: Path, _patch: pytest.MonkeyPatch) -> None:
    file.chmod(0o622)


def in_a_folder_of_all(file: Path, _patch: pytest.MonkeyPatch) -> None:
    file.parent.chmod(0o1777)


def empty(file: Path, _patch: pytest.MonkeyPatch) -> None:
    file.write_bytes(b"")


def of_nothing(file: Path, _patch: pytest.MonkeyPatch) -> None:
    file.write_bytes(machine_proof.content(file.name, 0))


def too_long(file: Path, _patch: pytest.MonkeyPatch) -> None:
    content = machine_proof.content(file.name, 10**889)
    assert len(content) == 1001
    file.write_bytes(content)


def a_link(file: Path, _patch: pytest.MonkeyPatch) -> None:
    file.rename(file.with_name("real"))
    file.symlink_to("real")


OTHER = live(cpu__model="2", system__os_version="12")


def refused(report: Report) -> list[str]:
    return [str(finding.where) for finding in report.findings if finding.severity == "error"]


def test_another_machine_is_refused_until_it_is_proven(cache: Path) -> None:
    report = judge_here(LOCK, OTHER)
    assert (refused(report), needs_proof(report)) == (["cpu.model", "system.os_version"], True)
    assert {finding.fix for finding in report.findings} == {
        "Run `envlock verify -p bits` here once: it computes the lockfile's canary and remembers equal bits."
    }
    prove(LOCK, OTHER, cache)
    report = judge_here(LOCK, OTHER)
    assert (report.match, report.headline, report.notes) == (
        True,
        "matches under policy bits, with 2 facts proven by the canary",
        [machine_proof.NOTE],
    )
    assert len(report.findings) == 2


STATE: dict[str, Any] = {
    **{name: {"version": "1"} for name in machine_proof.SECTIONS},
    "cpu": {"model": "2", "vendor": "x", **dict.fromkeys(machine_proof.COUNTS, 8)},
    "gpu": {"devices": {"0": {"name": "H100"}}},
    "packages": {"numpy": {"version": "1.26.4"}},
}


def key(**changes: Any) -> str | None:
    """Return the name of the proof for a machine whose facts are these, with some changed."""
    return machine_proof.key(LOCK, Snapshot({**STATE, **changes}, {}))


def test_whatever_the_canary_depends_on_asks_for_another_proof() -> None:
    others = [key(**{section: {"version": "2"}}) for section in machine_proof.SECTIONS]
    others += [key(cpu={**STATE["cpu"], "model": "3"}), key(cpu=None)]
    others += [key(gpu={"devices": {"0": {"name": "A100"}}}), key(gpu=None)]
    others.append(machine_proof.key(LOCK, Snapshot(STATE, {"cpu.flags": {"reason": "No.", "code": "x"}})))
    assert len({key(), *others} - {None}) == 1 + len(others)


@pytest.mark.parametrize("count", machine_proof.COUNTS)
def test_thread_counts_and_the_order_of_facts_ask_for_no_other_proof(count: str) -> None:
    assert key(cpu={**STATE["cpu"], count: 2}) == key(cpu=dict(reversed(STATE["cpu"].items()))) == key()


@pytest.mark.parametrize(
    ("targets", "covered"),
    [
        (
            {"b.py:step": {"covered": 3, "distinct": 5}, "a.py:\x1b[2J": {"covered": 0, "distinct": 1}},
            "; it covers 0 of 1 distinct operations of a.py:\\x1b[2J, 3 of 5 distinct operations of b.py:step",
        ),
        ({"a.py": None, "b.py": {"covered": 3, "distinct": 5}}, "; it covers 3 of 5 distinct operations of b.py"),
        ({"a.py": {"covered": True, "distinct": 5}}, ""),
        ({"a.py": {"covered": 3}}, ""),
        ({}, ""),
        ([], ""),
    ],
)
def test_a_proof_says_how_much_of_which_program_the_canary_covers(targets: Any, covered: str) -> None:
    lock = {**LOCK, "numerics": {**section(), "program": {"targets": targets}}}
    assert machine_proof.note(lock) == machine_proof.NOTE + covered


def test_the_locked_machine_needs_no_proof() -> None:
    assert (judge_here(LOCK, live()).match, judge_here(LOCK, live()).notes) == (True, [])


def test_a_proof_is_of_one_lock_and_one_state_of_a_machine(cache: Path) -> None:
    prove(LOCK, OTHER, cache)
    another = {**LOCK, "numerics": {**section(), "battery": 3}}
    states = [live(cpu__model="3"), live(cpu__model="2"), live(cpu__model="2", system__os_version="13")]
    assert [judge_here(LOCK, state).match for state in states] == [False, False, False]
    assert (judge_here(another, OTHER).match, judge_here({**LOCK, "numerics": None}, OTHER).match) == (False, False)


@pytest.mark.parametrize(
    "change", [{"cpu__intra_op_threads": 2}, {"system__machine": "aarch64"}, {"python__version": "3.12.1"}]
)
def test_what_no_canary_proves_is_held_with_a_proof_too(change: dict[str, Any], cache: Path) -> None:
    """Thread counts can be set, and the canary sets its own; software is software."""
    here = live(cpu__model="2", system__os_version="12", **change)
    prove(LOCK, here, cache)
    (path,) = change
    assert refused(judge_here(LOCK, here)) == [path.replace("__", ".")]


def test_another_c_library_is_proven_by_its_functions_and_by_no_lockfile_without_them(cache: Path) -> None:
    here = live(system__libc_version="2.41")
    prove(LOCK, here, cache)
    assert judge_here(LOCK, here).match
    canary = section(without=("libm_tanhf", "math_exp"))
    without = {**LOCK, "numerics": {**canary, "battery": 1}}
    prove(without, here, cache)
    (finding,) = judge_here(without, here).findings
    assert (finding.severity, finding.where.fact, finding.fix) == (
        "error",
        "system.libc_version",
        "Compute the lockfile's canary again on the locked machine: `envlock capture --canary`. "
        "It has no result of math_exp, libm_tanhf.",
    )


@pytest.mark.parametrize(
    "result", [{"unstable": True, "dtype": "<f4", "shape": [1]}, {"failed": "ValueError"}, {"sha256": 1}, None, "x"]
)
def test_what_the_lockfile_has_no_result_of_is_no_witness(result: Any, cache: Path) -> None:
    """A lockfile that calls the operations of a cause unstable would else prove it by the others."""
    lock = copy.deepcopy(LOCK)
    lock["numerics"]["groups"]["numpy"]["operations"]["np_dot"] = result
    prove(lock, OTHER, cache)
    assert refused(judge_here(lock, OTHER)) == ["cpu.model"]


@pytest.mark.parametrize("groups", [None, [], {"numpy": None}, {"numpy": {"operations": []}}])
def test_a_lockfile_without_results_has_no_witness(groups: Any) -> None:
    assert machine_proof.list_results({"numerics": {"groups": groups}}) == frozenset()
    assert machine_proof.list_results({}) == frozenset()


def test_a_gpu_is_no_witness_of_the_processor() -> None:
    groups = {
        "gpu-0": {"operations": {"matmul": {"sha256": "a"}}},
        "cpu-eigen": {"operations": {"reduce": {"sha256": "a"}}},
    }
    assert machine_proof.list_results({"numerics": {"groups": groups}}) == {"reduce"}


def test_a_rule_of_the_lockfile_that_asks_for_a_proof_where_nothing_shows_the_cause_is_never_met(cache: Path) -> None:
    lock = {**LOCK, "policy": {"name": "bits", "overrides": {"cpu.intra_op_threads": "proven"}}}
    here = live(cpu__intra_op_threads=2)
    prove(lock, here, cache)
    assert refused(judge_here(lock, here)) == ["cpu.intra_op_threads"]


def test_a_package_that_the_canary_does_not_use_asks_for_no_new_proof(cache: Path) -> None:
    prove(LOCK, OTHER, cache)
    with_ruff = Snapshot({**OTHER.facts, "packages": {**FACTS["packages"], "ruff": {"version": "1"}}}, {})
    assert judge_here(LOCK, with_ruff).match


@pytest.mark.parametrize(
    "spoil", [by_another_user, writable_by_others, in_a_folder_of_all, empty, of_nothing, too_long, a_link]
)
def test_a_proof_that_somebody_else_can_have_written_is_not_believed(
    spoil: Callable[[Path, pytest.MonkeyPatch], None], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prove(LOCK, OTHER, cache)
    assert judge_here(LOCK, OTHER).match
    (file,) = cache.iterdir()
    spoil(file, monkeypatch)
    assert refused(judge_here(LOCK, OTHER)) == ["cpu.model", "system.os_version"]


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"XDG_CACHE_HOME": "relative"}])
def test_without_a_home_there_is_no_proof(environ: dict[str, str]) -> None:
    assert not machine_proof.is_proven(LOCK, OTHER, environ)
