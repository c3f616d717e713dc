"""What a function may return, and what of it is a quantity."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from envlock.guest.training.contract import Misuse, Program, flatten, is_model, iterate_steps


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading a script changes the process that it is run in, which is not ours in real life."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))


def script(folder: Path, code: str, name: str = "mine.py") -> str:
    (folder / name).write_text(code, encoding="utf-8")
    return str(folder / name)


def load(path: str, function: str | None, args: list[str], seed: int | None = None) -> Any:
    return Program({"script": path, "module": False, "function": function, "args": args, "seed": seed}).load()


def test_a_function_is_loaded_as_if_its_folder_were_the_scripts(tmp_path: Path) -> None:
    script(tmp_path, "VALUE = 3\n", "beside.py")
    code = "import sys, beside\ndef step():\n    return {'n': (__name__, beside.VALUE, sys.path[0], sys.argv[1:])}\n"
    call = load(script(tmp_path, code), "step", ["--fast"])
    assert call() == {"n": ("mine", 3, str(tmp_path), ["--fast"])}


def test_a_script_with_the_name_of_a_module_takes_nobodys_place(tmp_path: Path) -> None:
    call = load(script(tmp_path, "def step():\n    return {'n': __name__}\n", "json.py"), "step", [])
    assert call() == {"n": "_envlock_script"}
    assert sys.modules["json"].__name__ == "json"
    assert hasattr(sys.modules["json"], "dumps")


def test_a_whole_script_is_main_and_may_exit_with_zero(tmp_path: Path) -> None:
    said = tmp_path / "said"
    code = f"import sys\nwith open({str(said)!r}, 'a') as file: file.write(__name__)\nsys.exit(int(sys.argv[1]))\n"
    call = load(script(tmp_path, code), None, ["0"])
    call()
    call()
    assert said.read_text(encoding="utf-8") == "__main____main__"
    sys.argv[1] = "3"
    with pytest.raises(SystemExit) as caught:
        call()
    assert caught.value.code == 3


def test_the_seed_goes_to_a_function_that_takes_one(tmp_path: Path) -> None:
    path = script(
        tmp_path, "def with_default(seed=7): return seed\ndef without(seed): return seed\ndef none(): return 0\n"
    )
    assert (load(path, "with_default", [], 3)(), load(path, "with_default", [])()) == (3, 7)
    assert (load(path, "without", [], 3)(), load(path, "none", [], 3)()) == (3, 0)
    with pytest.raises(Misuse, match=r"^without needs a seed: add `--seed`$"):
        load(path, "without", [])()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("train", "mine.py has no function train"),
        ("Here.nowhere", "mine.py has no function Here.nowhere"),
        ("number", "number is of type int, not a function"),
        ("wants", "wants needs the arguments x, y, but envlock passes only `seed`"),
    ],
)
def test_functions_that_cannot_be_called_so(function: str, message: str, tmp_path: Path) -> None:
    path = script(tmp_path, "number = 3\nclass Here: pass\ndef wants(x, y, z=1, *rest, seed=0): pass\n")
    with pytest.raises(Misuse) as caught:
        load(path, function, [])
    assert str(caught.value) == message


def test_a_file_that_is_no_python(tmp_path: Path) -> None:
    with pytest.raises(Misuse) as caught:
        load(script(tmp_path, "", "train.sh"), "step", [])
    assert str(caught.value) == f"{tmp_path}/train.sh is not a Python file: its name must end in .py"


def test_steps_come_one_by_one() -> None:
    made = []

    def training() -> Any:
        for n in range(3):
            made.append(n)
            yield {"n": n}

    found = iterate_steps(training())
    assert made == []
    assert next(found) == {"n": 0}
    assert made == [0]
    assert list(found) == [{"n": 1}, {"n": 2}]
    assert list(iterate_steps({"a": 1})) == [{"a": 1}]
    assert list(iterate_steps([{"a": 1}, {"a": 2}])) == [{"a": 1}, {"a": 2}]


class Model:
    """What of a Keras model counts."""

    def fit(self) -> None: ...

    def get_weights(self) -> list[float]:
        return [1.5, 2.5]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (3.5, [{"result": 3.5}]),
        ("loss", [{"result": "loss"}]),
        ([0.5, 0.25], [{"result": [0.5, 0.25]}]),
        ([], [{"result": []}]),
        (iter([0.5, {"a": 1}]), [{"result": 0.5}, {"a": 1}]),
        (Model(), [{"weights": [1.5, 2.5]}]),
        (SimpleNamespace(history={"loss": [0.5]}), [{"loss": [0.5]}]),
    ],
)
def test_what_a_function_may_return(result: Any, expected: list[dict[str, Any]]) -> None:
    assert list(iterate_steps(result)) == expected


def test_an_array_is_one_value() -> None:
    array = np.zeros(3)
    assert [list(step.values()) for step in iterate_steps(array)] == [[array]]


def test_a_model_is_known_by_what_it_can() -> None:
    assert [is_model((Model(), 1)), is_model((Model(), 1, {})), is_model([Model(), 1])] == [True] * 3
    assert [is_model((Model(),)), is_model(({}, {})), is_model({"a": Model()}), is_model(Model())] == [False] * 4


class Slices:
    """As TensorFlow's IndexedSlices: a gradient of some rows."""

    values = "V"
    indices = "I"


def test_quantities_are_flat_and_none_is_nothing() -> None:
    array = np.zeros(2)
    found = flatten({"loss": 1.0, "shape": [1, 2], "w": [array, None, {"b": array}], "g": Slices(), "none": None})
    assert found == {
        "loss": 1.0,
        "shape": [1, 2],
        "w/0": array,
        "w/2/b": array,
        "g/indices": "I",
        "g/values": "V",
    }
