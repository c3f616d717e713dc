"""What op determinism does not cure, found by line in the file that calls `activate()`."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from envlock.runtime.uncured_lines import GENERATOR, LOOP, XLA

CALL = "from envlock.runtime.uncured_lines import list_uncured_lines\nfound = list_uncured_lines()\n"
START = CALL + "def later():\n    import random\n    import numpy as np\n    import tensorflow as tf\n"


def _found(folder: Path, code: str) -> list[str]:
    """Return what is said of the lines from number 7 on."""
    file = folder / "train.py"
    file.write_text(START + "".join(f"    {line}\n" for line in code.splitlines()), encoding="utf-8")
    found: list[str] = runpy.run_path(str(file))["found"]
    return found


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("tf.map_fn(lambda x: x + tf.random.normal((2,)), rows)", LOOP),
        ("tf.map_fn(lambda x: tf.nn.dropout(x, 0.5), rows, parallel_iterations=8)", LOOP),
        ("@tf.function(jit_compile=True)\ndef step(x): return tf.random.uniform((2,))", XLA),
        ("rng = np.random.default_rng()", GENERATOR.format("numpy.random.default_rng")),
        ("rng = random.Random()", GENERATOR.format("random.Random")),
    ],
)
def test_a_line_that_is_not_cured_is_named(code: str, said: str, tmp_path: Path) -> None:
    line = 7 + code.count("\n")
    assert _found(tmp_path, code) == [f"train.py:{line}: {said}"]


def test_functions_that_are_passed_by_name_are_looked_into(tmp_path: Path) -> None:
    noise = "def noise(x):\n    return tf.image.random_flip_left_right(x)\n"
    code = noise + "tf.map_fn(noise, rows)\ntf.function(noise, jit_compile=True)"
    assert _found(tmp_path, code) == [f"train.py:8: {XLA}", f"train.py:9: {LOOP}"]


@pytest.mark.parametrize(
    "code",
    [
        "tf.map_fn(lambda x: x + tf.random.normal((2,)), rows, parallel_iterations=1)",
        "tf.map_fn(lambda x: x + tf.random.stateless_normal((2,), x), rows)",
        "tf.map_fn(noise, rows)",
        "@tf.function(jit_compile=False)\ndef step(x): return tf.random.uniform((2,))",
        "@tf.function\ndef step(x): return tf.random.uniform((2,))",
        "rng = np.random.default_rng(7)\nother = random.Random(1)",
        "tf.random.normal((2,))",
    ],
)
def test_what_is_cured_or_seeded_is_left_alone(code: str, tmp_path: Path) -> None:
    assert _found(tmp_path, code) == []


def test_code_without_a_file_says_nothing() -> None:
    names: dict[str, list[str]] = {}
    exec(compile(CALL, "<cell 1>", "exec"), names)
    assert names["found"] == []
