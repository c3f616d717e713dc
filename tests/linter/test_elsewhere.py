"""What depends on other files: one that lists data for a program, and names that a package passes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.linter.linter import Settings, lint
from envlock.linter.places import Places
from tests.linter.test_program import rules
from tests.machines import write

LIST = "import glob\n\n\ndef paths():\n    return glob.glob('*.wav')\n"
TRAIN = "import tensorflow as tf\n"


def test_a_listing_without_tensorflow_counts_for_a_program_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mains = {f"import a\n{TRAIN}print(a)\n": "", TRAIN: "unsure", "import a\nimport json\nprint(a)\n": "unsure"}
    found = {}
    for main in mains:
        write(tmp_path, {"a.py": LIST, "train.py": main})
        (finding,) = lint(["a.py", "train.py"], Settings("2.21.0"))
        found[main] = finding.where.part
    assert found == mains


AUGMENT = """
import tensorflow as tf


def flip(x):
    return tf.image.random_flip_left_right(x)


def twice(x):
    return flip(flip(x))


def still(x):
    return 2 * x


class Jitter:
    def __call__(self, x):
        return x + tf.random.uniform([])

    def scale(self, x):
        return x * tf.random.normal([])
"""
MAP = "import tensorflow as tf\n{}\ntf.random.set_seed(1)\ntf.data.Dataset.range(9).map({}, num_parallel_calls=2)\n"


def test_what_a_function_of_another_file_draws_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped = {
        ("from .augment import flip", "flip"): True,
        ("from mine import augment", "augment.twice"): True,
        ("from . import augment", "lambda x: augment.flip(x)"): True,
        ("from mine.augment import Jitter", "Jitter()"): True,
        ("from mine.augment import *\njitter = Jitter()", "jitter.scale"): True,
        ("from mine.chain import through", "through"): True,
        ("from mine import chain\nfrom .augment import flip", "flip"): True,
        ("from mine.augment import (\n    still,\n    twice,\n)", "twice"): True,
        ("from .augment import still", "still"): False,
    }
    chain = "from .augment import twice\n\n\ndef through(x):\n    return twice(x)\n"
    files = {"mine/__init__.py": "", "mine/augment.py": AUGMENT, "mine/chain.py": chain}
    found = {
        key: rules(tmp_path, monkeypatch, {"mine/a.py": MAP.format(*key), **files}).get("mine/a.py", []) == ["ENV301"]
        for key in mapped
    }
    assert found == mapped


def test_a_module_that_a_package_passes_on_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shuffle = "\nd = {}.data.Dataset.range(9).shuffle(9)\n"
    codes = {
        "from mine import tf" + shuffle.format("tf"): True,
        "from mine import tf as flow" + shuffle.format("flow"): True,
        "from . import tf" + shuffle.format("tf"): True,
        "import mine" + shuffle.format("mine.tf"): True,
        "from mine import *" + shuffle.format("tf"): True,
        "from mine.compat import tf" + shuffle.format("tf"): True,
        "from mine import compat" + shuffle.format("compat.tf"): True,
        "from mine.compat import of_another as tf" + "\nd = tf.image.random_crop(1, 2)\n": False,
    }
    files = {
        "mine/__init__.py": "from .compat import tf\n",
        "mine/compat.py": "import tensorflow.compat.v2 as tf\nimport other as of_another\n",
    }
    found = {code: rules(tmp_path, monkeypatch, {**files, "mine/a.py": code}) for code in codes}
    assert found == {code: {"mine/a.py": ["ENV203"]} if known else {} for code, known in codes.items()}


def test_a_model_that_the_project_makes_is_trained_without_a_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = "import tensorflow as tf\n\n\ndef net():\n    return tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
    switch = "import tensorflow as tf\ntf.config.experimental.enable_op_determinism()\n"
    trained = "from mine.models import net\nfrom mine.start import *\nmodel = net()\nmodel.fit(load(), epochs=2)\n"
    files = {"mine/__init__.py": "", "mine/models.py": model, "mine/start.py": switch}
    assert rules(tmp_path, monkeypatch, {**files, "a.py": trained}) == {"a.py": ["ENV202"]}
    of_another = rules(tmp_path, monkeypatch, {**files, "a.py": trained.replace("mine.models", "sklearn.x")})
    assert "a.py" not in of_another


def test_a_file_named_as_a_library_hides_it_only_outside_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = "import numpy as np\n\nenv = gym.make('CartPole-v1')\nnp.save('state', env.reset())\n"
    own = {"gym.py": "def make(name):\n    return name\n"}
    package = {"mine/__init__.py": "", "mine/gym.py": own["gym.py"]}
    found = {
        "in a package": rules(tmp_path, monkeypatch, {**package, "mine/a.py": f"import gym\n{made}"}),
        "in the package's own": rules(tmp_path, monkeypatch, {**package, "mine/gym.py": f"import gym\n{made}"}),
        "the package's": rules(tmp_path, monkeypatch, {**package, "mine/a.py": f"from . import gym\n{made}"}),
    }
    assert found == {
        "in a package": {"mine/a.py": ["ENV209"]},
        "in the package's own": {"mine/gym.py": ["ENV209"]},
        "the package's": {},
    }
    # No file of the package is imported by that, either.
    assert Places(["mine/__init__.py", "mine/gym.py"]).find_files(("gym",), ("mine",)) == []
    assert Places(["gym.py"]).find_files(("gym",), ()) == [0]


@pytest.mark.parametrize(("again", "rule"), [("tf = tf.compat.v1\n", []), ("", ["ENV109"])])
def test_a_star_may_give_another_tensorflow(
    again: str, rule: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "mine/__init__.py": "",
        "mine/ops.py": f"import tensorflow as tf\n{again}\n\ndef double(x):\n    return 2 * x\n",
        "mine/net.py": "import tensorflow as tf\nfrom .ops import *\n\nx = double(tf.placeholder(tf.float32))\n",
    }
    found = rules(tmp_path, monkeypatch, files)
    assert found.get("mine/net.py", []) == rule
