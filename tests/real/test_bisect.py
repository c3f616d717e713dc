"""`envlock bisect` over real packages: NumPy's own sum, which two of its versions add in another order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.exhaustive import exhaustive

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import envlock
import numpy as np

envlock.assert_locked("a.lock")  # it would refuse every environment but one

def step():
    random = np.random.default_rng(0)
    numbers = [random.random(100_003).astype("float32") for _ in range(20)]
    return {"sums": np.array([each.sum() for each in numbers]), "count": len(numbers)}
"""
OTHERS = {"numpy": "2.2.6", "h5py": "3.13.0", "gast": "0.6.0"}
"""Of these only NumPy is used; 2.2.6 and 2.4.6 were seen to differ."""


@exhaustive
def test_the_package_that_moved_the_bits_is_found_among_others(
    envlock: Command, tmp_path: Path, tensorflow_python: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    python = ("--python", str(tensorflow_python))
    done = envlock("capture", "-q", "-o", "a.lock", *python)
    assert done.returncode == 0, done.stderr
    lock = json.loads((tmp_path / "a.lock").read_bytes())
    before = lock["facts"]["packages"]["numpy"]["version"]
    for name, version in OTHERS.items():
        lock["facts"]["packages"][name]["version"] = version
    lock["facts"]["environ"]["NCCL_ALGO"] = "Ring"
    (tmp_path / "b.lock").write_text(json.dumps(lock), encoding="utf-8")

    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(Path(__file__).parents[2])}
    done = envlock("bisect", "a.lock", "b.lock", "train.py:step", *python, "-f", "json", environ=environ, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["attachments"]["smallest"] == [{"path": "packages.numpy.version", "a": before, "b": "2.2.6"}]
    assert len(report["attachments"]["causes"]) == len(OTHERS) + 1
    assert report["attachments"]["runs"] <= 8
    # NumPy's sum is no operation of TensorFlow, so that the first recorded value is named.
    assert report["attachments"]["first_operation"]["found"].startswith("sums differs first")


CONVOLUTION = """
import tensorflow as tf

def step():
    image = tf.random.stateless_normal((2, 20, 20, 12), (1, 2))
    kernel = tf.random.stateless_normal((3, 3, 12, 2), (3, 4))
    ones = [1, 1, 1, 1]
    return {"y": tf.raw_ops.DepthwiseConv2dNative(input=image, filter=kernel, strides=ones, padding="SAME")}
"""


@exhaustive
def test_the_first_operation_is_named_with_its_line(envlock: Command, tmp_path: Path, tensorflow_python: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(CONVOLUTION, encoding="utf-8")
    python = ("--python", str(tensorflow_python))
    for name, value in (("a", "1"), ("b", "0")):
        done = envlock("capture", "-q", "-o", f"{name}.lock", *python, environ={"TF_ENABLE_ONEDNN_OPTS": value})
        assert done.returncode == 0, done.stderr
    done = envlock("bisect", "a.lock", "b.lock", "train.py:step", *python, "-f", "json", timeout=400)
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads(done.stdout)["attachments"]
    assert [cause["path"] for cause in found["smallest"]] == ["environ.TF_ENABLE_ONEDNN_OPTS"]
    assert "DepthwiseConv2dNative" in found["first_operation"]["found"]
    assert "train.py" in found["first_operation"]["found"]
