"""`activate()` and `envlock run` with real TensorFlows: by what they compute, in which threads, and how late."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command, absent, activate
from tests.exhaustive import exhaustive

ROOT = Path(__file__).resolve().parents[2]
OLDER = ["2.15.1", "2.18.1"]

TRAIN = """
import json, os, sys
import envlock
first = envlock.activate(42, quiet=True)
import numpy as np
import tensorflow as tf

def trained(seed):
    seed()
    features = np.random.random((200, 10)).astype("float32")
    labels = (features.sum(axis=1) > 5).astype("float32")
    layers = [tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1, activation="sigmoid")]
    model = tf.keras.Sequential(layers)
    model.compile(optimizer="adam", loss="binary_crossentropy")
    model.fit(features, labels, epochs=2, batch_size=32, verbose=0)
    return [np.asarray(weights) for weights in model.get_weights()]

def as_advised():
    tf.random.set_seed(42)
    np.random.seed(42)

def apart(seed):
    one, other = trained(seed), trained(seed)
    return float(sum(np.abs(a - b).sum() for a, b in zip(one, other))), all(map(np.array_equal, one, other))

threads = tf.config.threading
print("answer:" + json.dumps({
    "version": tf.__version__, "steps": first.steps, "warnings": first.warnings,
    "advised": apart(as_advised), "activated": apart(lambda: envlock.activate(42, quiet=True)),
    "threads": [threads.get_intra_op_parallelism_threads(), threads.get_inter_op_parallelism_threads()],
    "matches": envlock.assert_locked().match, "argv": sys.argv[1:], "hash": hash("a"),
}))
"""
"""Trains twice in one process: seeded as the second of the seed texts advises, and by activate()."""

LATE = """
import tensorflow as tf
from envlock.runtime.calls import is_initialised
print(is_initialised(tf), is_initialised(tf), tf.config.threading.get_intra_op_parallelism_threads())
tf.constant(1.0) + 1.0
print(is_initialised(tf))
import envlock
try:
    envlock.activate()
except envlock.TooLateError as error:
    print(error)
"""
BITS = """
import hashlib, os, sys
processors, locked = int(sys.argv[1]), sys.argv[2] == "locked"
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:processors])
import envlock
envlock.activate(1, policy="same-arch", quiet=True) if locked else envlock.activate(1, locked=False, quiet=True)
import tensorflow as tf
images = tf.random.stateless_normal((32, 64, 64, 16), seed=(1, 2))
kernel = tf.Variable(tf.random.stateless_normal((3, 3, 16, 32), seed=(3, 4)))
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.tanh(tf.nn.conv2d(images, kernel, 1, "SAME")))
print(hashlib.sha256(tape.gradient(loss, kernel).numpy().tobytes()).hexdigest())
"""
COUNTS = {"intra_op_threads": 3, "inter_op_threads": 1}
"""Other numbers than this machine's own by all odds, so that a count that is not fixed shows."""


