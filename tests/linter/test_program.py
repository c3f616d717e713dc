"""What other files of a program do counts: seeds and switches in the file that imports, or in what that imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.linter.files import parse
from envlock.linter.linter import Settings, check, lint
from tests.machines import write

SHUFFLE = "import tensorflow as tf\n\n\ndef load():\n    return tf.data.Dataset.range(9).shuffle(9)\n"
DEFINED = "import tensorflow as tf\n\n\ndef start():\n    tf.keras.utils.set_random_seed(1)\n"
SEED = f"{DEFINED}\n\nstart()\n"


def rules(folder: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> dict[str, list[str]]:
    """Return the rules found by file."""
    write(folder, files)
    monkeypatch.chdir(folder)
    found: dict[str, list[str]] = {}
    for finding in lint(list(files), Settings("2.21.0")):
        found.setdefault(finding.where.file, []).append(finding.rule)
    return found


def test_a_seed_counts_for_what_is_imported_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeded = {
        "import data\nimport seeding\nprint(1)\n": True,
        "from data import load\nfrom seeding import start\nprint(1)\n": True,
        "import data\n": False,
        "import seeding\n": False,
        "import data\nimport tensorflow as tf\ntf.random.set_seed(1)\n": True,
        "import data\nimport envlock\nenvlock.activate(seed=1)\n": True,
        "import data\nimport other.seeding\n": False,
        "from . import data, seeding\nprint(1)\n": True,
    }
    beside = {"data.py": SHUFFLE, "seeding.py": SEED}
    found = {main: rules(tmp_path, monkeypatch, {"main.py": main, **beside}) for main in seeded}
    assert found == {main: {} if good else {"data.py": ["ENV203"]} for main, good in seeded.items()}


def test_two_programs_that_share_a_file_do_not_seed_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "seeded.py": "import tensorflow as tf\nimport shared\ntf.random.set_seed(1)\n",
        "unseeded.py": f"import shared\n{SHUFFLE}",
        "shared.py": "x = 1\n",
    }
    assert rules(tmp_path, monkeypatch, files) == {"unseeded.py": ["ENV203"]}


def test_what_one_program_seeds_is_not_seeded_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = "import tensorflow as tf\nimport data\ntf.keras.utils.set_random_seed(1)\n"
    train = "import data\nimport tensorflow as tf\ntf.keras.optimizers.SGD().minimize(data.loss, data.weights)\n"
    shared = {"data.py": SHUFFLE, "seeded.py": seed}
    unseeded = {
        "train.py": (train, True),
        "look.py": ("import data\nprint(list(data.load()))\n", True),
        "test_train.py": (f"{train}\n\ndef test_it():\n    pass\n", False),
        "data_train.py": (f"import seeded\n{train}", False),
    }
    found = {name: rules(tmp_path, monkeypatch, {**shared, name: code}) for name, (code, _) in unseeded.items()}
    assert {name: "data.py" in files for name, files in found.items()} == {
        name: expected for name, (_, expected) in unseeded.items()
    }


def test_a_package_whose_module_has_its_name_is_found_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = {"mine/__init__.py": "from mine.mine import load\n", "mine/mine.py": SHUFFLE}
    main = "import tensorflow as tf\nfrom mine import load\ntf.keras.utils.set_random_seed(1)\n"
    assert rules(tmp_path, monkeypatch, {**package, "tasks/main.py": main}) == {}


def test_packages_are_found_by_their_names_and_from_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "scripts/train.py": "import mine\nfrom mine.data import read\nprint(read)\n",
        "src/mine/__init__.py": "from .seeding import start\n",
        "src/mine/seeding.py": SEED,
        "src/mine/data/__init__.py": "from ..data.read import load\n",
        "src/mine/data/read.py": SHUFFLE,
    }
    assert rules(tmp_path, monkeypatch, files) == {}
    (tmp_path / "src/mine/__init__.py").write_text("")
    assert rules(tmp_path, monkeypatch, {**files, "src/mine/__init__.py": ""}) == {"src/mine/data/read.py": ["ENV203"]}


def test_what_a_test_seeds_does_not_count_for_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = f"import data\n{SEED}\n\n{SHUFFLE}\n\ndef test_it():\n    load()\n"
    assert rules(tmp_path, monkeypatch, {"data.py": SHUFFLE, "data_test.py": test}) == {"data.py": ["ENV203"]}


def test_imports_in_a_circle_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a.py": f"import b\n{SEED}", "b.py": f"import a\n{SHUFFLE}"}
    assert rules(tmp_path, monkeypatch, files) == {}


def test_the_locked_environment_can_turn_op_determinism_on(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    code = "import tensorflow as tf\n\ntf.random.set_seed(7)\ntf.keras.optimizers.SGD().minimize(loss, weights)\n"
    file.write_text(code)
    assert [finding.rule for finding in lint([str(file)], Settings("2.21.0"))] == ["ENV108"]
    assert lint([str(file)], Settings("2.21.0", switched_on=True)) == []


@pytest.mark.parametrize(("mains", "is_accused"), [(["tf.random.set_seed(1)\n"], False), ([""], True), ([], True)])
def test_a_test_without_a_seed_does_not_accuse_code_that_its_programs_seed(
    mains: list[str], is_accused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = "import tensorflow as tf\nfrom noise import noise\n{}tf.keras.optimizers.SGD().minimize(noise(tf.zeros([2])), [])\n"
    files = {
        "noise.py": "import tensorflow as tf\n\n\ndef noise(x):\n    return x + tf.random.normal(x.shape)\n",
        "test_noise.py": train.format("def test_noise():\n    "),
    }
    for seed in mains:
        files["main.py"] = train.format(seed)
    found = rules(tmp_path, monkeypatch, files)
    assert ("ENV204" in found.get("noise.py", [])) == is_accused


def test_a_test_that_calls_a_function_does_not_keep_it_from_being_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = (
        "import tensorflow as tf\n\n\ndef dense(x):\n    return tf.layers.dense(x, 1)\n\n\n"
        "def wide(x):\n    return tf.layers.dense(x, 9)\n"
    )
    test = "import layers\n\n\ndef test_dense():\n    assert layers.dense(1) is not None\n"
    files = {"layers.py": layers, "layers_test.py": test, "config.py": "import layers\n\nnetwork = layers.dense\n"}
    write(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    (found,) = lint(list(files), Settings("1.15.5"))
    assert (found.where.line, found.rule, "line 9" in found.message) == (5, "ENV204", True)


MODEL = """
import tensorflow as tf


