"""The parts of a project: findings in its tests, and in functions that nothing calls, come last and say so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envlock.linter.files import find, find_installed
from envlock.linter.linter import Settings, lint
from envlock.reports.text import render
from envlock.workflows.lint import lint as lint_paths
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
        "set(json.load(open('a')))": "unsure",
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


def test_what_only_a_file_draws_that_nothing_starts_comes_last(folder: Path) -> None:
    """The program seeds; the file that does not is imported by nothing."""
    agent = {"agent.py": DRAW.format("draw"), "other.py": "import agent\n\n\ndef play():\n    return agent.draw()\n"}
    seeded = {"main.py": f"import agent\n{SAVE.format('agent.draw()')}".replace("\n\n", "\nnp.random.seed(1)\n")}
    assert find_parts(folder, {**agent, **seeded}) == [("agent.py", 5, "uncalled")]
    (folder / "main.py").write_text(f"import agent\n{SAVE.format('agent.draw()')}")
    assert find_parts(folder, {}) == [("agent.py", 5, "")]


TRAIN = "def augment():\n    return np.random.rand()\n\n\ndef read(training):\n    return augment() if training else 0\n\n\n"


DEAD = (
    "def choose(training):\n    if training:\n        return augment()\n    return 0\n\n\n"
    "def augment_twice():\n    return augment() + augment()\n"
)


@pytest.mark.parametrize(
    ("program", "part"),
    [
        ("np.save('x', read(False))", "uncalled"),
        # A function that has run would have called it, although a text names that function as well.
        ("np.save('read', read(False))", "uncalled"),
        # Looked at in a branch that does not run, and drawn from by a function that nothing calls.
        (f"{DEAD}\n\nnp.save('x', choose(False))", "uncalled"),
        ("np.save('x', read(True))", ""),
        ("np.save('x', read(False))\nrun([augment])", ""),
        ("np.save('x', read(False))\nrun(getattr(here, 'augment'))", ""),
    ],
)
def test_a_function_that_its_file_calls_only_where_nothing_runs_comes_last(
    program: str, part: str, folder: Path
) -> None:
    text = f"import numpy as np; from flow import here, run\n\n\n{TRAIN}{program}\n"
    assert find_parts(folder, {"train.py": text}) == [("train.py", 5, part)]


def test_what_keras_calls_of_an_own_dataset_belongs_to_the_training(folder: Path) -> None:
    batches = (
        "import keras\nimport numpy as np\n\n\nclass Batches(keras.utils.Sequence):\n    def __init__(self, rows):\n"
        "        self.rows = rows\n\n    def __getitem__(self, at):\n        return self.rows[at]\n\n"
        "    def on_epoch_end(self):\n        np.random.shuffle(self.rows)\n\n\nkeras.utils.set_random_seed(1)\n"
        "np.random.seed()\nmodel = keras.Sequential([keras.layers.Dense(1)])\nmodel.compile('sgd', 'mse')\n"
    )
    fit = batches + "model.fit(Batches([1, 2]))\n"
    assert ("train.py", 13, "") in find_parts(folder, {"train.py": fit})
    assert ("train.py", 13, "uncalled") in find_parts(folder, {"train.py": batches + "model.fit([1, 2])\n"})


@pytest.mark.parametrize(
    ("before", "after", "part"),
    [
        ("", "", ""),
        ("np.random.get_state()\nSIZE = SIZES\n", "", "uncalled"),
        ("if len(np.__version__) > 9:\n    print(SIZES)\n", "", ""),  # one path of two
        ("try:\n    SIZE = SIZES\nexcept NameError:\n    SIZE = 3\n", "", ""),
        ("print(np.pi or SIZES)\n", "", ""),
        ("print([SIZES for _ in ()])\n", "", ""),
        ("", "print(SIZES)\n", ""),  # it comes too late
        ("from sizes import *\nprint(SIZES)\n", "", ""),
        ("exec('SIZES = 3')\nprint(SIZES)\n", "", ""),
    ],
)
def test_what_follows_a_name_that_nothing_defines_comes_last(before: str, after: str, part: str, folder: Path) -> None:
    text = f"import numpy as np\n{before}x = np.random.rand(3)\nnp.save('x', x)\n{after}"
    line = text[: text.index("x = np")].count("\n") + 1
    assert find_parts(folder, {"train.py": text}) == [("train.py", line, part)]


def test_a_function_does_not_get_past_a_name_that_nothing_defines(folder: Path) -> None:
    ends = "print(SIZES)\n"
    draw = "import numpy as np\n\n\ndef draw():\n    {}x = np.random.rand(3)\n    np.save('x', x)\n\n\n{}draw()\n"
    files = {
        "draw.py": draw.format(f"{ends}    ", ""),
        "late.py": draw.format("", ends),
        "well.py": draw.format("", ""),
    }
    assert find_parts(folder, files) == [("well.py", 5, ""), ("draw.py", 6, "uncalled"), ("late.py", 5, "uncalled")]


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


def test_a_name_counts_where_a_file_imports_it(folder: Path) -> None:
    """A variable of another file that is called alike calls nothing, nor does a class that names itself."""
    own = "import numpy as np\n\n\nclass Noise:\n    def make(self):\n        super(Noise, self)\n"
    files = {
        "draws.py": DRAW.format("spare") + "\n\ndef load():\n    return 1\n",
        "noise.py": own + "        return np.random.rand(2)\n",
        "other.py": "def show(spare):\n    return spare.make()\n",
        "main.py": "import draws\nimport noise\nimport other\nprint(other.show(draws.load()))\n",
    }
    assert find_parts(folder, files) == [("draws.py", 5, "uncalled"), ("noise.py", 7, "uncalled")]
    users = {"main.py": files["main.py"] + "table = [draws.spare, noise.Noise]\n"}
    assert [part for *_, part in find_parts(folder, users)] == ["", ""]


def test_what_follows_an_import_from_above_the_package_does_not_run(folder: Path) -> None:
    """As in keras-yolo3 of AntonMu/TrainYourOwnYOLO, whose train.py lies beside the package."""
    main = "from yolo3.model import size\nimport numpy as np\nnp.save('x', np.random.rand(size))\n"
    files = {
        "old/train.py": main,
        "old/yolo3/__init__.py": "",
        "old/yolo3/model.py": "from ..yolo3.utils import size\n",
        "old/yolo3/utils.py": "size = 3\n",
        "main.py": "import numpy as np\nnp.save('y', np.random.rand(3))\n",
    }
    assert find_parts(folder, files) == [("main.py", 2, ""), ("old/train.py", 3, "uncalled")]
    (folder / "old" / "yolo3" / "model.py").write_text("from .utils import size\n")
    assert find_parts(folder, {}) == [("main.py", 2, ""), ("old/train.py", 3, "")]


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
    place = "ENV205 warning: numpy.random.rand draws from numpy's global generator, which nothing seeds"
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
