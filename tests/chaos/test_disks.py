"""Disks that are full, read-only or broken at any file operation of any command that writes."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from envlock import cli
from envlock.cli.output import make_disk_error
from tests.chaos.failing import FAULTS
from tests.chaos.killer import Outcome, attacked
from tests.chaos.victims import VICTIMS
from tests.exhaustive import exhaustive

TIMES = 150
SEED = 3


def fail(name: str, faults: int, *plant: str) -> Outcome:
    return attacked("failing", name, faults, SEED, *plant)


@exhaustive
@pytest.mark.slow
@pytest.mark.processes
def test_a_disk_that_fails_leaves_the_old_state_and_one_sentence() -> None:
    assert fail("init", 12).wrong == []


@pytest.mark.chaos
@pytest.mark.processes
@pytest.mark.parametrize("name", VICTIMS)
def test_a_command_under_which_the_disk_fails_often(name: str, record_property: Any) -> None:
    outcome = fail(name, TIMES)
    record_property("attack", f"{name}: {outcome}")
    assert outcome.wrong == []
    # What is optional, such as a note in the cache, is not written, and nothing fails.
    assert max(outcome.killed, outcome.old) > TIMES / 10, "hardly any fault was felt"


@pytest.mark.chaos
@pytest.mark.processes
def test_without_a_defence_the_attack_succeeds() -> None:
    assert "half-written" in str(fail("init", 60, "in two pieces").wrong)


def test_the_faults_are_what_the_program_knows_as_the_disks() -> None:
    assert set(FAULTS) <= set(cli.DISK)


def test_an_error_of_the_disk_names_the_file() -> None:
    error = make_disk_error(OSError(errno.EIO, "Input/output error", "a\x1b.lock"))
    assert (error.message, error.exit_code) == ("cannot use a\\x1b.lock: Input/output error", 6)
    assert error.hint == "check permissions, free space and limits; files are replaced whole or not at all"
    assert (
        make_disk_error(OSError(errno.EMFILE, "Too many open files")).message
        == "cannot use a file: Too many open files"
    )