class Model:
    def __init__(self):
        self.session = None

    def register(self, session):
        self.session = session

    def build(self):
        self.loss = tf.layers.dense(tf.zeros([2, 2]), 1)

    def train(self):
        if not self.session:
            raise ValueError("no session")
        tf.train.GradientDescentOptimizer(0.1).minimize(self.loss)
"""


def test_a_program_before_it_does_not_keep_another_from_its_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = (
        "import tensorflow as tf\nfrom model import Model\n\n\ndef main(_):\n    with tf.Session() as session:\n"
        "        model = Model()\n        model.register(session)\n        model.build()\n        {}\n\n\n"
        "if __name__ == '__main__':\n    tf.app.run()\n"
    )
    files = {"export.py": main.format("print(model)"), "model.py": MODEL, "train.py": main.format("model.train()")}
    write(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    found = [finding.rule for finding in lint(list(files), Settings("1.15.5")) if finding.where.file == "model.py"]
    assert "ENV204" in found


def test_a_file_in_a_package_is_no_package_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "mine/__init__.py": "",
        "mine/torch/__init__.py": "import tensorflow as tf\n\ntf.random.set_seed(1)\n",
        "one/main.py": f"import torch\n{SHUFFLE}",
        "two/main.py": f"import mine.torch\n{SHUFFLE}",
    }
    assert rules(tmp_path, monkeypatch, files) == {"one/main.py": ["ENV203"]}


def test_no_loader_of_a_program_loads_its_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "src/load.py": "import importlib\n\n\ndef load(name):\n    return importlib.import_module(name)\n",
        "src/test_it.py": "import tensorflow as tf\n\ntf.random.set_seed(1)\n\n\ndef test_it():\n    pass\n",
        "src/train.py": f"import load\n{SHUFFLE}",
    }
    assert rules(tmp_path, monkeypatch, files) == {"src/train.py": ["ENV203"]}


def test_what_is_loaded_by_a_name_of_the_run_seeds_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "load.py": "import importlib\n\n\ndef load(name):\n    return importlib.import_module(name)\n",
        "other.py": "import tensorflow as tf\n\ntf.random.set_seed(1)\n",
        "train.py": f"import load\n{SHUFFLE}",
    }
    assert rules(tmp_path, monkeypatch, files) == {"train.py": ["ENV203"]}


def test_what_a_function_seeds_that_nobody_calls_is_not_seeded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = "".join(f"    print({number})\n" for number in range(12))
    code = f"import tensorflow as tf\n\n\ndef {{}}():\n    tf.random.set_seed(1)\n{steps}"
    found = {
        name: rules(tmp_path, monkeypatch, {"model.py": code.format(name), "main.py": f"import model\n{SHUFFLE}"})
        for name in ("eval_model", "fit_model")
    }
    unseeded = {"main.py": ["ENV203"]}
    assert found == {"eval_model": unseeded, "fit_model": unseeded}


def test_a_function_of_another_file_trains_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = "import tensorflow as tf\nimport tools\nfrom tools import net\n\nlayer = tf.keras.layers.Dense(2)\n"
    files = {"tools.py": "net = make()\n\n\ndef fit(image, size):\n    return image\n"}
    found = {
        call: rules(tmp_path, monkeypatch, {"main.py": f"{main}{call}.fit(1, 2)\n", **files})
        for call in ("tools", "net")
    }
    assert found == {"tools": {}, "net": {"main.py": ["ENV202"]}}


def test_a_model_is_known_by_what_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = "import tensorflow as tf\n\n\ndef make():\n    return tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
    main = "import models\n\nnet = models.make()\nnet.fit(1, 2)\n"
    files = {"models.py": models, "forest.py": f"import sklearn\n{main}", "main.py": main}
    trained = ["ENV202"]
    assert rules(tmp_path, monkeypatch, files) == {"main.py": trained, "forest.py": trained}


def test_a_model_that_an_object_of_another_file_holds_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = "import tensorflow as tf\n\n\nclass Net:\n    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
    player = (
        "from net import Net\n\n\nclass Player:\n    def __init__(self):\n        self.net = Net()\n\n"
        "    def learn(self, x, y):\n        self.net.model.fit(x=x, y=y)\n"
    )
    counter = player.replace("from net import Net", "from words import Net")
    files = {"net.py": net, "words.py": "class Net:\n    model = []\n", "counter.py": counter, "player.py": player}
    assert rules(tmp_path, monkeypatch, files) == {"net.py": ["ENV202"], "player.py": ["ENV202"]}


def test_a_function_that_seeds_counts_for_the_programs_that_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeded = {
        "import data\nimport seeding\nseeding.start()\n": True,
        "import data\nfrom seeding import start as begin, start\nrun(start)\n": True,
        "import data\nimport between\nbetween.seeding.start()\n": True,
        "import data\nfrom seeding import start\n": False,
        "import data\n\n\ndef start():\n    pass\n\n\nstart()\n": False,
        f"import data\n{DEFINED}": False,
    }
    beside = {"data.py": SHUFFLE, "seeding.py": DEFINED, "between.py": "import seeding\n"}
    found = {main: rules(tmp_path, monkeypatch, {"a.py": main, **beside}) for main in seeded}
    assert found == {main: {} if good else {"data.py": ["ENV203"]} for main, good in seeded.items()}


def test_what_a_file_seeds_when_it_is_imported_is_seeded_in_every_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second program found it loaded already, and its draws were told as if nothing had seeded."""
    draws = "import numpy as np\nimport common\n\nnp.save('x', np.random.rand())\n"
    common = "from numpy.random import seed\n\nseed(7)\n"
    assert rules(tmp_path, monkeypatch, {"one.py": draws, "two.py": draws, "common.py": common}) == {}


