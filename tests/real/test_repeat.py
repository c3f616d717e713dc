"""`envlock repeat` with a real TensorFlow: the seeds of this project, as they stand under examples/."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envlock.evidence.results import Results, read
from tests.conftest import Command
from tests.exhaustive import exhaustive

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}
OLDER = ["2.15.1", "2.18.1"]

FITS = """
import numpy as np
import tensorflow as tf

def made(compiled=False, sparse=False):
    tf.keras.utils.set_random_seed(3)
    layers = tf.keras.layers
    first = [layers.Embedding(30, 4), layers.Flatten()] if sparse else [layers.Dense(8), layers.BatchNormalization()]
    model = tf.keras.Sequential([layers.Input((6,)), *first, layers.Dropout(0.3), layers.Dense(1)])
    model.compile("adam", "mse", jit_compile=compiled)
    x = np.arange(6 * 50).reshape(50, 6) % 30
    y = x.sum(axis=1, keepdims=True) / 100
    return model, x.astype("int32" if sparse else "float32"), y.astype("float32")

def dense():
    model, x, y = made()
    return model, (x, y), {"batch_size": 16, "epochs": 2}

def compiled():
    model, x, y = made(compiled=True)
    return model, (x, y), {"batch_size": 25, "epochs": 2}  # XLA wants shapes: 50 is a multiple of it

def embedding():
    model, x, y = made(sparse=True)
    return model, tf.data.Dataset.from_tensor_slices((x, y)).batch(16)

def bare():
    found = {}
    for name in ("dense", "compiled", "embedding"):
        model, data, *rest = globals()[name]()
        if isinstance(data, tuple):
            model.fit(*data, verbose=0, **rest[0])
        else:
            model.fit(data, verbose=0)
        found[name] = model.get_weights()
    return found
"""


class Repeat:
    """The command, for an interpreter."""

    def __init__(self, envlock: Command, python: Path) -> None:
        self.command = Command([*envlock.argv, "repeat", "--python", str(python)], envlock.folder)

    def __call__(self, what: str, *args: str, environ: dict[str, str] | None = None) -> dict[str, Any]:
        """Return what a report about a function of an example holds; see `report`."""
        script = str(EXAMPLES / what) if (EXAMPLES / what.partition(":")[0]).exists() else what
        return self.report(script, *args, environ=environ)

    def report(self, *args: str, environ: dict[str, str] | None = None) -> dict[str, Any]:
        """Return the attachments of the report, and whether all runs gave the same as `match`."""
        done = self.command(*args, "-f", "json", environ={**QUIET, **(environ or {})}, timeout=240)
        assert done.returncode in (0, 1), done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        assert found["match"] is (done.returncode == 0)
        return {"match": found["match"], **found["attachments"]}

    def saved(self, what: str, folder: str) -> Results:
        """Return the results of one run."""
        self.report(what, "-n", "1", "--save", folder)
        return read(self.command.folder / folder)


Versions = Callable[[str], Repeat]


@pytest.fixture
def repeat(envlock: Command, tensorflow_python: Path) -> Repeat:
    return Repeat(envlock, tensorflow_python)


@pytest.fixture
def older(envlock: Command, older_tensorflow: Callable[[str], Path]) -> Versions:
    return lambda version: Repeat(envlock, older_tensorflow(version))


def picture_of_2017(repeat: Repeat) -> None:
    """Assert what the text of 2017 shows: at step 0 all is zero but the weights, later nothing is."""
    report = repeat("scatter.py:train", "-n", "7")
    assert (report["match"], report["first"]) == (False, {"step": 0, "quantity": "weights"})
    equal = [each["quantity"] for each in report["equal"] if each["step"] == 0]
    assert equal == ["predictions", "losses", "gradients"]
    weights, later = report["matrices"][0], {each["quantity"]: each for each in report["matrices"] if each["step"] == 2}
    assert (weights["step"], weights["quantity"]) == (0, "weights")
    assert all(weights["sum"][n][n] == 0 for n in range(7))
    apart = [cell for row in weights["sum"] for cell in row if cell]
    assert len(apart) >= 12  # seven runs with two results have as many
    assert all(1e-7 < cell < 1e-1 for cell in apart), apart  # sums of roundings: more of them on a busy machine
    assert {"predictions", "weights"} <= set(later)
    assert max(max(row) for row in later["predictions"]["sum"]) > 1e-2


def trained_twice(repeat: Repeat) -> None:
    """Assert which seeds repeat a training: not those of TensorFlow and numpy alone."""
    partial = repeat("train_twice.py:two_seeds", "-n", "2")
    assert (partial["match"], partial["first"]) == (False, {"step": 0, "quantity": "predictions"})
    assert "inputs" in [each["quantity"] for each in partial["equal"]]
    assert repeat("train_twice.py:all_seeds", "-n", "2")["match"]


def other_machine(repeat: Repeat) -> None:
    """Assert that results of another instruction set differ from those of this machine's, within each they are one."""
    wide = "avx512f" in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    here = repeat("matmul.py:product", "-n", "2", "--save", "here")
    capped = {"ONEDNN_MAX_CPU_ISA": "AVX2" if wide else "SSE41"}
    there = repeat("matmul.py:product", "-n", "2", "--save", "there", environ=capped)
    assert (here["match"], there["match"]) == (True, True)
    report = repeat.report("--compare", "here", "there")
    assert (report["match"], report["groups"]) == (False, [["A0", "A1"], ["B0", "B1"]])
    assert report["first"] == {"step": 0, "quantity": "product"}
    (matrix,) = report["matrices"]
    assert 0 < matrix["max"][0][2] < 1e-4
    assert matrix["norm"][0][2] < 64  # another order of the sums, not another precision


