"""What the check of a committed lockfile asks of `verify`, and which settings of a project are others than the locked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envlock.lock.settings import Config
from envlock.reports.progress import Silent
from envlock.runtime.extent import Extent
from envlock.runtime.report import ERROR, Finding, Report
from envlock.workflows import gate
from tests.locks import document, encode

RULES: dict[str, Any] = {"name": "bits", "overrides": {"cpu.*": "ignore", "packages.h5py.*": "exact"}}
SAME = Config(policy="bits", overrides=RULES["overrides"], entry=("train.py", "eval.py"), data=("data", "more"))
DATA = {"files": 1, "bytes": 1, "listing": "ab" * 32, "content": None}
LOCK = document(
    policy=RULES,
    project={"entry": ["train.py", "eval.py"], "held": {}},
    data={"more": DATA, "data": DATA},
)
HEADLINE = "matches under policy bits"


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a lockfile whose environment is the locked one."""
    monkeypatch.setattr(gate, "verify", lambda *_, **__: Report([], policy="bits", extent=Extent(facts=7)))
    path = tmp_path / "envlock.lock"
    path.write_bytes(encode(LOCK))
    return path


def list_changed(lock: Path, config: Config, **options: Any) -> list[str]:
    return [finding.message for finding in gate.check(lock, config, **options).findings]


@pytest.mark.parametrize(("variable", "overrides"), [(None, True), ("1", False)])
def test_the_environment_is_verified_as_it_was_asked_for(
    lock: Path, variable: str | None, overrides: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    found = Report(
        [Finding("planted", ERROR, "cpu.flags", message="cpu.flags differs", why="", fix="", source="")],
        policy="strict",
    )

    def verify(*words: object, **options: object) -> Report:
        asked.append((*words, options))
        return found

    monkeypatch.setattr(gate, "verify", verify)
    if variable is not None:
        monkeypatch.setenv("ENVLOCK_NO_OVERRIDES", variable)
    python, progress = Path("/venv/bin/python"), Silent()
    assert gate.check(lock, SAME, "strict", python=python, numerics=True, progress=progress) is found
    options = {"overrides": overrides, "python": python, "numerics": True, "progress": progress}
    assert asked == [(lock, "strict", options)]
    gate.check(lock, SAME)
    assert asked[1][2]["numerics"] is False


def test_settings_as_they_are_locked_are_no_finding(lock: Path) -> None:
    report = gate.check(lock, SAME)
    assert (report.headline, report.findings) == (HEADLINE, [])


def test_a_project_without_settings_differs_in_none(lock: Path) -> None:
    assert gate.check(lock, Config()).headline == HEADLINE


def test_other_settings_are_a_mismatch_whatever_the_environment_is(lock: Path) -> None:
    report = gate.check(lock, Config(policy="strict", overrides=RULES["overrides"]))
    assert report.headline == "does not match under policy bits: 1 setting differs"
    (found,) = report.findings
    assert found.to_json() == {
        "where": {"fact": "tool.envlock.policy.name"},
        "message": "tool.envlock.policy.name: locked bits, pyproject.toml strict",
        "rule": "settings",
        "expected": "bits",
        "actual": "strict",
        "severity": "error",
        "why": "A lockfile is compared under what it says itself: other settings have no effect before they are "
        "captured.",
        "fix": "Run `envlock capture`, or put the settings back as they were.",
        "source": "[tool.envlock]",
    }


CHANGED: list[tuple[Config, list[str]]] = [
    (
        Config(policy="bits"),
        [
            "tool.envlock.policy.cpu.*: locked ignore, pyproject.toml none",
            "tool.envlock.policy.packages.h5py.*: locked exact, pyproject.toml none",
        ],
    ),
    (
        Config(overrides={"cpu.*": "exact", "packages.h5py.*": "exact", "system.*": "ignore"}),
        [
            "tool.envlock.policy.name: locked bits, pyproject.toml strict",
            "tool.envlock.policy.cpu.*: locked ignore, pyproject.toml exact",
            "tool.envlock.policy.system.*: locked none, pyproject.toml ignore",
        ],
    ),
    (
        Config(entry=("eval.py", "train.py")),
        ["tool.envlock.entry: locked train.py, eval.py, pyproject.toml eval.py, train.py"],
    ),
    (Config(entry=("train.py", "eval.py", "train.py")), []),
    (Config(entry=()), ["tool.envlock.entry: locked train.py, eval.py, pyproject.toml none"]),
    (Config(data=("data",)), ["tool.envlock.data: locked data, more, pyproject.toml data"]),
    (Config(data=("a", "b")), ["tool.envlock.data: locked data, more, pyproject.toml a, b"]),
    (Config(data=()), ["tool.envlock.data: locked data, more, pyproject.toml none"]),
]


@pytest.mark.parametrize(("config", "messages"), CHANGED)
def test_each_setting_that_differs_is_named_with_both_sides(config: Config, messages: list[str], lock: Path) -> None:
    assert list_changed(lock, config) == messages


def test_entry_points_that_are_given_go_before_those_of_the_settings(lock: Path) -> None:
    other = Config(entry=("other.py",))
    assert list_changed(lock, other, entry=["train.py", "eval.py"]) == []
    assert list_changed(lock, SAME, entry=[]) == ["tool.envlock.entry: locked train.py, eval.py, pyproject.toml none"]


def test_what_the_lockfile_does_not_have_is_none(lock: Path) -> None:
    lock.write_bytes(encode(document()))
    assert list_changed(lock, Config(entry=(), data=())) == []
    assert list_changed(lock, Config(entry=("train.py",), data=("data",))) == [
        "tool.envlock.entry: locked none, pyproject.toml train.py",
        "tool.envlock.data: locked none, pyproject.toml data",
    ]
