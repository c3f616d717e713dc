"""What a capture keeps of the lockfile that it renews, and how often it asks the environment."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.image.inside import Inside, _make_base
from envlock.lock.document import validate
from envlock.packages import closure
from envlock.packages import installation as installations
from envlock.packages.hash import HashRequest
from envlock.packages.live_environment import LiveEnvironment
from envlock.reports.progress import SILENT
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import UsageError
from envlock.workflows import capture, capture_image
from envlock.workflows.capture_requests import Contents
from tests.evidence.canaries import section
from tests.locks import FACTS, UNAVAILABLE, document


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(capture, "collect_live", lambda python: Snapshot(FACTS, UNAVAILABLE))


def lock(**changes: Any) -> Any:
    return validate(document(**changes), "x.lock")


def test_nothing_that_a_commit_changes_makes_a_lockfile_outdated() -> None:
    old = capture.capture(contents=Contents(project={"commit": "1" * 40, "dirty": False}))
    assert capture.capture(earlier=old, contents=Contents(project={"commit": "2" * 40, "dirty": True})) is old


def test_an_image_that_no_registry_has_is_a_base_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    progress: Any = SimpleNamespace(say=said.append, line=said.append)
    base = _make_base("mine:1", {"Id": "sha256:" + "ab" * 32, "Architecture": "amd64"})
    monkeypatch.setattr(capture_image, "find", lambda engine: None)
    monkeypatch.setattr(capture_image, "look_inside", lambda *_, **__: Inside(Snapshot(FACTS, UNAVAILABLE), base))
    locked = capture_image.capture_image("mine:1", progress=progress)
    assert locked.base_image == base
    assert (base.tag, base.route) == ("ab" * 32, "captured")
    assert said == [
        "capturing inside mine:1",
        "no registry has mine:1: `envlock build` takes it from the engine that has it now",
    ]


def test_a_fact_that_differs_does() -> None:
    old = lock(facts={**FACTS, "cpu": {"flags": ["sse"]}})
    assert capture.capture(earlier=old).facts.cpu != old.facts.cpu


def test_the_canary_stays_while_no_fact_differs() -> None:
    old = lock(numerics=section())
    assert capture.capture("bits", earlier=old).numerics == old.numerics
    other = lock(numerics=section(), facts={**FACTS, "cpu": {"flags": ["sse"]}})
    assert capture.capture(earlier=other).numerics is None


def test_only_some_facts_are_renewed() -> None:
    old = lock(facts={**FACTS, "python": {"version": "3.10.1"}, "cpu": {"flags": ["sse"]}})
    new = capture.capture("bits", earlier=old, contents=Contents(only=["cpu.*"]))
    assert (new.facts.cpu.flags, new.facts.python.version, new.policy.name) == (  # type: ignore[union-attr]
        ["avx", "avx2"],
        "3.10.1",
        "bits",
    )
    with pytest.raises(UsageError, match="needs a valid lockfile to renew"):
        capture.capture(contents=Contents(only=["cpu.*"]))
    with pytest.raises(UsageError, match=r"no fact matches `gpux\.\*`"):
        capture.capture(earlier=old, contents=Contents(only=["gpux.*"]))


def test_an_environment_without_tensorflow_is_refused_unless_the_old_one_has_none() -> None:
    with pytest.raises(UsageError, match="no TensorFlow, JAX or PyTorch in "):
        capture.capture(need_tensorflow=True)
    assert capture.capture(need_tensorflow=True, earlier=lock()).facts.tensorflow is None


def test_the_folders_of_an_environment_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time is a process of its own where the interpreter is another one."""
    asked = []

    def ask(python: Path | None) -> Any:
        asked.append(python)
        return installations.Installation(Path("/nowhere"), ())

    monkeypatch.setattr(installations, "find_installation", ask)
    monkeypatch.setattr(closure, "find_imported_distributions", lambda *_: {"numpy": "train.py"})
    old = lock(
        identity={"packages": {}},
        project={"entry": ["train.py"], "held": {}, "observed": {"numpy": "imported"}},
    )
    monkeypatch.setattr("envlock.packages.hash.describe_all_installed", lambda *_, **__: {})
    monkeypatch.setattr("envlock.packages.prover.prove", lambda *_, **__: old.identity)
    new = capture.capture(earlier=old, contents=Contents(hashes=HashRequest()), python=None, progress=SILENT)
    assert new.project is not None
    assert (new.project.held, asked) == ({"numpy": "train.py"}, [None])


def test_a_live_environment_names_its_interpreter() -> None:
    assert LiveEnvironment(Path("a/python"), Snapshot({}, {})).interpreter == Path("a/python")
    assert LiveEnvironment(None, Snapshot({}, {})).interpreter.name.startswith("python")


@pytest.mark.parametrize(
    ("backend", "unavailable", "packages", "lacks"),
    [
        ("jax", {"jax": {"reason": "no jax is installed", "code": "no-backend"}}, {}, "no jax is installed"),
        ("openvino", {}, {}, "Keras is to compute with openvino, but no openvino is installed"),
        ("openvino", {}, {"openvino": {"version": "2026.1"}}, None),
        ("tensorflow", {"keras.config": {"reason": "unreadable", "code": "permission-denied"}}, {}, None),
    ],
)
def test_a_back_end_of_keras_that_is_not_installed_is_refused(
    backend: str, unavailable: Any, packages: Any, lacks: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lockfile would promise what nobody can run."""
    facts = {**FACTS, "packages": {**FACTS["packages"], **packages}, "keras": {"config": {"backend": backend}}}
    snapshot = Snapshot(facts, unavailable)
    if lacks is None:
        capture._check_backend(snapshot)
        return
    monkeypatch.setattr(capture, "collect_live", lambda python: snapshot)
    with pytest.raises(UsageError, match=lacks) as refused:
        capture.capture()
    assert refused.value.hint == "install it, or choose another back end by KERAS_BACKEND or ~/.keras/keras.json"


@pytest.mark.parametrize("section", ["jax", "torch"])
def test_an_environment_with_jax_or_pytorch_alone_is_locked_and_says_what_is_not_held(
    section: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {**FACTS, section: {"version": "2.13.0", "settings": {}}}
    monkeypatch.setattr(capture, "collect_live", lambda python: Snapshot(facts, UNAVAILABLE))
    said: list[str] = []
    progress: Any = SimpleNamespace(say=said.append, line=said.append)
    static = Contents(static=True)
    assert capture.capture(contents=static, need_tensorflow=True, progress=progress).facts.tensorflow is None
    name = {"jax": "JAX", "torch": "PyTorch"}[section]
    assert said == [
        f"note: of {name}, versions, builds and settings are locked; "
        "the CUDA libraries that it loads are locked only as packages, and no canary computes with it"
    ]
    facts["tensorflow"] = {"version": "2.21.0"}
    said.clear()
    capture.capture(contents=static, need_tensorflow=True, progress=progress)
    assert said == []


def test_a_lockfile_of_nothing_says_that_it_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"python": {"version": "3.11.7"}, "packages": {"pip": {"version": "26.1"}}}
    monkeypatch.setattr(capture, "collect_live", lambda python: Snapshot(facts, {}))
    said: list[str] = []
    capture.capture(progress=SimpleNamespace(say=said.append, line=said.append))
    assert said == ["warning: no package is installed that computes: `envlock verify` cannot decide on this lockfile"]
