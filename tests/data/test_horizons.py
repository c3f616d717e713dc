"""How far each table was checked, and that whoever uses one beyond that says so, in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envlock.data import Horizon, read
from envlock.data.determinism import load_recipe_table
from envlock.data.runtime_tables import load_cuda_table
from envlock.diagnosis.checks import diagnose
from envlock.evidence.upgrade.upgrade_verdict import list_switch_changes
from envlock.image.bases.needs import collect_needs
from envlock.image.bases.sources import slim
from envlock.image.plan import plan
from envlock.linter.lint import lint
from envlock.runtime.recipe import warn_beyond_recipes
from envlock.runtime.release import describe_beyond
from tests.data.test_tables import TABLES
from tests.diagnosis.environments import changed, clean
from tests.image.bases.asking import TABLES as IMAGES
from tests.image.bases.asking import facts
from tests.image.plans import BASES, lock, model, without
from tests.trees import put

THROUGH = load_recipe_table().horizon.through
SENTENCE = (
    f"TensorFlow 2.99.0 is newer than the sources checked here ({THROUGH}): "
    f"statements about it are those for {THROUGH}, and what is new in it is unknown"
)


@pytest.mark.parametrize(
    ("version", "through", "is_beyond"),
    [
        ("2.21.0", "2.21.0", False),
        ("2.21.3", "2.21.0", False),  # a minor version stands for its patch releases
        ("2.17.0+nv25.2", "2.21.0", False),
        ("2.22.0rc0", "2.21.0", True),
        ("3.0.0", "2.21.0", True),
        ("2.22.0rc0", "2.22.0rc0", False),
        ("2.22.0-rc0", "2.22.0rc0", False),  # as `tensorflow.__version__` has it
        ("2.22.0", "2.22.0rc0", True),  # a candidate does not stand for its release
        ("2.21.0", "2.22.0rc0", False),
        (None, "2.21.0", False),
        ("of my own", "2.21.0", False),
    ],
)
def test_what_is_beyond_a_horizon(version: str | None, through: str, is_beyond: bool) -> None:
    sentence = describe_beyond("TensorFlow", version, through)
    assert (sentence is not None) == is_beyond
    assert sentence is None or sentence.startswith(f"TensorFlow {version} is newer than")


def ask_doctor(version: str) -> list[str]:
    return [each.message for each in diagnose(changed(clean(), ("tensorflow.version", version)))]


def ask_build(version: str) -> list[str]:
    held = put(without(lock(), "mine"), "facts.tensorflow.version", version)
    return list(plan(model(held), BASES["wheels"], None).notes)


def ask_images(version: str) -> list[str]:
    tensorflow = {"version": version, "cuda_build": False}
    needs = collect_needs(facts(tensorflow=tensorflow, python={"version": "3.11.7"}, packages={}))
    return [note.rstrip(".") for each in slim.list_candidates(needs, IMAGES) for note in each.notes]


def ask_linter(version: str) -> list[str]:
    return lint([Path(__file__)], tensorflow=version).notes


def ask_upgrade(version: str) -> list[str]:
    return list(list_switch_changes("2.21.0", version))


ASK = [ask_doctor, ask_build, ask_images, ask_linter, ask_upgrade, warn_beyond_recipes]


@pytest.mark.parametrize("ask", ASK)
def test_whoever_uses_a_table_beyond_its_horizon_says_so(ask: Callable[[str], list[str]]) -> None:
    horizon = max(each.through for each in horizons().values() if each.of == "TensorFlow")
    assert [text for text in ask("2.99.0") if text.startswith("TensorFlow 2.99.0 is newer")] != []
    assert [text for text in ask(horizon) if "is newer than the sources" in text] == []


def test_it_is_one_sentence() -> None:
    assert [text for text in ask_doctor("2.99.0") if "newer" in text] == [SENTENCE]


def horizons() -> dict[str, Horizon]:
    """Return the horizon of every table that has one."""
    found = {name: read(name).get("horizon") for name in TABLES}
    return {name: Horizon.model_validate(row) for name, row in found.items() if row is not None}


def test_what_others_release_has_a_horizon() -> None:
    assert {name: each.of for name, each in horizons().items()} == {
        "compatibility": "TensorFlow",
        "cuda": "PTX ISA",
        "cuda_images": "CUDA",
        "determinism_recipes": "TensorFlow",
        "determinism_sources": "TensorFlow",
        "determinism_variables": "TensorFlow",
        "environ": "TensorFlow",
        "ngc_tensorflow": "NVIDIA's image",
        "python_images": "Python",
        "standalone_pythons": "Python",
        "tensorflow_builds": "TensorFlow",
    }


def test_a_horizon_is_the_newest_row_of_its_table() -> None:
    """Else a row was added without the horizon, or a horizon moved without a row."""
    assert {
        "PTX ISA": load_cuda_table().ptx_isa[-1].isa,
        "CUDA": max((row.cuda for row in IMAGES.cuda.driver), key=_order),
        "NVIDIA's image": IMAGES.ngc.release[-1].release,
        "TensorFlow": IMAGES.builds.build[-1].tensorflow,
        "standalone": max((row.python for row in IMAGES.standalone.build), key=_order),
        "slim": max((f"{row.python}.{row.last}" for row in IMAGES.python.slim), key=_order),
    } == {
        "PTX ISA": load_cuda_table().horizon.through,
        "CUDA": IMAGES.cuda.horizon.through,
        "NVIDIA's image": IMAGES.ngc.horizon.through,
        "TensorFlow": IMAGES.builds.horizon.through,
        "standalone": IMAGES.standalone.horizon.through,
        "slim": IMAGES.python.horizon.through,
    }


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
