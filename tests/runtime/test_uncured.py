"""What op determinism does not cure, found by line in the file that calls `activate()`."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from envlock.runtime.uncured_lines import GENERATOR, LOOP, THREADS, WORKERS, XLA

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


NOISY = "class Noisy(keras.utils.PyDataset):\n    size = 1\n    def __getitem__(self, i): return np.random.rand(4)\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (f"{NOISY}model.fit(Noisy(workers=4))", WORKERS),
        (f"{NOISY}model.fit(Noisy(), workers=many)", WORKERS),
        ("def work(): v.assign_add(1)\n\nthreading.Thread(target=work).start()", THREADS),
        ("def work(n): self.v.assign(n)\nwith ThreadPoolExecutor(4) as pool:\n    pool.submit(work, 1)", THREADS),
        ("def work(n): optimizer.apply_gradients(n)\npool = ThreadPool(4)\npool.map(work, rows)", THREADS),
    ],
)
def test_what_threads_do_in_any_order_is_named(code: str, said: str, tmp_path: Path) -> None:
    pools = ("concurrent.futures import ThreadPoolExecutor", "multiprocessing.pool import ThreadPool")
    head = "import threading, keras\n" + "".join(f"from {pool}\n" for pool in pools)
    line = 12 if said == WORKERS else 10
    assert _found(tmp_path, head + code) == [f"train.py:{line}: {said}"]


@pytest.mark.parametrize(
    "code",
    [
        f"{NOISY}model.fit(Noisy(workers=1))",
        f"{NOISY}model.fit(Noisy())",
        NOISY.replace("PyDataset", "Other") + "fit(workers=4)",
        NOISY.replace("np.random.rand(4)", "np.random.default_rng(i).random(4)") + "fit(workers=4)",
        NOISY.replace("__getitem__", "other") + "fit(workers=4)",
        "def work():\n    v = tf.Variable(1)\n    v.assign_add(1)\nthreading.Thread(target=work, daemon=True).start()",
        "def work(): v.assign_add(1)\ndataset.map(work)\nthreading.Thread(target=other).start()\nwork()()",
        "def work(): print(1)\npool = ThreadPool(4)\npool.map(work, rows)\npool.close()",
    ],
)
def test_threads_and_workers_that_share_nothing_are_left_alone(code: str, tmp_path: Path) -> None:
    head = "import threading, keras\nfrom multiprocessing.pool import ThreadPool\n"
    assert _found(tmp_path, head + code) == []


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
