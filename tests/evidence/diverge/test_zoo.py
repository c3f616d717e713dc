"""Planted causes, found with a real TensorFlow: the operation, the line, the verdict; and clean programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envlock.reports import render
from tests.evidence.diverge.animals import ANIMALS, KERAS_2, KERAS_3, ZOO, Animal, lines
from tests.evidence.diverge.zookeeper import Keeper, keeper
from tests.exhaustive import exhaustive

RUNS = 3
TRIES = 3
"""Whether a race shows is up to chance; a wrong name is not."""
SOME = ("scatter", "embedding_sgd", "crop", "numpy_function", "keras_dropout", "data_order", "xla_random")


def test_every_program_has_its_line() -> None:
    for animal in (*ANIMALS, *KERAS_2, *KERAS_3):
        assert lines(animal.name) != set(), animal.name
        assert f"def {animal.name}()" in ZOO.read_text()
    assert len(ANIMALS) + len(KERAS_2) >= 12


def _named(keeping: Keeper, animal: Animal) -> bool:
    """Return whether the cause is named; to miss a race is allowed for a time, to name something else never is."""
    for _ in range(TRIES):
        report = keeping.ask(animal.name, runs=RUNS)
        if animal.is_right(report):
            return True
        seen, told = report.attachments, f"{animal.name}\n{render(report)}"
        assert seen["verdict"] in ("identical", "graph"), told
        assert seen["culprit"] is None or seen["culprit"] in animal.types, told
    return False


@exhaustive
@pytest.mark.tensorflow
def test_the_zoo_is_named_and_clean_programs_are_identical(tensorflow_python: Path, tmp_path: Path) -> None:
    animals = [*ANIMALS, *KERAS_3]
    with keeper(tensorflow_python, tmp_path) as keeping:
        programs = ["clean_fit" if number % 5 == 0 else "clean" for number in range(10)]
        clean = [keeping.ask(program, runs=2).attachments["verdict"] for program in programs]
        named = [animal.name for animal in animals if _named(keeping, animal)]
    assert clean == ["identical"] * 10
    assert len(named) >= len(animals) - 1, sorted({animal.name for animal in animals} - set(named))


@pytest.mark.tensorflow
@pytest.mark.older_tensorflows
def test_the_same_with_keras_2(older_tensorflow: Callable[[str], Path], tmp_path: Path) -> None:
    animals = [animal for animal in (*ANIMALS, *KERAS_2) if animal.name in SOME]
    with keeper(older_tensorflow("2.15.1"), tmp_path) as keeping:
        assert keeping.ask("clean_fit", runs=2).attachments["keras"] == "2.15.0"
        assert [animal.name for animal in animals if not _named(keeping, animal)] == []


@pytest.mark.tensorflow
@pytest.mark.older_tensorflows
@pytest.mark.parametrize("version", ["2.16.2", "2.18.1", "2.20.0"])
def test_other_versions_show_their_operations(
    version: str, older_tensorflow: Callable[[str], Path], tmp_path: Path
) -> None:
    with keeper(older_tensorflow(version), tmp_path) as keeping:
        seen = keeping.ask("scatter", runs=RUNS).attachments
        assert (seen["tensorflow"], seen["culprit"]) == (version, "ResourceScatterSub")
        assert keeping.ask("clean", runs=2).attachments["verdict"] == "identical"
