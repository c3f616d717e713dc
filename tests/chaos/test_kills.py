"""SIGKILL at any moment of any command that writes: nothing is half-written, and the next run tidies up."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos import extent
from tests.chaos.killer import VICTIMS, Outcome, attacked

pytestmark = pytest.mark.processes

KILLS = extent(300)
SEED = 5


def kill(name: str, kills: int, *plant: str) -> Outcome:
    return attacked("killer", name, kills, SEED, *plant)


@pytest.mark.slow
def test_a_killed_command_leaves_the_old_state_or_the_new() -> None:
    assert kill("merge", 12).wrong == []


@pytest.mark.chaos
@pytest.mark.parametrize("name", VICTIMS)
def test_a_command_that_is_killed_often(name: str, record_property: Any) -> None:
    outcome = kill(name, KILLS)
    record_property("attack", f"{name}: {outcome}")
    assert outcome.wrong == []
    assert outcome.killed + outcome.ended == KILLS
    assert outcome.killed > KILLS / 5  # `vendor` waits for a server most of its time


@pytest.mark.chaos
@pytest.mark.parametrize(("plant", "found"), [("in two pieces", "half-written"), ("no sweep", "left for ever")])
def test_without_a_defence_the_attack_succeeds(plant: str, found: str) -> None:
    assert found in str(kill("merge", 80, plant).wrong)
