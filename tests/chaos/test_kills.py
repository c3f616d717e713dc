"""SIGKILL at any moment of any command that writes: nothing is half-written, and the next run tidies up."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from envlock import cli
from tests.chaos import killer
from tests.chaos.killer import Outcome, attacked
from tests.chaos.victims import VICTIMS
from tests.exhaustive import exhaustive

pytestmark = pytest.mark.processes

KILLS = 300
SEED = 5


def kill(name: str, kills: int, *plant: str) -> Outcome:
    return attacked("killer", name, kills, SEED, *plant)


@exhaustive
@pytest.mark.slow
def test_a_killed_command_leaves_the_old_state_or_the_new() -> None:
    assert kill("init", 12).wrong == []


@pytest.mark.chaos
@pytest.mark.parametrize("name", VICTIMS)
def test_a_command_that_is_killed_often(name: str, record_property: Any) -> None:
    outcome = kill(name, KILLS)
    record_property("attack", f"{name}: {outcome}")
    assert outcome.wrong == []
    assert outcome.killed + outcome.ended == KILLS
    assert outcome.counted > KILLS * 0.45, "the half that is killed at events"
    assert places() & set(outcome.sites) == set(VICTIMS[name].sites)


DOORS = {"write_atomically", "replace_file", "open_draft_file", "open_draft_folder"}
ROOT = Path(cli.__file__).parents[1]


@cache
def places() -> set[str]:
    """Return every function of envlock in which a file is written to stay, as "ROOM/FILE.py:FUNCTION"."""
    found = set()
    for file in sorted(set(ROOT.rglob("*.py")) - {ROOT / name for name in killer.DOORS}):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(map(_writes, ast.walk(node))):
                found.add(f"{file.relative_to(ROOT)}:{node.name}")
    return found


def _writes(node: ast.AST) -> bool:
    """Return whether code opens one of the doors; a folder in the system's temporary one is not there to stay."""
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    is_save = name in ("save", "envlock.save")  # of lockfiles: lock/document.py
    is_door = name.rpartition(".")[2] in DOORS or is_save
    return is_door and [ast.unparse(each) for each in node.args[:1]] != ["None"]


def test_whatever_writes_is_a_victim() -> None:
    """A new command that writes needs a row; tests/test_architecture.py sees to it that it uses one of the doors."""
    assert places() == {site for victim in VICTIMS.values() for site in victim.sites}


@pytest.mark.chaos
@pytest.mark.parametrize(("plant", "found"), [("in two pieces", "half-written"), ("no sweep", "left for ever")])
def test_without_a_defence_the_attack_succeeds(plant: str, found: str) -> None:
    assert found in str(kill("init", 80, plant).wrong)