@exhaustive
def test_the_adder_of_2017_repeats_on_a_cpu(repeat: Repeat) -> None:
    report = repeat("adder.py:plain", "-n", "7")
    assert (report["match"], len(report["steps"]), len(report["runs"])) == (True, 60, 7)
    assert repeat("adder.py:matmul", "-n", "3", "--fresh")["match"]


@exhaustive
def test_sparse_updates_give_the_picture_of_2017_and_determinism_wipes_it_out(repeat: Repeat) -> None:
    picture_of_2017(repeat)
    assert repeat("scatter.py:train", "-n", "3", environ={"TF_DETERMINISTIC_OPS": "1"})["match"]


@exhaustive
def test_training_twice(repeat: Repeat) -> None:
    trained_twice(repeat)
    assert repeat("train_twice.py:no_seed", "-n", "2", "--fresh", "--seed", "1")["match"]
    other = repeat("train_twice.py:other_seed", "-n", "2")
    assert (other["match"], other["first"]["step"]) == (False, 0)


@exhaustive
def test_a_product_on_two_machines(repeat: Repeat) -> None:
    other_machine(repeat)


@exhaustive
def test_a_convolution_twice_and_random_numbers_twice(repeat: Repeat) -> None:
    assert repeat("convolution.py:convolution", "-n", "2")["match"]
    assert repeat("convolution.py:draws", "-n", "2")["match"]
    assert repeat("convolution.py:draw", "-n", "2")["first"] == {"step": 0, "quantity": "numbers"}


@pytest.mark.older_tensorflows
@pytest.mark.parametrize("version", OLDER)
def test_the_seeds_on_older_tensorflows(version: str, older: Versions) -> None:
    repeat = older(version)
    picture_of_2017(repeat)
    trained_twice(repeat)
    other_machine(repeat)
    assert repeat("adder.py:plain", "-n", "7")["match"]
    assert repeat("convolution.py:convolution", "-n", "2")["match"]


def watched(repeat: Repeat) -> None:
    """Assert that a fit that is watched ends with the weights of one that is not, and what is seen of it."""
    (repeat.command.folder / "fits.py").write_text(FITS, encoding="utf-8")
    (bare,) = repeat.saved("fits.py:bare", "bare").runs
    for name in ("dense", "compiled", "embedding"):
        (run,) = repeat.saved(f"fits.py:{name}", name).runs
        last = run.steps[max(run.steps)]
        weights = {member.split("/")[1]: value for member, value in last.items() if member.startswith("weights/")}
        plain = {
            member.split("/")[1]: value for member, value in bare.steps[0].items() if member.startswith(f"{name}/")
        }
        assert weights == plain, name
        sizes = [step["inputs/0"].shape[0] for step in run.steps.values()]
        assert sizes == {"dense": [16, 16, 16, 2] * 2, "compiled": [25] * 4, "embedding": [16, 16, 16, 2]}[name]
        assert all(step["predictions"].shape == (size, 1) for step, size in zip(run.steps.values(), sizes, strict=True))
        assert len({step["loss"].digest for step in run.steps.values()}) == len(sizes), name
        first = "gradients/0/embeddings/indices" if name == "embedding" else "gradients/0/kernel"
        assert next(member for member in last if member.startswith("gradients/")) == first
        seen = list(dict.fromkeys(member.partition("/")[0] for member in last))
        assert seen == ["inputs", "predictions", "loss", "gradients", "weights"], name


@exhaustive
def test_a_fit_that_is_watched_computes_what_it_computes_alone(repeat: Repeat) -> None:
    watched(repeat)


@pytest.mark.older_tensorflows
def test_so_does_one_of_keras_2(older: Versions) -> None:
    watched(older("2.15.1"))
