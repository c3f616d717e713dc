"""Does an upgrade change bits: the runs are replaced, everything between them is real."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from envlock.divergence.observed_runs import Request
from envlock.lock.document import validate
from envlock.lock.models import Lockfile
from envlock.numerics.programs.parts import Observed, Part
from envlock.numerics.upgrade_verdict import KERNELS, PROGRAM, UNPROVEN, VALUES
from envlock.packages.installation import Installation
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import EnvironmentMismatch, FactError, UsageError
from envlock.workflows import upgrade_trials as workflow
from envlock.workflows.live_environment import LiveEnvironment
from envlock.workflows.program import Program
from envlock.workflows.upgrade_trials import Look, compare_traces, find_unreadable, list_wishes, upgrade
from tests.divergence.traces import op, value, write
from tests.locks import document
from tests.numerics.canaries import section, with_program

VERSIONS = {"keras": "3.8.0", "numpy": "2.1.3"}
_PROGRAM = with_program(section())["program"]
SECTION = {**_PROGRAM, "targets": {workflow.NAME: _PROGRAM["targets"]["train.py:step"]}}
"""One operation that is computed again, and one that is left out."""
EMPTY = {**SECTION, "targets": {workflow.NAME: {"distinct": 0, "covered": 0, "left_out": {}}}, "operations": {}}


def make_facts(versions: Mapping[str, str]) -> dict[str, Any]:
    packages = {
        name: {"version": version, "wheel_tags": ["py3-none-any"], "origin": None} for name, version in versions.items()
    }
    return {"packages": packages, "environ": {}}


@dataclass
class World:
    """An environment in which versions do what a test says.

    Attributes:
        program, trace: the digest of the program, and what the first steps show, by the versions.
        resolved: what the installer answers.
        section: the operations that can be computed alone, and their results.
        steps: how many steps each trace has at most.
        is_random: whether runs without a seed differ; `seeds` are those of all processes.
    """

    program: Callable[[dict[str, str]], str] = lambda versions: "a"
    trace: Callable[[dict[str, str]], int] = lambda versions: 1
    resolved: dict[str, str] = field(default_factory=lambda: {"keras": "3.15.1"})
    unused: tuple[str, ...] = ()
    section: Mapping[str, Any] = field(default_factory=lambda: SECTION)
    steps: set[int | None] = field(default_factory=set)
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

    def look(self, request: Request, folder: Path, environ: Mapping[str, str]) -> Look:
        """Return what such a process runs, and what the first steps show."""
        self.steps.add(request.steps)
        self.seeds.append(request.seed)
        versions = self.read(environ)
        digest = self.program(versions)
        drawn = len(self.seeds) if self.is_random and request.seed is None else 0
        write(folder / "trace", [op("MatMul", 7, [5], [self.trace(versions) + 100 * drawn])])
        program = Observed("2.21.0", {}, {"train": Part("train", "graph", digest, 1, (digest,))})
        return Look(program, {}, folder / "trace")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    made = World()
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(workflow, "collect_live", made.collect)
    monkeypatch.setattr(workflow, "look", made.look)
    monkeypatch.setattr(workflow, "compute_noted", lambda *_, **__: made.section)
    monkeypatch.setattr(workflow, "recompute_program", lambda *_, **__: made.section)
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
    assert report.evidence.to_json()["witnesses"] == {
        "parts": 1,
        "operations": 1,
        "entries": 1,
        "steps": 1,
        "left_out": 1,
    }
    assert report.headline.endswith(
        ": 1 part of the program, 1 of 2 operations computed again and 1 traced value are equal"
    )


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


def test_as_many_steps_are_traced_as_are_wanted(world: World) -> None:
    report = upgrade(lock(), "train.py:step", ["keras"], steps=20)
    assert (report.exit_code, world.steps) == (0, {20})
    assert report.headline.startswith("no bit changes in the first 1 step: keras "), "it has no more"


def test_without_an_operation_that_can_be_computed_nothing_is_proven(world: World) -> None:
    world.section = EMPTY
    report = upgrade(lock(), "train.py:step", ["keras"])
    assert (report.exit_code, report.evidence.together.verdict) == (4, UNPROVEN)
    (finding,) = report.findings
    assert finding.message.endswith("not provable: no operation could be computed again")


def test_another_program_and_another_kernel_are_told_apart(world: World) -> None:
    world.program = lambda versions: versions["keras"]
    assert upgrade(lock(), "train.py:step", ["keras"]).evidence.together.verdict == PROGRAM
    world.program = lambda versions: "a"
    world.trace = lambda versions: int(versions["keras"] == "3.15.1")
    report = upgrade(lock(), "train.py:step", ["keras"])
    assert report.evidence.together.verdict == KERNELS
    assert "train.py:7: MatMul gives other bits for equal inputs" in report.findings[0].message


def test_each_of_several_packages_has_a_verdict(world: World) -> None:
    world.resolved = {"keras": "3.15.1", "numpy": "2.4.6"}
    world.program = lambda versions: versions["numpy"]
    report = upgrade(lock(), "train.py:step", ["all"])
    assert [finding.where.fact for finding in report.findings] == ["packages.numpy.version"]
    assert report.notes == ["keras 3.8.0 -> 3.15.1: no bit changes by itself"]
    assert [trial.verdict for trial in report.evidence.alone] == ["no-bit-changes", PROGRAM]


def test_versions_that_python_does_not_find_prove_nothing(world: World) -> None:
    world.unused = ("keras",)
    report = upgrade(lock(), "train.py:step", ["keras"])
    assert (report.exit_code, [finding.rule for finding in report.findings]) == (4, ["not-provable"])
    assert "Python finds keras 3.8.0 nevertheless" in report.findings[0].message


def test_a_program_that_varies_by_itself_proves_nothing(world: World) -> None:
    traces = iter([1, 2, 3, 4, 3])
    world.trace = lambda versions: next(traces)
    report = upgrade(lock(), "train.py:step", ["keras"])
    assert report.exit_code == 4
    assert "other values in each run" in report.findings[0].message


def test_a_program_that_fails_with_the_new_version_proves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(versions: dict[str, str]) -> str:
        if versions["keras"] == "3.15.1":
            raise FactError("train.py:step failed: ImportError")
        return "a"

    world.program = fail
    report = upgrade(lock(), "train.py:step", ["keras"])
    assert report.exit_code == 4
    assert "does not run with these versions: train.py:step failed: ImportError" in report.findings[0].message


def test_wrong_use_is_refused_before_anything_runs(world: World) -> None:
    with pytest.raises(UsageError, match="is a whole script"):
        upgrade(lock(), "train.py", ["keras"])
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


def test_traces_are_equal_only_if_inputs_are(tmp_path: Path) -> None:
    one = write(tmp_path / "a", [op("Relu", 7, [1], [0]), value("loss", 3)])
    assert compare_traces(one, one) == []
    other = write(tmp_path / "b", [op("Relu", 7, [2], [0]), value("loss", 3)])
    assert [each.kind for each in compare_traces(one, other)] == [VALUES]
    shown = write(tmp_path / "c", [op("Relu", 7, [1], [0]), value("loss", 4)])
    assert [each.kind for each in compare_traces(one, shown)] == [VALUES]
    steps: list[Any] = [op("Read", 7, [1], [0]), op("Mean", 8, [1], [2])]
    turned = write(tmp_path / "e", steps[::-1])
    assert compare_traces(write(tmp_path / "f", steps), turned) == []
    shaped = write(tmp_path / "g", [*steps, op("Shape", 8, [1], [2])])
    assert compare_traces(turned, shaped) == []
    longer = write(tmp_path / "d", [op("Relu", 7, [1], [0]), value("loss", 3), op("Add", 8, [1], [1])])
    assert [each.kind for each in compare_traces(one, longer)] == [PROGRAM]


@pytest.mark.parametrize(
    ("kind", "inputs", "verdict"),
    [
        ("MatMul", [1, 2], KERNELS),
        ("ReadVariableOp", [None], VALUES),
        ("AssignAddVariableOp", [None, 1], VALUES),
        ("RandomStandardNormal", [1], VALUES),
    ],
)
def test_a_kernel_is_blamed_only_if_its_inputs_are_known(kind: str, inputs: Any, verdict: str, tmp_path: Path) -> None:
    one, other = (write(tmp_path / f"{bits}", [op(kind, 7, inputs, [bits])]) for bits in (1, 2))
    assert [each.kind for each in compare_traces(one, other)] == [verdict]


def test_values_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    record = op("Relu", 7, [None], [None])
    unread = record._replace(operation=record.operation._replace(outputs=("list[*]",)))
    assert find_unreadable(write(tmp_path / "a", [record])) == []
    found = find_unreadable(write(tmp_path / "b", [record, unread]))
    assert [each.message for each in found] == ["values of 1 traced operations cannot be read"]