@pytest.fixture(params=[None, *(pytest.param(version, marks=pytest.mark.older_tensorflows) for version in OLDER)])
def python(request: pytest.FixtureRequest, tmp_path: Path) -> Command:
    """Return an interpreter with TensorFlow, in a folder with a lock of it whose thread counts are others."""
    name = "tensorflow_python" if request.param is None else "older_tensorflow"
    found: Any = request.getfixturevalue(name)
    path: Path = found if request.param is None else found(request.param)
    envlock = Command([sys.executable, "-m", "envlock"], tmp_path)
    done = envlock("capture", "-q", "--python", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    lock = tmp_path / "envlock.lock"
    document = json.loads(lock.read_bytes())
    document["facts"]["cpu"].update(COUNTS)
    lock.write_text(json.dumps(document), encoding="utf-8")
    return Command([str(path)], tmp_path)


@pytest.fixture
def there(python: Command) -> dict[str, str]:
    """Return the variables that let an older environment, where there is no envlock, find this one."""
    return {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.partition("answer:")[2])
    return found


@exhaustive
def test_training_twice_gives_the_same_bits_only_when_activated(python: Command, there: dict[str, str]) -> None:
    seen = answer(python("-c", TRAIN, environ=there, timeout=300))
    assert seen["activated"] == [0.0, True]
    assert seen["advised"][0] > 1  # 46 to 52 were measured with the seed text's own script
    assert seen["advised"][1] is False
    assert seen["steps"] == [
        "fixed intra-op threads to 3",
        "fixed inter-op threads to 1",
        "called tf.config.experimental.enable_op_determinism()",
        "called tf.keras.utils.set_random_seed(42)",
    ]
    assert seen["warnings"] == [
        "Python's hash seed is not fixed, so the order of sets differs from run to run (`envlock run` fixes it)"
    ]
    assert (seen["threads"], seen["matches"]) == ([3, 1], True)


@exhaustive
def test_the_proof_by_behaviour_flips(python: Command, there: dict[str, str]) -> None:
    prove = Command([sys.executable, "-m", "envlock", "doctor", "envlock.lock", "--prove", "-f", "json"], python.folder)
    interpreter = ["--python", python.argv[0]]
    states: dict[str, dict[str, str]] = {}
    for name, line in (("without", "pass"), ("with", "import envlock; envlock.activate(quiet=True)")):
        done = prove(*interpreter, "--setup", line, environ=there, timeout=300)
        states[name] = {each["what"]: each["state"] for each in json.loads(done.stdout)["attachments"]["states"]}
        assert done.returncode == (1 if name == "without" else 0), done.stdout
    assert states["without"]["op determinism"] == "off"
    assert states["with"]["op determinism"] == "on"
    assert states["with"]["intra-op threads"] == "3"
    assert states["with"]["inter-op threads"] == "1"
    assert states["without"]["intra-op threads"] != "3"


@exhaustive
def test_a_tensorflow_that_has_computed_is_too_late(python: Command, there: dict[str, str]) -> None:
    (python.folder / "late.py").write_text(LATE, encoding="utf-8")
    done = python("late.py", environ=there, timeout=300)
    assert done.stdout.splitlines() == [
        "False False 0",
        "True",
        "envlock.activate() is too late: TensorFlow is imported, and it has started computing, so its threads and "
        "results can no longer be changed",
        f"hint: move `envlock.activate()` (now line 9 of {python.folder}/late.py) above line 2 of "
        f"{python.folder}/late.py, which imports TensorFlow",
    ]


@exhaustive
def test_a_program_that_is_run_activates_without_a_word(tensorflow_python: Path, tmp_path: Path) -> None:
    """The command line of the environment itself: hash seed, threads, seed and switch come together."""
    cli = activate(tensorflow_python, tmp_path)
    assert cli("capture", "-q").returncode == 0
    (tmp_path / "train.py").write_text(TRAIN.replace("activate(42, ", "activate("), encoding="utf-8")
    runs = [
        cli(
            "run",
            "-q",
            "--seed",
            "7",
            "--",
            "python",
            "train.py",
            "-x",
            environ={"TF_CPP_MIN_LOG_LEVEL": "3"},
            timeout=300,
        )
        for _ in range(2)
    ]
    first, second = map(answer, runs)
    assert first["warnings"] == []
    assert first["steps"][-1] == "called tf.keras.utils.set_random_seed(7)"
    assert (first["matches"], first["activated"], first["argv"]) == (True, [0.0, True], ["-x"])
    assert first["hash"] == second["hash"]


@exhaustive
def test_with_the_threads_of_the_lock_fewer_processors_compute_its_bits(
    tensorflow_python: Path, tmp_path: Path
) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        absent("one processor only: two are needed to leave one out")
    cli = activate(tensorflow_python, tmp_path)
    assert cli("capture", "-q").returncode == 0
    python = Command([str(tensorflow_python)], tmp_path)
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONHASHSEED": "0"}
    cases = [("9", "locked"), ("1", "locked"), ("1", "free")]
    every, one, free = (python("-c", BITS, *case, environ=quiet, timeout=300).stdout for case in cases)
    assert len(every) == 65
    assert one == every
    assert free != every


@exhaustive
def test_a_program_that_switches_nothing_is_switched_from_outside(tensorflow_python: Path, tmp_path: Path) -> None:
    cli = activate(tensorflow_python, tmp_path)
    assert cli("capture", "-q").returncode == 0
    envlock = ["sh", "-c", 'exec "$@"', "sh", sys.executable, "-m", "envlock"]  # that of a tool's own environment
    program = [*envlock, "doctor", "--prove", "-f", "json"]
    done = cli("run", "--deterministic", "--", *program, timeout=300)
    states = {each["what"]: each["state"] for each in json.loads(done.stdout)["attachments"]["states"]}
    assert (done.returncode, states["op determinism"]) == (0, "on")
    assert "TF_DETERMINISTIC_OPS=1" in done.stderr
    headline = "matches under policy strict, with 1 variable set by envlock"
    assert cli("run", "-q", "--deterministic", "--", *envlock, "verify").stdout.startswith(headline)
