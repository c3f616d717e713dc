"""The parts of a project: findings in its tests, and in functions that nothing calls, come last and say so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envlock.linter.files import find, find_installed
from envlock.linter.lint import lint as lint_paths
from envlock.linter.linter import Settings, lint
from envlock.reports.text import render
from tests.machines import write

DRAW = "import numpy as np\n\n\ndef {}():\n    return np.random.rand()\n"
FILES = {
    "data.py": DRAW.format("draw") + "\n\ndef unused():\n    return np.random.rand(3)\n",
    "old.py": DRAW.format("draw_differently"),
    "train.py": "import numpy as np\nimport data\nnp.save('x', data.draw())\n",
    "tests/helpers.py": DRAW.format("make"),
    "test_data.py": DRAW.format("test_draw"),
}


def find_parts(folder: Path, files: dict[str, str]) -> list[tuple[str, int, str]]:
    """Return file, line and part of each finding in the files of a folder, in their order."""
    write(folder, files)
    names = find(["."])
    findings = lint(names, Settings("2.21.0", installed=find_installed(names)))
    return [(each.where.file, each.where.line, each.where.part) for each in findings]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of its own, the working folder, above which no project is."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_nothing_calls_and_tests_come_last(folder: Path) -> None:
    assert find_parts(folder, FILES) == [
        ("data.py", 5, ""),
        ("test_data.py", 5, "tests"),
        ("tests/helpers.py", 5, "tests"),
        ("data.py", 9, "uncalled"),
        ("old.py", 5, "uncalled"),
    ]


def test_a_set_of_which_nothing_is_known_comes_after_what_is_certain(folder: Path) -> None:
    """Of 42 sets that readers judged in five rounds, none was seen to hold texts, and 10 decided anything."""
    known = {
        "set(open('a').read().split())": "",
        "set(line.strip() for line in open('a'))": "",
        "{'a', 'b', name}": "",
        "set((name, 'a') for name in names)": "",
        "set(object() for _ in range(3))": "unsure",
        "set(names)": "unsure",
        "set(json.load(open('a')))": "",
    }
    code = "import json\nimport numpy as np\n\nfrom given import name, names\n\nnp.save('x', list({}))\n"
    found = {each: find_parts(folder, {"a.py": code.format(each)}) for each in known}
    assert found == {each: [("a.py", 6, part)] for each, part in known.items()}


@pytest.mark.parametrize(
    ("file", "text"), [("setup.py", "import setuptools\n"), ("pyproject.toml", "[project]\nname = 'data'\n")]
)
def test_anybody_may_call_a_function_of_a_package(file: str, text: str, folder: Path) -> None:
    assert ("old.py", 5, "") in find_parts(folder, {**FILES, file: text})


def test_a_file_of_settings_that_cannot_be_read_makes_no_package(folder: Path) -> None:
    os.mkfifo(folder / "pyproject.toml")
    assert ("old.py", 5, "uncalled") in find_parts(folder, FILES)
    (folder / "pyproject.toml").unlink()
    (folder / "pyproject.toml").write_bytes(b"\xff[project]\n")
    assert ("old.py", 5, "uncalled") in find_parts(folder, FILES)


def test_settings_alone_make_no_package(folder: Path) -> None:
    assert ("old.py", 5, "uncalled") in find_parts(folder, {**FILES, "pyproject.toml": "[tool.ruff]\n"})


@pytest.mark.parametrize(
    "main",
    [
        "import numpy as np\nimport old\nnp.save('x', getattr(old, input())())\nprint(old.draw_differently.__name__)\n",
        "import old\nfrom flow import run\nTABLE = {'a': old.draw_differently}\nrun(TABLE)\n",
    ],
)
def test_what_a_program_names_may_be_called(main: str, folder: Path) -> None:
    assert ("old.py", 5, "") in find_parts(folder, {**FILES, "main.py": main})


SAVE = "import numpy as np\n\nnp.save('x', {})\n"


def test_what_a_program_draws_through_a_file_beside_one_that_nothing_starts_comes_first(folder: Path) -> None:
    agent = {"agent.py": DRAW.format("draw"), "other.py": "import agent\n\n\ndef play():\n    return agent.draw()\n"}
    main = {"main.py": f"import agent\n{SAVE.format('agent.draw()')}"}
    assert find_parts(folder, {**agent, **main}) == [("agent.py", 5, "")]


def test_what_keras_calls_of_an_own_dataset_belongs_to_the_training(folder: Path) -> None:
    batches = (
        "import keras\nimport numpy as np\n\n\nclass Batches(keras.utils.Sequence):\n    def __init__(self, rows):\n"
        "        self.rows = rows\n\n    def __getitem__(self, at):\n        return self.rows[at]\n\n"
        "    def on_epoch_end(self):\n        np.random.shuffle(self.rows)\n\n\n"
        "model = keras.Sequential([keras.layers.Dense(1)])\nmodel.compile('sgd', 'mse')\n"
    )
    fit = batches + "model.fit(Batches([1, 2]))\n"
    assert ("train.py", 13, "") in find_parts(folder, {"train.py": fit})
    assert ("train.py", 13, "uncalled") in find_parts(folder, {"train.py": batches + "model.fit([1, 2])\n"})


def test_what_a_library_may_call_calls_its_helpers(folder: Path) -> None:
    text = "import numpy as np\nfrom flow import Flow, run\n\n\n"
    text += "def draw():\n    return np.random.rand()\n\n\nclass Rows(Flow):\n    def get_data(self):\n        yield draw()\n\n\n"
    assert find_parts(folder, {"train.py": f"{text}run(Rows(), get_data=1).get_data\n"}) == [("train.py", 6, "")]


def test_the_folder_that_is_looked_at_may_be_a_package(folder: Path) -> None:
    """Its files import each other by its name, as in google-research/albert."""
    main = "from albert import layers\nfrom albert.data import draw\nimport numpy as np\nnp.random.seed(layers.SEED)\n"
    files = {"data.py": DRAW.format("draw"), "layers.py": "SEED = 7\n", "main.py": f"{main}np.save('x', draw())\n"}
    assert find_parts(folder, files) == []
    (folder / "layers.py").unlink()
    assert find_parts(folder, {}) == [("data.py", 5, "uncalled")]


def test_the_package_that_is_looked_at_may_have_folders(folder: Path) -> None:
    """As google-research/seed_rl has, which no `__init__.py` makes packages; protoc writes some of bgshih/aster."""
    main = "from seed_rl.agents import draws\nfrom seed_rl.common.data import draw\nimport numpy as np\n"
    main += "from seed_rl.protos import data_pb2\n"
    main += "np.random.seed(draws.SEED)\n"
    files = {
        "common/data.py": DRAW.format("draw"),
        "agents/draws.py": "SEED = 7\n",
        "main.py": f"{main}np.save('x', draw())\n",
    }
    assert find_parts(folder, files) == []
    (folder / "agents" / "draws.py").unlink()
    assert find_parts(folder, {}) == [("common/data.py", 5, "uncalled")]


def test_a_library_is_no_package_of_the_folder(folder: Path) -> None:
    main = "from keras import layers, models\nimport numpy as np\nlayers.seed_all()\nnp.save('x', np.random.rand(3))\n"
    files = {
        "layers.py": "import numpy\n\n\ndef seed_all():\n    numpy.random.seed(1)\n",
        "models.py": "",
        "main.py": main,
    }
    assert find_parts(folder, files) == [("main.py", 4, "")]


def test_a_folder_without_programs_has_no_part_that_is_not_called(folder: Path) -> None:
    assert find_parts(folder, {"old.py": FILES["old.py"]}) == [("old.py", 5, "")]


def test_the_text_says_which_part_it_is(folder: Path) -> None:
    write(folder, FILES)
    lines = render(lint_paths(["."], tensorflow="2.21.0")).splitlines()
    place = "ENV205 warning: numpy.random.rand draws from NumPy's global generator, which nothing seeds"
    assert lines[:16] == [
        f"data.py:5:12: {place}",
        "    return np.random.rand()",
        "",
        "in tests:",
        f"test_data.py:5:12: {place}",
        "    return np.random.rand()",
        f"tests/helpers.py:5:12: {place}",
        "    return np.random.rand()",
        "",
        "in code that nothing here runs:",
        f"data.py:9:12: {place}",
        "    return np.random.rand(3)",
        f"old.py:5:12: {place}",
        "    return np.random.rand()",
        "",
        "ENV205: NumPy's random numbers without a seed (5)",
    ]
