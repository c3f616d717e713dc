"""What `verify` makes of several looks at one environment: one report that keeps what each of them said."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.diagnosis import loaded_cuda
from envlock.lock.document import validate
from envlock.lock.settings import Config
from envlock.packages.live_environment import LiveEnvironment
from envlock.reports.progress import SILENT
from envlock.runtime.collectors import Snapshot
from envlock.runtime.data_contents import read_contents
from envlock.runtime.data_files import survey
from envlock.runtime.extent import Extent
from envlock.runtime.facts import Unavailable
from envlock.runtime.report import ERROR, Finding, Report, sort_findings
from envlock.workflows import gate, verify, verify_further
from tests.locks import document, encode
from tests.machines import write

NAMES = ("h5py", "keras", "mine", "tensorflow-cpu")
FACTS: dict[str, Any] = {
    "python": {"version": "3.11.7"},
    "packages": {name: {"version": "1.0", "origin": None, "wheel_tags": None, "installer": "pip"} for name in NAMES},
    "tensorflow": {"version": "2.21.0"},
    "cpu": {"affinity_count": 8},
    "environ": {"TF_DETERMINISTIC_OPS": None},
}
RULES: dict[str, Any] = {"name": "strict", "overrides": {"cpu.affinity_count": "ignore"}}
LOCK = document(
    facts=FACTS, unavailable={}, policy=RULES, project={"entry": ["train.py"], "held": {"keras": "train.py"}}
)
EXEMPT = "matches under policy strict, with 1 override and 1 package exempt by the lockfile's entry points"


def finding(where: str) -> Finding:
    return Finding(
        "planted", ERROR, where, message=f"{where} differs", why="It was planted.", fix="Remove it.", source=""
    )


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a lockfile with rules of its own, of an environment in which these let two facts differ."""
    here = copy.deepcopy(FACTS)
    here["cpu"]["affinity_count"] = 2
    here["packages"]["h5py"]["version"] = "1.1"
    monkeypatch.setattr(verify, "collect_live_for", lambda lock, python: Snapshot(here, {}))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "envlock.lock"
    path.write_bytes(encode(LOCK))
    (tmp_path / "train.py").write_text("import keras\n", encoding="utf-8")
    return path


def planted(monkeypatch: pytest.MonkeyPatch, **found: list[Finding]) -> None:
    """Let each further look find this, and nothing where it is not named."""
    monkeypatch.setattr(verify_further, "_verify_files", lambda *_: (found.get("files", []), 7))
    monkeypatch.setattr(verify_further, "_find_contradictions", lambda *_: found.get("contradictions", []))
    bits = Report(
        sort_findings(found.get("numerics", [])),
        policy="strict",
        notes=["2 operations compared"],
        extent=Extent(operations=2),
    )
    monkeypatch.setattr(verify_further, "compare_with_lock", lambda *_, **__: SimpleNamespace(report=bits, equal=2))


def test_what_the_lockfile_exempts_is_in_the_headline(lock: Path) -> None:
    assert verify.verify(lock).headline == EXEMPT


@pytest.mark.parametrize("looks", [{"deep": True}, {"numerics": True}, {"deep": True, "numerics": True}])
def test_a_further_look_hides_no_exemption(lock: Path, looks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch)
    report = verify.verify(lock, **looks)
    assert (report.headline, report.overrides, report.exit_code) == (EXEMPT, 1, 0)
    more = {"files": 7} if "deep" in looks else {}
    if "numerics" in looks:
        more["operations"] = 2
    compared = report.compared or {}
    assert compared.pop("facts", 0) > 5
    assert compared == {**more, "unknown": 0}


@pytest.mark.parametrize("look", ["files", "contradictions", "numerics"])
def test_what_a_further_look_finds_decides(lock: Path, look: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, **{look: [finding(look)]})
    assert verify.verify(lock).match
    report = verify.verify(lock, deep=True, numerics=True)
    assert (report.exit_code, [str(each.where) for each in report.of(ERROR)]) == (1, [look])
    assert report.overrides == 1
    assert "2 operations compared" in report.notes


def test_a_look_that_is_not_asked_for_is_not_made(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, files=[finding("files")], numerics=[finding("numerics")])
    deep, numerics = verify.verify(lock, deep=True).of(ERROR), verify.verify(lock, numerics=True).of(ERROR)
    assert [[str(each.where) for each in errors] for errors in (deep, numerics)] == [["files"], ["numerics"]]


def test_without_the_rules_of_the_lockfile_each_difference_counts(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch)
    report = verify.verify(lock, overrides=False, deep=True)
    where = [str(each.where) for each in report.of(ERROR)]
    assert (report.overrides, sorted(where)) == (0, ["cpu.affinity_count", "packages.h5py.version"])


def test_tensorflow_that_does_not_answer_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_cuda, "ask_tensorflow", lambda *_, **__: Unavailable("it crashed", "failed"))
    without = LiveEnvironment(None, Snapshot({"cuda": None}, {}))
    with_cuda = LiveEnvironment(None, Snapshot({"cuda": {"cudart": {}}}, {}))
    assert verify_further._find_contradictions(without, SILENT) == []
    found = verify_further._find_contradictions(with_cuda, SILENT)
    assert [each.severity for each in found] == ["unknown"]


