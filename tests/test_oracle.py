"""The oracle: how it counts, that its table is sound, and a sample of it on a real TensorFlow."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.exhaustive import exhaustive

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def oracle() -> ModuleType:
    """Return benchmarks/oracle.py as a module: benchmarks are no package."""
    spec = importlib.util.spec_from_file_location("oracle", ROOT / "benchmarks" / "oracle.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["oracle"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def answer(parts: dict[str, str], match: bool, *refused: str) -> dict[str, Any]:
    said = {"match": match, "refused": list(refused), "provable": False, "error": ""}
    return {"verdicts": {"strict": said, "bits": said}, "parts": parts}


def counted(oracle: ModuleType, perturbed: dict[str, dict[str, Any]], *base: dict[str, str]) -> dict[str, Any]:
    """Return the outcome of each perturbation, by its name, after three unperturbed runs."""
    plain = base or ({"a.x": "1", "a.y": "1"},) * 3
    known = {
        oracle.Change(name).key: answer(parts, True) for name, parts in zip(oracle.UNPERTURBED, plain, strict=True)
    }
    known.update({oracle.Change(name).key: each for name, each in perturbed.items()})
    changes = [oracle.Change(name) for name in (*oracle.UNPERTURBED, *perturbed)]
    return {each.id: each for each in oracle.outcomes(known, changes, "strict")}


def test_bits_and_verdict_make_the_cell(oracle: ModuleType) -> None:
    same, other = {"a.x": "1", "a.y": "1"}, {"a.x": "1", "a.y": "2"}
    found = counted(
        oracle,
        {
            "false green": answer(other, True),
            "caught": answer(other, False, "environ.A"),
            "quiet": answer(same, True),
            "too careful": answer(same, False, "environ.B"),
            "a program failed": answer({"a.failed": "failed: ValueError"}, False, "environ.C"),
            "changed and failed": answer({"a.y": "2", "b.failed": "failed: ValueError"}, True),
            "ended": {"verdicts": {}, "parts": {}, "ended": "exit 1"},
        },
    )
    assert {name: each.cell for name, each in found.items()} == {
        "false green": "changed, matched",
        "caught": "changed, refused",
        "quiet": "unchanged, matched",
        "too careful": "unchanged, refused",
        "a program failed": "could not run, refused",
        "changed and failed": "changed, matched",
        "ended": "could not run, refused",
    }
    text = "\n".join(oracle.rendered({"strict": list(found.values())}))
    assert "| changed, matched | 2 |" in text
    assert "- false green: 1 parts, first a.y" in text
    assert "- too careful: environ.B" in text


def test_what_varies_by_itself_is_no_evidence(oracle: ModuleType) -> None:
    runs = ({"a.x": "1", "a.y": "1"}, {"a.x": "1", "a.y": "2"}, {"a.x": "1", "a.y": "1"})
    found = counted(oracle, {"another": answer({"a.x": "1", "a.y": "9"}, True)}, *runs)
    assert found["another"].cell == "unchanged, matched"


def test_without_three_unperturbed_runs_nothing_is_judged(oracle: ModuleType) -> None:
    known = {oracle.Change("x").key: answer({"a.x": "2"}, True)}
    assert list(oracle.outcomes(known, [oracle.Change("x")], "strict")) == []
    assert oracle.exit_code([]) == 4


def test_a_false_green_is_an_exit_code(oracle: ModuleType) -> None:
    quiet, green = (counted(oracle, {"x": answer({"a.x": "1", "a.y": value}, True)})["x"] for value in ("1", "2"))
    assert (oracle.exit_code([quiet]), oracle.exit_code([quiet, green])) == (0, 1)


def test_every_perturbation_has_a_name_and_a_key_of_its_own(oracle: ModuleType) -> None:
    changes = list(oracle.all_changes())
    assert len({each.id for each in changes}) == len({each.key for each in changes}) == len(changes)
    assert len(changes) >= 400


def test_an_unperturbed_environment_that_does_not_match_is_an_error(oracle: ModuleType) -> None:
    """Else every refusal would count as right."""
    known = {oracle.Change(name).key: answer({"a.x": "1"}, False, "environ.A") for name in oracle.UNPERTURBED}
    with pytest.raises(ValueError, match="the unperturbed environment does not match under strict"):
        list(oracle.outcomes(known, [oracle.Change("x")], "strict"))


@exhaustive
@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.tensorflow
def test_a_sample_on_a_real_tensorflow(oracle: ModuleType, tensorflow_python: Path, tmp_path: Path) -> None:
    """What changes bits here is refused under both policies; what cannot change bits is not."""
    oracle.prepare(tensorflow_python, tmp_path)
    asked = [
        *(oracle.Change(name) for name in oracle.UNPERTURBED),
        oracle.Change("OPENBLAS_CORETYPE=Nehalem", {"OPENBLAS_CORETYPE": "Nehalem"}),
        oracle.Change("PYTHONHASHSEED=1", {"PYTHONHASHSEED": "1"}),
        oracle.Change("time zone", {"TZ": "Asia/Tokyo"}),
    ]
    known = {}
    for number, change in enumerate(asked):
        scratch = tmp_path / str(number)
        scratch.mkdir()
        known[change.key] = oracle.asked(tensorflow_python, tmp_path, change, scratch)
    for policy in oracle.POLICIES:
        found = {each.id: each for each in oracle.outcomes(known, asked, policy)}
        assert {name: each.cell for name, each in found.items()} == {
            "OPENBLAS_CORETYPE=Nehalem": "changed, refused",
            "PYTHONHASHSEED=1": "changed, refused",
            "time zone": "unchanged, matched",
        }, found
        assert "features.order_of_a_set" in found["PYTHONHASHSEED=1"].changed
        assert "linear_algebra.solve" in found["OPENBLAS_CORETYPE=Nehalem"].changed
