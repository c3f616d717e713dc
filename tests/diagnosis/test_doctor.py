"""The doctor takes a back end of Keras for a choice where the nearest lockfile locks it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envlock.diagnosis.doctor import doctor
from envlock.runtime.lockfile import NAME
from tests.locks import document


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.delenv("ENVLOCK_LOCK", raising=False)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lock(folder: Path, keras: Any) -> Path:
    path = folder / NAME
    path.write_text(json.dumps(document(facts={"keras": keras}, unavailable={})))
    return path


def of_backend(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return how severe the doctor finds the back end, where there is a Keras that reads the variable."""
    from envlock.diagnosis import diagnosed_environment

    monkeypatch.setattr(diagnosed_environment.Environment, "has_keras", lambda self, versions: True)
    monkeypatch.setattr(diagnosed_environment.Environment, "is_read", lambda self, row: True)
    found = doctor().findings
    is_here = "variable-package"  # JAX itself need not be here
    return [each.severity for each in found if str(each.where) == "environ.KERAS_BACKEND" and each.rule != is_here]


def test_a_back_end_that_nobody_locked_is_an_error(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_backend(monkeypatch) == ["error"]


@pytest.mark.parametrize("keras", [None, {}, {"config": None}, {"config": {"backend": "torch"}}])
def test_so_is_another_one_than_the_locked_one(project: Path, monkeypatch: pytest.MonkeyPatch, keras: Any) -> None:
    lock(project, keras)
    assert of_backend(monkeypatch) == ["error"]


def test_a_locked_one_is_a_choice(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock(project, {"config": {"backend": "jax"}})
    assert of_backend(monkeypatch) == ["info"]


def test_the_environment_of_a_lockfile_was_somebodys_choice(project: Path) -> None:
    facts = {
        "keras": {"version": "3.12.0", "config": {"backend": "jax"}},
        "environ": {"KERAS_BACKEND": "jax"},
        "packages": {"jax": {"version": "0.10.2"}},
    }
    path = project / "other.lock"
    path.write_text(json.dumps(document(facts=facts, unavailable={})))
    found = [each for each in doctor(path).findings if "KERAS_BACKEND" in str(each.where)]
    assert [(each.severity, each.message) for each in found] == [("info", "KERAS_BACKEND is jax, as locked")]