def test_a_training_without_seed_and_switch_is_one_finding() -> None:
    code = "import tensorflow as tf\n\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n{}model.fit(1, 2)\n"
    (both,) = check([parse("x.py", code.format(""))], Settings("2.21.0"))
    assert (both.rule, both.severity) == ("ENV202", "warning")
    assert both.message.endswith(", and nothing turns op determinism on")
    assert "set_random_seed" in both.fix
    assert "enable_op_determinism" in both.fix
    for ignored, left in (("ENV202", "ENV108"), ("ENV108", "ENV202")):
        comment = f"# envlock: ignore[{ignored}] another process does\n"
        (single,) = check([parse("x.py", code.format(comment))], Settings("2.21.0"))
        assert single.rule == left


def test_the_other_places_of_one_cause_are_named() -> None:
    draws = "".join(f"x{at} = np.random.rand()\n" for at in range(3))
    (finding,) = check([parse("x.py", f"import numpy as np\n{draws}np.save('x', x0 + x1 + x2)\n")], Settings("2.21.0"))
    assert finding.message.endswith("NumPy's global generator, which nothing seeds, and 2 more (lines 3, 4)")
    many = draws + "".join(f"y{at} = np.random.rand()\nnp.save('y', y{at})\n" for at in range(60))
    (finding,) = check([parse("x.py", f"import numpy as np\n{many}np.save('x', x0 + x1 + x2)\n")], Settings("2.21.0"))
    assert ", and 62 more below" in finding.message


