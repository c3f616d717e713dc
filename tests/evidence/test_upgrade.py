"""Does an upgrade change bits: the runs are replaced, everything between them is real."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from envlock.evidence.canary.canary_run import Canary, Settings
from envlock.evidence.program import Program
from envlock.evidence.repeated_runs import Plan
from envlock.evidence.results import Run, Value
from envlock.evidence.upgrade import upgrade as workflow
from envlock.evidence.upgrade.upgrade import list_wishes, upgrade
from envlock.evidence.upgrade.upgrade_verdict import KERNELS, VALUES
from envlock.lock.document import validate
from envlock.lock.models import Lockfile
from envlock.lock.numerics import Numerics
from envlock.packages.installation import Installation
from envlock.packages.live_environment import LiveEnvironment
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import EnvironmentMismatch, FactError, UsageError
from tests.evidence.canaries import COUNT, numerics
from tests.locks import document

VERSIONS = {"keras": "3.8.0", "numpy": "2.1.3"}


def make_facts(versions: Mapping[str, str]) -> dict[str, Any]:
    packages = {
        name: {"version": version, "wheel_tags": ["py3-none-any"], "origin": None} for name, version in versions.items()
    }
    return {"packages": packages, "environ": {}}


@dataclass
class World:
    """An environment in which versions do what a test says.

    Attributes:
        values: what the program records, by the versions.
        kernels: the operations of the canary that compute other bits, by the versions.
        resolved: what the installer answers.
        is_random: whether runs without a seed differ; `seeds` are those of all processes.
    """

    values: Callable[[dict[str, str]], object] = lambda versions: 1
    kernels: Callable[[dict[str, str]], tuple[str, ...]] = lambda versions: ()
    resolved: dict[str, str] = field(default_factory=lambda: {"keras": "3.15.1"})
    unused: tuple[str, ...] = ()
    is_random: bool = False
    seeds: list[int | None] = field(default_factory=list)

    def read(self, environ: Mapping[str, str] | None) -> dict[str, str]:
        """Return the versions that a process with these variables has."""
        path = (environ or {}).get("PYTHONPATH", "")
        overlaid = dict(folder.rpartition("/")[2].split("=") for folder in path.split(":") if "=" in folder)
        return {**VERSIONS, **overlaid}

    def collect(self, python: Path | None, environ: Mapping[str, str] | None = None) -> Snapshot:
        """Return the facts of such a process."""
        found = self.read(environ)
        for name in self.unused:
            found[name] = VERSIONS[name]
        return Snapshot(make_facts(found), {}, [])

    def run(self, plan: Plan) -> list[Run]:
        """Return what such processes record."""
        assert plan.fresh
        runs = []
        for number in range(plan.runs):
            self.seeds.append(plan.seed)
            drawn = len(self.seeds) if self.is_random and plan.seed is None else 0
            value = Value("int64", (), f"{self.values(self.read(plan.environ))} {drawn}")
            runs.append(Run(str(number), {0: {"loss": value}}))
        return runs

    def compute(self, python: Path | None, settings: Settings, *, gpus: bool, environ: Mapping[str, str]) -> Canary:
        """Return the canary of such a process."""
        found: Numerics = numerics(*self.kernels(self.read(environ)))
        return Canary(found, None, None)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    made = World()
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(workflow, "collect_live", made.collect)
    monkeypatch.setattr(workflow, "make_runs", made.run)
    monkeypatch.setattr(workflow, "compute", made.compute)
    monkeypatch.setattr(workflow, "resolve_compatible", lambda wishes, environment, python: made.resolved)
    monkeypatch.setattr(
        workflow, "install_overlay", lambda wanted, folder, _: tmp_path / f"{wanted.name}={wanted.version}"
    )
    monkeypatch.setattr(LiveEnvironment, "installation", Installation(tmp_path, (), {}))
    return made


def lock(versions: Mapping[str, str] = VERSIONS) -> Lockfile:
    return validate(document(facts=make_facts(versions), unavailable={}), "a.lock")


def test_a_package_that_changes_nothing(world: World) -> None:
    report = upgrade(lock(), "train.py:step", ["keras"])
    assert (report.exit_code, report.findings, len(world.seeds)) == (0, [], 3)
    assert report.evidence.to_json()["witnesses"] == {"values": 1, "steps": 1, "operations": COUNT}
    assert report.headline.endswith(f": 1 value of 1 step and {COUNT} operations of the canary are equal")


def test_a_program_that_needs_no_seed_gets_none(world: World) -> None:
    report = upgrade(lock(), "train.py:step", ["keras"])
    assert (world.seeds, report.evidence.seed, report.evidence.is_random) == ([None] * 3, None, False)
    assert "seed" not in report.headline


def test_a_seed_that_envlock_sets_stands_in_the_headline(world: World) -> None:
    world.is_random = True
    report = upgrade(lock(), "train.py:step", ["keras"])
    assert (report.exit_code, world.seeds) == (0, [None, None, 7, 7, 7])
    assert report.headline.endswith(
        " are equal, with all seeds set to 7 by envlock; without, the program gives other values in each run"
    )
    world.seeds.clear()
    report = upgrade(lock(), Program("train.py:step", seed=3), ["keras"])
    assert (report.exit_code, world.seeds) == (0, [3, 3, 3])
    assert report.headline.endswith(" are equal, with all seeds set to 3 by envlock")


def test_other_values_and_other_kernels_are_told_apart(world: World) -> None:
    world.kernels = lambda versions: ("matmul",) if versions["keras"] == "3.15.1" else ()
    report = upgrade(lock(), "train.py:step", ["keras"])
    assert (report.exit_code, report.evidence.together.verdict) == (1, KERNELS)
    assert f"1 of {COUNT} operations of the canary compute other bits: " in report.findings[0].message
    world.values = lambda versions: versions["keras"]
    report = upgrade(lock(), "train.py:step", ["keras"])
    assert (report.exit_code, report.evidence.together.verdict) == (1, VALUES)
    assert [finding.rule for finding in report.findings] == [VALUES, KERNELS]
    assert report.findings[0].message.endswith("values differ: first at step 0, in loss")


def test_each_of_several_packages_has_a_verdict(world: World) -> None:
    world.resolved = {"keras": "3.15.1", "numpy": "2.4.6"}
    world.values = lambda versions: versions["numpy"]
    report = upgrade(lock(), "train.py:step", ["all"])
    assert [finding.where.fact for finding in report.findings] == ["packages.numpy.version"]
    assert report.notes == ["keras 3.8.0 -> 3.15.1: no bit changes by itself"]
    assert [trial.verdict for trial in report.evidence.alone] == ["no-bit-changes", VALUES]


def test_versions_that_python_does_not_find_prove_nothing(world: World) -> None:
    world.unused = ("keras",)
    report = upgrade(lock(), "train.py:step", ["keras"])
    assert (report.exit_code, [finding.rule for finding in report.findings]) == (4, ["not-provable"])
    assert "Python finds keras 3.8.0 nevertheless" in report.findings[0].message


def test_a_program_that_varies_by_itself_proves_nothing(world: World) -> None:
    values = iter([1, 2, 3, 4, 3])
    world.values = lambda versions: next(values)
    report = upgrade(lock(), "train.py:step", ["keras"])
    assert report.exit_code == 4
    assert "other values in each run" in report.findings[0].message


def test_a_program_that_fails_with_the_new_version_proves_nothing(world: World) -> None:
    def fail(versions: dict[str, str]) -> int:
        if versions["keras"] == "3.15.1":
            raise FactError("train.py:step failed: ImportError")
        return 1

    world.values = fail
    report = upgrade(lock(), "train.py:step", ["keras"])
    assert report.exit_code == 4
    assert "does not run with these versions: train.py:step failed: ImportError" in report.findings[0].message


def test_wrong_use_is_refused_before_anything_runs(world: World) -> None:
    with pytest.raises(UsageError, match="no package is named"):
        upgrade(lock(), "train.py:step", [])
    with pytest.raises(EnvironmentMismatch):
        upgrade(lock({**VERSIONS, "keras": "3.7.0"}), "train.py:step", ["keras"])
    world.resolved = {}
    with pytest.raises(UsageError, match="nothing would change: keras"):
        upgrade(lock(), "train.py:step", ["keras"])
    assert world.seeds == []


def test_all_is_what_policies_compare() -> None:
    installed = {"keras": "1", "tensorflow-cpu": "2", "pip": "3", "pytest": "4"}
    assert list(map(str, list_wishes(["all"], installed))) == ["keras", "tensorflow-cpu"]
    assert list(map(str, list_wishes(["all", "keras==2"], installed))) == ["keras==2", "tensorflow-cpu"]
