"""The canary of a program's own operations, with a real TensorFlow: what it covers, that it is the same everywhere."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pytest

from envlock.evidence.canary.canary_run import Settings
from envlock.evidence.canary.program_operations import replay
from tests.conftest import activate
from tests.exhaustive import exhaustive

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import numpy as np
import tensorflow as tf

def step():
    rng = np.random.default_rng(0)
    x = tf.constant(rng.standard_normal((8, 28, 28, 3)), tf.float32)
    y = tf.constant(rng.integers(0, 10, 8), tf.int32)
    ids = tf.constant(rng.integers(0, 100, (8, 5)), tf.int64)
    k = tf.Variable(tf.random.stateless_normal((3, 3, 3, 16), (1, 2)))
    emb = tf.random.stateless_normal((100, 16), (3, 2))
    w = tf.Variable(tf.random.stateless_normal((32, 10), (1, 2)))

    @tf.function
    def train(x, ids, y):
        with tf.GradientTape() as tape:
            h = tf.nn.dropout(tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(x, k, 1, "SAME")), [1, 2]), 0.5)
            e = tf.reduce_mean(tf.gather(emb, ids), 1)
            logits = tf.matmul(tf.concat([h, e], 1), w)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
            loss += tf.reduce_sum(tf.math.unsorted_segment_sum(logits, y, 10) ** 2)
        for variable, gradient in zip([k, w], tape.gradient(loss, [k, w])):
            variable.assign_sub(0.1 * gradient)
        return loss

    for _ in range(3):
        yield {"loss": train(x, ids, y)}
"""


@exhaustive
def test_the_canary_covers_what_a_program_runs_and_names_it_where_bits_differ(
    tensorflow_python: Path, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    envlock = activate(tensorflow_python, tmp_path)
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path), "CUDA_VISIBLE_DEVICES": "-1"}
    environ["TF_ENABLE_ONEDNN_OPTS"] = "1"  # as on a processor with AVX-512; elsewhere off by default
    done = envlock("capture", "--canary", "--for", "train.py:step", "-p", "bits", environ=environ, timeout=500)
    assert done.returncode == 0, done.stderr
    lock = json.loads((tmp_path / "envlock.lock").read_bytes())
    program = lock["numerics"]["program"]
    covered = program["targets"]["train.py:step"]
    assert lock["project"]["entry"] == ["train.py"]
    assert {reason: sorted(kinds) for reason, kinds in covered["left_out"].items()} == {
        "random": ["RandomUniform"],
        "state": ["AssignSubVariableOp"],
    }
    kinds = {each["type"] for each in program["operations"].values()}
    assert kinds >= {"Conv2D", "Conv2DBackpropFilter", "MatMul", "GatherV2", "UnsortedSegmentSum", "Mean", "Sum"}
    sentence = f"covers {covered['covered']} of {covered['distinct']} distinct operations of train.py:step"
    assert f"{sentence}, with all seeds set to 7 by envlock" in done.stderr
    assert "(runs 2 steps eagerly, at most 60 s, with all seeds set to 7 by envlock)" in done.stderr

    again = envlock("verify", "--numerics", environ=environ, timeout=300)
    assert (again.returncode, sentence in again.stdout) == (0, True), again.stdout + again.stderr
    other = envlock("canary", environ={**environ, "TF_ENABLE_ONEDNN_OPTS": "0"}, timeout=300)
    assert other.returncode == 1
    named = "numerics.program.conv2dbackpropfilter_1: Conv2DBackpropFilter of float32[8,28,28,3], int32[4], float32"
    assert named in other.stdout


def operation(kind: str, inputs: list[dict[str, Any]], **attributes: Any) -> dict[str, Any]:
    return {"type": kind, "inputs": inputs, "attributes": attributes}


@exhaustive
def test_what_a_hostile_lock_asks_for_is_not_run(tensorflow_python: Path) -> None:
    """As if the format had let it pass: the child looks again, and asks TensorFlow for sizes before it computes."""
    huge = {"dtype": "int32", "shape": [2], "values": [2**20, 2**20]}
    image, size = (
        {"dtype": "float32", "shape": [1, 60_000, 1, 1]},
        {"dtype": "int32", "shape": [2], "values": [60_000, 1]},
    )
    pair = {"dtype": "float32", "shape": [2], "values": [1e-6, 1.0]}
    number, row = {"dtype": "float32", "shape": []}, {"dtype": "float32", "shape": [4]}
    asked = {
        "read": operation("ReadFile", [{"dtype": "string", "shape": []}]),
        "python": operation("PyFuncStateless", [row], token="x", Tout=["float32"]),
        "tile": operation("BroadcastTo", [number, huge]),
        "range": operation("LinSpace", [number, number, {"dtype": "int64", "shape": [], "values": [2**40]}]),
        "large": operation("Neg", [{"dtype": "float32", "shape": [2**31, 2**10]}]),
        "attribute": operation("Neg", [row], shared_name="x"),
        "outputs": operation("Unpack", [row], num=2**31 - 1, axis=0),
        "table": operation("ScaleAndTranslate", [image, size, pair, pair], kernel_type="lanczos3", antialias=True),
        "sound": operation("Neg", [row]),
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    found = replay(asked, tensorflow_python, Settings(), gpus=False, seconds=60, environ=None)
    assert max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) < 6 << 20  # KB: `outputs` took 5.5 GB
    assert {**found.left_out, **dict.fromkeys(found.results, "computed")} == {
        "read": "unlisted",
        "python": "unlisted",
        "tile": "large",
        "range": "large",
        "large": "large",
        "attribute": "unlisted",
        "outputs": "large",
        "table": "failed",
        "sound": "computed",
    }
