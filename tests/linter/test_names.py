"""Names: what an expression stands for, whatever it is called in the file, and nothing that only looks like it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from envlock.linter.files import parse
from envlock.linter.names import canonical

SWITCH = "tf.config.experimental.enable_op_determinism"
SHOW = f"show({SWITCH})"


def names(code: str) -> list[str | None]:
    """Return what each argument of `show(...)` in the code stands for."""
    module = parse("x.py", code)
    calls = [call for call in module.list_nodes(ast.Call) if getattr(call.func, "id", "") == "show"]
    return [module.resolve_name(argument) for call in calls for argument in call.args]


def test_one_thing_has_one_name() -> None:
    known_as = {
        "tensorflow.compat.v1.keras.layers.Dense": "keras.layers.Dense",
        "tensorflow.compat.v1": "tf",
        "tensorflow.python.keras.layers.Dense": "keras.layers.Dense",
        "tensorflow.keras.layers.experimental.preprocessing.RandomFlip": "keras.layers.RandomFlip",
        "tf_keras.Model": "keras.Model",
        "keras.src.layers.Dense": "keras.layers.Dense",
        "tensorflow_datasets.load": "tensorflow_datasets.load",
        "kerastuner.x": "kerastuner.x",
        "tensorflow.python.ops.math_ops.add_n": "tf.add_n",
        "tensorflow.python.client.session": "tf.python.client.session",
    }
    assert {written: canonical(written) for written in known_as} == known_as


def test_it_is_known_by_whatever_name_it_is_imported() -> None:
    codes = [
        "import tensorflow as tf\n" + SHOW,
        "import tensorflow\nshow(tensorflow.config.experimental.enable_op_determinism)",
        "import tensorflow.compat.v2 as tf\n" + SHOW,
        "from tensorflow import config as c\nshow(c.experimental.enable_op_determinism)",
        "import tensorflow as tf\ne = tf.config.experimental\nf = e.enable_op_determinism\nshow(f)",
        "try:\n  import tensorflow as tf\nexcept ImportError:\n  tf = None\n" + SHOW,
        "def f():\n  global tf\n  import tensorflow as tf\n" + SHOW,
        "import tensorflow as tf\nclass A:\n  def f(self):\n    return [" + SHOW + " for _ in x]",
    ]
    assert {code: names(code) for code in codes} == {code: [SWITCH] for code in codes}


def test_what_is_called_alike_is_not_taken_for_it() -> None:
    codes = [
        SHOW,
        "from . import tensorflow as tf\n" + SHOW,
        "import tensorflow as tf\ndef f(tf):\n  " + SHOW,
        "import tensorflow as tf\nimport other as tf\n" + SHOW,
        "import tensorflow as tf\nfor tf in x:\n  " + SHOW,
        "import tensorflow as tf\nshow(lambda tf: tf.x, other.config.experimental.enable_op_determinism)",
        "import tensorflow as tf\n[" + SHOW + " for tf in x]",
        "a = b\nb = a\nshow(a.x, b)",
        "match x:\n  case {'a': tf}:\n    " + SHOW,
    ]
    assert [code for code in codes if SWITCH in names(code)] == []


ROWS = {
    "python_draws": "dice.roll",
    "random_operations": "tf.random.pink",
    "listings": "shelf.list_all",
    "arrivals": "spring.as_they_end",
    "own_generators": {"tuner.search": "seed"},
}
WITH_ROWS = """
import json, sys
from envlock.data.lint_tables import load_lint_names
for group, name in json.loads(sys.argv[1]).items():
    if isinstance(name, dict):
        load_lint_names()[group].values.update(name)
    else:
        load_lint_names()[group].names.append(name)
import envlock
for finding in envlock.lint([sys.argv[2]]).findings:
    print(finding.rule, finding.where.line, finding.message.partition(" ")[0])
"""
USES = """\
import dice, shelf, spring, tuner
import tensorflow as tf
tf.config.experimental.enable_op_determinism()
first = dice.roll()
noise = tf.random.pink(3)
files = shelf.list_all("data")[:10]
study = tuner.search(files)
results = [done for done in spring.as_they_end(files)]
model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
model.compile("sgd", "mse")
model.fit(first, noise)
"""


@pytest.mark.processes
def test_a_new_library_function_is_a_row(tmp_path: Path) -> None:
    """Five functions of five kinds that no library has: with a row each is found, and no code knows them."""
    (tmp_path / "train.py").write_text(USES, encoding="utf-8")
    found = {}
    for rows in ({}, ROWS):
        words = [sys.executable, "-c", WITH_ROWS, json.dumps(rows), str(tmp_path / "train.py")]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        found[len(rows)] = [line for line in done.stdout.splitlines() if line.split()[1] in "45678"]
    assert found == {
        0: [],
        5: [
            "ENV206 4 dice.roll",
            "ENV204 5 tf.random.pink",
            "ENV303 6 shelf.list_all",
            "ENV205 7 tuner.search",
            "ENV307 8 spring.as_they_end",
        ],
    }