def test_what_a_constructor_seeds_is_seeded_for_methods_that_another_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "data.py": "import numpy as np\n\n\nclass Data:\n    def __init__(self, seed):\n        np.random.seed(seed)\n\n"
        "    def draw(self, count):\n        return np.random.choice(range(9), count)\n\n\n"
        "class Chairs(Data):\n    def __init__(self, seed):\n        super().__init__(seed)\n",
        "model.py": "import numpy as np\n\n\nclass Model:\n    def __init__(self, data):\n        self.data = data\n\n"
        "    def train(self):\n        np.save('x', self.data.draw(3))\n",
    }
    assert rules(tmp_path, monkeypatch, files) == {}
    files["data.py"] = files["data.py"].replace("np.random.seed(seed)", "self.seed = seed")
    assert rules(tmp_path, monkeypatch, files) == {"data.py": ["ENV205"]}


def test_a_function_that_a_second_program_calls_seeds_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = f"import seeding\nseeding.start()\n{SHUFFLE}load()\n"
    assert rules(tmp_path, monkeypatch, {"seeding.py": DEFINED, "a.py": main, "b.py": main}) == {}


def test_one_example_that_seeds_does_not_seed_a_library_for_those_that_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = "import random\n\n\ndef pick(memory, size):\n    return random.sample(memory, size)\n"
    files = {
        "memory.py": f"import tensorflow as tf\n{library}",
        "seeded.py": "import random\nimport memory\nrandom.seed(1)\n",
        "other.py": "import memory\nimport random\nimport numpy as np\nnp.save('x', random.random())\n",
    }
    assert rules(tmp_path, monkeypatch, files) == {"memory.py": ["ENV206"], "other.py": ["ENV206"]}


def test_each_of_several_projects_has_its_own_file_of_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As programs have it that put a folder beside them on the path."""
    seed = "import numpy as np\n\n\ndef start():\n    np.random.seed(1)\n"
    files = {
        "gan/model/train.py": "import numpy as np\nimport setting\nsetting.start()\nnp.save('x', np.random.rand())\n",
        "gan/utils/setting.py": seed,
        "vae/utils/setting.py": seed.replace("np.random.seed(1)", "pass"),
    }
    assert rules(tmp_path, monkeypatch, files) == {}
    files["vae/model/train.py"] = files["gan/model/train.py"]
    assert rules(tmp_path, monkeypatch, files) == {"vae/model/train.py": ["ENV205"]}
