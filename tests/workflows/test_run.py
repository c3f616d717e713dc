"""Which variables a command gets: the lock's, those of a recipe, and those that say what is ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envlock.runtime.errors import UsageError
from envlock.runtime.own_variables import ADDED
from envlock.workflows import run

BIN = Path("/environment/bin")


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("TF_", "PYTHONHASHSEED", "ENVLOCK_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", "/usr/bin")


def variables(facts: dict[str, object], version: str | None = "2.21.0", **needs: object) -> dict[str, str]:
    """Return the variables for a command, without those that are as in this process."""
    wanted = {"deterministic": False, "seed": None, **needs}
    made = run._make_variables(facts, run._Needs(BIN, version, **wanted))  # type: ignore[arg-type]
    return {name: value for name, value in made.environ.items() if os.environ.get(name) != value}


def test_the_programs_of_the_environment_come_first() -> None:
    assert variables({})["PATH"] == f"{BIN}{os.pathsep}/usr/bin"


def test_a_locked_variable_is_set_and_is_not_called_ours() -> None:
    made = variables({"environ": {"TF_ENABLE_ONEDNN_OPTS": "0"}})
    assert made["TF_ENABLE_ONEDNN_OPTS"] == "0"
    assert "TF_ENABLE_ONEDNN_OPTS" not in made[ADDED]


def test_the_hash_seed_is_fixed_unless_one_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert variables({})["PYTHONHASHSEED"] == "0"
    assert variables({"environ": {"PYTHONHASHSEED": "7"}})["PYTHONHASHSEED"] == "7"
    monkeypatch.setenv("PYTHONHASHSEED", "5")
    assert "PYTHONHASHSEED" not in variables({})


def test_the_seed_is_no_addition_to_the_environment() -> None:
    made = variables({}, seed=42)
    assert made["ENVLOCK_SEED"] == "42"
    assert "ENVLOCK_SEED" not in made[ADDED]


def test_only_the_switch_asks_for_what_slows_a_program_down() -> None:
    always, switched = variables({}), variables({}, deterministic=True)
    assert set(always) < set(switched) or always == switched
    assert variables({}, None, deterministic=True) == variables({}, None)


def test_the_python_of_another_environment_is_refused(tmp_path: Path) -> None:
    for name in ("mine", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "python").write_text("#!/bin/sh\n")
        (tmp_path / name / "python").chmod(0o755)
    path = str(tmp_path / "other")
    with pytest.raises(UsageError, match="is not the Python of the verified environment"):
        run._find_command("python", path, tmp_path / "mine")
    assert run._find_command("python", path, tmp_path / "other") == f"{path}/python"
