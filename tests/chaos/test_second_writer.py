"""Two commands write one lockfile at once, and neither loses what the other has changed."""

from __future__ import annotations

import pytest

from tests.chaos.killer import attacked
from tests.chaos.second_writer import WRITERS
from tests.exhaustive import exhaustive

pytestmark = pytest.mark.processes


@exhaustive
@pytest.mark.slow
def test_a_command_keeps_what_another_has_written_meanwhile() -> None:
    outcome = attacked("second_writer", "each", 1, 1)
    assert (outcome.wrong, outcome.ended) == ([], len(WRITERS))


def test_the_commands_that_change_a_lockfile_are_among_them() -> None:
    wanted = {"capture", "capture --only", "capture --add-machine", "ignore", "capture --canary"}
    assert WRITERS.keys() >= wanted | {"build --output", "build --pin", "build"}


@exhaustive
@pytest.mark.slow
def test_without_the_defence_the_change_of_the_other_is_lost() -> None:
    outcome = attacked("second_writer", "each", 1, 1, "keeps nothing")
    assert outcome.wrong == [f"{name}: the other command's change is lost" for name in WRITERS]