def test_the_gate_says_what_verify_says_and_what_is_exempt(lock: Path) -> None:
    settings = Config(policy="strict", overrides=RULES["overrides"])
    assert gate.check(lock, settings).headline == EXEMPT
    report = gate.check(lock, Config(policy="bits", overrides=RULES["overrides"]))
    assert (report.exit_code, report.overrides) == (1, 1)
    assert list(map(str, report.exempt)) == ["1 package exempt by the lockfile's entry points"]


def test_a_lockfile_that_is_handed_over_is_judged_as_its_file_is(lock: Path) -> None:
    model = validate(LOCK, "x.lock")
    assert verify.verify(model).headline == EXEMPT


def test_the_lockfile_and_the_interpreter_that_are_named_are_looked_at(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    live = Snapshot(FACTS, {})

    def collect(document: dict[str, Any], python: Path | None) -> Snapshot:
        asked.append((document, python))
        return live

    def look(python: Path | None, facts: Snapshot) -> LiveEnvironment:
        asked.append((python, facts))
        return LiveEnvironment(None, facts)

    monkeypatch.setattr(verify, "collect_live_for", collect)
    monkeypatch.setattr(verify, "LiveEnvironment", look)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    interpreter = Path("/venv/bin/python")
    report = verify.verify(lock, python=interpreter)
    assert asked == [(LOCK, interpreter), (interpreter, live)]
    assert (report.match, report.notes) == (True, ["held: 1 of 4 packages (train.py can import them)"])


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"commit": "a" * 40, "dirty": False}, ["project: commit aaaaaaaaaaaa (as locked)"]),
        ({"commit": "a" * 40}, ["project: commit aaaaaaaaaaaa (as locked)"]),
        (
            {"commit": "b" * 40, "dirty": True},
            ["project: commit bbbbbbbbbbbb with changes (commit aaaaaaaaaaaa when locked)"],
        ),
        ({}, []),
    ],
)
def test_the_notes_say_the_commit_of_the_project(
    now: dict[str, Any], said: list[str], lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def find(folder: Path, file: Path) -> dict[str, Any]:
        asked.append((folder, file))
        return now

    monkeypatch.setattr(verify, "find_revision", find)
    held = "held: 1 of 4 packages (train.py can import them)"
    assert (verify.verify(lock).notes, asked) == ([held], [])
    project = {**LOCK["project"], "commit": "a" * 40, "dirty": False}
    lock.write_bytes(encode({**LOCK, "project": project}))
    report = verify.verify(lock)
    assert ([*report.notes, *report.details], asked) == ([held, *said], [(lock.parent, lock)])


def test_data_is_compared_as_deeply_as_was_asked(lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch)
    write(tmp_path, {"data/a.csv": "1"})
    found = survey(str(tmp_path / "data"))
    assert found is not None
    data = {"data": found.to_json(read_contents(str(tmp_path / "data"), found))}
    rules = {**RULES, "overrides": {**RULES["overrides"], "data": "exact"}}
    lock.write_bytes(encode({**LOCK, "data": data, "policy": rules}))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    by_names = "data: data as locked by names and sizes; `envlock verify --deep` also compares contents"
    assert by_names in verify.verify(lock).notes
    assert "data: data as locked" in verify.verify(lock, deep=True).notes
    write(tmp_path, {"data/a.csv": "2"})
    assert verify.verify(lock).match
    report = verify.verify(lock, deep=True)
    assert (report.exit_code, [each.message for each in report.of(ERROR)]) == (
        1,
        ["data at data: 1 file (1 byte) on both sides, with other contents"],
    )


@pytest.mark.parametrize(("overrides", "severity"), [(True, "info"), (False, "warning")])
def test_data_passes_by_a_rule_of_the_lockfile_if_it_applies(lock: Path, overrides: bool, severity: str) -> None:
    data = {"data": {"files": 1, "bytes": 1, "listing": "ab" * 32, "content": None}}
    rules = {**RULES, "overrides": {**RULES["overrides"], "data": "ignore"}}
    lock.write_bytes(encode({**LOCK, "data": data, "policy": rules}))
    found = verify.verify(lock, overrides=overrides).findings
    assert [each.severity for each in found if str(each.where) == "data"] == [severity]


def test_the_report_is_of_the_file_and_the_policy_that_were_named(lock: Path) -> None:
    report = verify.verify(lock, "functional")
    assert (report.subject, report.policy) == ("envlock.lock", "functional")


def test_entry_points_are_beside_the_lockfile_wherever_verify_runs(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    held = "held: 1 of 4 packages (train.py can import them)"
    assert verify.verify(lock).notes == [held]
    (tmp_path / "train.py").unlink()
    missing = (
        f"no entry point `train.py` in {tmp_path}: only packages count that it imported at the time of the capture"
    )
    assert verify.verify(lock).notes == [held, missing]


def test_the_notes_of_the_comparison_stay_before_those_on_the_project(lock: Path) -> None:
    machine = {"facts": {"cpu": {"affinity_count": 64}}, "unavailable": {}}
    lock.write_bytes(encode({**LOCK, "machines": [machine]}))
    assert verify.verify(lock).notes == [
        "machine 1 of 2: unknown processor (8 visible)",
        "held: 1 of 4 packages (train.py can import them)",
    ]
