"""Nothing is never a match: the empty input of each reader, by the function that gives the verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envlock.evidence.bisect.bisection import BisectEvidence, Differences, judge_bisection
from envlock.evidence.canary.canary_comparison import compare, list_findings
from envlock.evidence.diverge.diverge import compare_traces
from envlock.evidence.diverge.trace import TraceError
from envlock.evidence.repeat.outcome import Outcome
from envlock.evidence.repeat.outcome import report as report_outcome
from envlock.evidence.repeat.repeat import compare_saved
from envlock.evidence.results import Run
from envlock.evidence.upgrade import upgrade_verdict as upgrade
from envlock.linter.lint import lint
from envlock.lock.numerics import Numerics
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import EnvlockError, UsageError
from envlock.runtime.judgement import judge
from envlock.runtime.lockfile import read_file
from envlock.runtime.policies import Policy, names
from envlock.runtime.report import Report
from envlock.workflows.fleet import check_fleet
from tests.evidence.canaries import section
from tests.evidence.diverge.traces import write
from tests.locks import document


@pytest.mark.parametrize("tier", names())
@pytest.mark.parametrize("facts", [{}, {"packages": {}}, {"packages": {}, "tensorflow": None, "python": {}}])
def test_a_lockfile_and_a_machine_of_which_nothing_is_known(facts: dict[str, Any], tier: str) -> None:
    lock = document(facts=facts, unavailable={}, policy={"name": tier, "overrides": {}})
    assert judge(lock, Snapshot(facts, {})).exit_code == 4


@pytest.mark.parametrize("content", [b"", b"{}", b"null", b"[]"])
def test_a_lockfile_without_content(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "envlock.lock"
    file.write_bytes(content)
    with pytest.raises(EnvlockError):
        read_file(str(file))


CANARIES: list[dict[str, Any]] = [
    {"groups": {}},
    {"groups": {name: {**group, "operations": {}} for name, group in section()["groups"].items()}},
]


@pytest.mark.parametrize("empty", CANARIES)
@pytest.mark.parametrize("both", [True, False])
def test_a_canary_without_results(empty: dict[str, Any], both: bool) -> None:
    locked = Numerics.model_validate({**section(), **empty})
    live = locked if both else Numerics.model_validate(section())
    found = compare(locked, live)
    assert not found.match
    report = Report(list_findings(found, Policy()), policy="strict")
    assert report.exit_code == 4


def test_traces_without_entries(tmp_path: Path) -> None:
    empty = tmp_path / "empty.trace"
    empty.write_bytes(b"")
    with pytest.raises(TraceError):
        compare_traces(empty, write(tmp_path / "c.trace", []))
    one, other = (write(tmp_path / name, []) for name in ("a.trace", "b.trace"))
    assert not compare_traces(one, other).match


def test_results_are_not_compared_with_themselves(tmp_path: Path) -> None:
    trace = write(tmp_path / "a.trace", [])
    (tmp_path / "b.trace").symlink_to(trace)
    for compare_both, one, other in (
        (compare_traces, trace, tmp_path / "b.trace"),
        (compare_saved, tmp_path, tmp_path),
    ):
        with pytest.raises(UsageError) as refused:
            compare_both(one, other)
        assert refused.value.message == f"{one} and {other} are the same"


def test_a_folder_without_code(tmp_path: Path) -> None:
    (tmp_path / "made_pb2.py").touch()
    with pytest.raises(UsageError) as refused:
        lint([tmp_path], exclude=["*_pb2.py"])
    assert str(refused.value) == (
        f"no Python files or notebooks in {tmp_path}\n"
        "hint: name files, or folders that have some besides those of `exclude` in the settings"
    )


def test_a_folder_without_statements(tmp_path: Path) -> None:
    with pytest.raises(EnvlockError):
        check_fleet(str(tmp_path), wait=0)


@pytest.mark.parametrize("runs", [[], [Run("0", {}, "finished")], [Run("0", {}, "finished"), Run("1", {}, "finished")]])
def test_runs_that_recorded_nothing(runs: list[Run]) -> None:
    outcome = Outcome(runs=runs, first=None, shown=[], matrices=[], failed=[], wanted=2, environments={})
    assert report_outcome(outcome).exit_code == 4


def test_saved_results_of_no_run(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with pytest.raises(EnvlockError):
        compare_saved(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("beyond", [(), ("cpu.vendor",)])
def test_a_search_in_which_nothing_ran(beyond: tuple[str, ...]) -> None:
    evidence = BisectEvidence(Differences((), beyond), (), None, None, 0)
    assert judge_bisection(evidence, None, "train.py:step").exit_code == 4


@pytest.mark.parametrize("compared", [upgrade.Compared(0, 0, 9), upgrade.Compared(2, 5, 0)])
def test_an_upgrade_of_which_nothing_was_seen(compared: upgrade.Compared) -> None:
    trial = upgrade.Trial((upgrade.Change("keras", "1", "2"),), ())
    report = upgrade.judge_upgrade(upgrade.UpgradeEvidence(trial, (), compared), "train.py:step")
    assert (report.exit_code, report.headline) == (4, "not provable: keras 1 -> 2 under train.py:step")
