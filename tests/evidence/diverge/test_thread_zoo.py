"""Threads, replicas, queues and undefined outputs, with a real TensorFlow: verdict, operation, line and advice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envlock.reports import render
from tests.evidence.diverge.animals import CLEAN_IN_THREADS, IN_THREADS, THREAD_ZOO, lines
from tests.evidence.diverge.zookeeper import keeper
from tests.exhaustive import exhaustive

RUNS = 4


@exhaustive
@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "version", ["newest", *(pytest.param(each, marks=pytest.mark.older_tensorflows) for each in ("2.15.1", "2.18.1"))]
)
def test_causes_in_threads_are_named_and_clean_programs_are_identical(
    version: str, request: pytest.FixtureRequest, older_tensorflow: Callable[[str], Path], tmp_path: Path
) -> None:
    python = request.getfixturevalue("tensorflow_python") if version == "newest" else older_tensorflow(version)
    with keeper(python, tmp_path) as keeping:
        said = {each.name: keeping.ask(each.name, runs=RUNS, zoo=THREAD_ZOO) for each in IN_THREADS}
        clean = {name: keeping.ask(name, runs=RUNS, zoo=THREAD_ZOO) for name in CLEAN_IN_THREADS}
    assert [render(said[each.name]) for each in IN_THREADS if not each.is_right(said[each.name])] == []
    assert [render(each) for each in clean.values() if not each.match] == []
    assert said["hogwild"].findings[0].message.startswith("3 threads used variable weights in ")
    for name in ("queue_loader", "late_seed"):  # they call it
        assert "call tf.keras.utils.set_random_seed" not in said[name].findings[0].fix
    assert "the order in which threads finished" in said["queue_loader"].findings[0].why
    assert said["late_seed"].findings[0].fix.startswith("the program calls `set_random_seed`, and draws before")


def test_every_program_has_its_line() -> None:
    assert [each.name for each in IN_THREADS if not lines(each.name, THREAD_ZOO)] == []
