"""Names: what an expression stands for, whatever it is called in the file, and nothing that only looks like it."""

from __future__ import annotations

import ast

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
        "from tensorflow.config.experimental import *\nshow(enable_op_determinism)",
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
