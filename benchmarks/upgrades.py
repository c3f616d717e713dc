"""Upgrades of packages, and variables, under small public programs: is the verdict of `envlock upgrade` the truth?

    .venvs/dev/bin/python benchmarks/upgrades.py --python .venvs/tensorflow/bin/python --overlays overlays \\
        --with keras==3.8.0 --with numpy==2.1.3 --with TF_ENABLE_ONEDNN_OPTS=0

Prints the table of docs/upgrade.md. For the truth each program really trains for five steps, in the locked environment twice
and with each upgrade once, and everything that it returns is compared. The programs are models of `keras.applications` and
layers of Keras' own examples, on numbers from a counter.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from envlock.guest.target import Target
from envlock.lock.live_facts import collect_live
from envlock.numerics import repeated_runs
from envlock.numerics.bisection import digest_run, read_versions
from envlock.numerics.repeated_runs import Plan
from envlock.numerics.upgrade_verdict import Change, Trial
from envlock.packages.overlay import build_environ, install_overlay
from envlock.workflows.live_environment import LiveEnvironment
from envlock.workflows.progress import SILENT
from envlock.workflows.upgrade_trials import Stage

PROGRAM = '''
"""Five small programs, with the layers of Keras' own examples, and one model of keras.applications."""

import os

import keras
import numpy as np
import tensorflow as tf


def _numbers(*shape):
    return (np.arange(np.prod(shape)) % 251 / 251).astype("float32").reshape(shape)


def _classes(count):
    return np.arange(count) % 10


def _compile(model, jit=False):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, jit_compile=jit)
    return model


def mnist_convnet():
    """keras.io/examples/vision/mnist_convnet"""
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(10),
        ]
    )
    return _compile(model), (_numbers(80, 28, 28, 1), _classes(80)), {"batch_size": 16}


def text_transformer():
    """keras.io/examples/nlp/text_classification_with_transformer"""
    layers = keras.layers
    tokens = keras.Input((20,), dtype="int32")
    x = layers.Embedding(200, 32)(tokens)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 16)(x, x))
    x = layers.LayerNormalization()(x + layers.Dense(32)(layers.Dense(32, "gelu")(x)))
    outputs = layers.Dense(10)(layers.GlobalAveragePooling1D()(x))
    rows = (np.arange(80 * 20) * 7 % 200).reshape(80, 20)
    return _compile(keras.Model(tokens, outputs)), (rows, _classes(80)), {"batch_size": 16}


def bidirectional_lstm():
    """keras.io/examples/nlp/bidirectional_lstm_imdb"""
    layers = keras.layers
    model = keras.Sequential(
        [layers.Embedding(200, 16), layers.Bidirectional(layers.LSTM(16)), layers.Dense(10)]
    )
    rows = (np.arange(80 * 12) * 7 % 200).reshape(80, 12)
    return _compile(model), (rows, _classes(80)), {"batch_size": 16}


def mobilenet():
    """keras.applications.MobileNetV2, without weights"""
    model = keras.applications.MobileNetV2((32, 32, 3), 0.35, weights=None, classes=10, classifier_activation=None)
    return _compile(model), (_numbers(40, 32, 32, 3), _classes(40)), {"batch_size": 8}


def compiled_step():
    """A step that XLA compiles, as in tensorflow.org/xla/tutorials/jit_compile"""
    seed = int(os.environ.get("WEIGHTS", "2"))
    weights = tf.Variable(tf.random.stateless_normal((64, 10), (1, seed)))

    @tf.function(jit_compile=True)
    def train(x, y):
        with tf.GradientTape() as tape:
            logits = tf.nn.gelu(x) @ weights
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    random = np.random.default_rng(int(os.environ.get("DATA", "0")))
    for _ in range(5):
        x = random.standard_normal((32, 64)).astype("float32")
        x -= x.mean(axis=0)
        yield {"loss": train(x, _classes(32).astype("int32")), "weights": weights}
'''
Changes = tuple[str, tuple[Change, ...], dict[str, str]]
"""How a table calls them, packages, and variables."""
PROGRAMS = ("mnist_convnet", "text_transformer", "bidirectional_lstm", "mobilenet", "compiled_step")


def main() -> None:
    """Judge each upgrade under each program, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--with", dest="wanted", action="append", required=True)
    parser.add_argument("--program", dest="programs", action="append", choices=PROGRAMS)
    parser.add_argument("--overlays", type=Path, required=True, help="folder for the packages")
    asked = parser.parse_args()
    asked.overlays.mkdir(exist_ok=True)
    environment = LiveEnvironment(asked.python, collect_live(asked.python))
    installed = read_versions(environment.snapshot.facts)
    sets = [parse_changes(text, installed) for text in asked.wanted]
    print("| program | upgrade | verdict | really trained | right | CPU seconds |")
    print("|---|---|---|---|---|--:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "programs.py"
        script.write_text(PROGRAM, encoding="utf-8")
        for program in asked.programs or PROGRAMS:
            traces = folder / program
            traces.mkdir()
            target = Target(script, program)
            stage = Stage(target, 7, environment, asked.overlays, traces, SILENT)
            measure(stage, sets)


def measure(stage: Stage, sets: Sequence[Changes]) -> None:
    """Judge upgrades under one program, and print a row for each."""
    before, start = spend(), time.monotonic()
    seen = stage.look()
    print(
        f"<!-- {stage.program.function}: {describe_cost(before, start)} for the locked environment -->",
        flush=True,
    )
    python = stage.environment.python
    locked = train(stage.program, python, build_environ((), {}))
    if locked != train(stage.program, python, build_environ((), {})):
        print(f"<!-- {stage.program.function} varies by itself -->")
    for name, changes, variables in sets:
        before, start = spend(), time.monotonic()
        if changes:
            trial = stage.attempt(changes, seen)
        else:
            environ = build_environ((), variables)
            trial = Trial((), (*seen.doubts, *stage.compare(seen, environ)))
        cost = describe_cost(before, start)
        overlays = [install_overlay(*each.wanted, stage.overlays, python) for each in changes]
        really = train(stage.program, python, build_environ(overlays, variables))
        print_row(f"{stage.program.function} | {name}", trial, locked == really, cost)


def parse_changes(text: str, installed: Mapping[str, str]) -> Changes:
    """Return what `NAME==VERSION,...` or a variable `NAME=VALUE` changes, and how a table calls it."""
    if "==" not in text:
        name, _, value = text.partition("=")
        return f"`{text}`", (), {name: value}
    pairs = [each.split("==") for each in text.split(",")]
    changes = tuple(Change(name, installed.get(name), version) for name, version in pairs)
    return ", ".join(map(str, changes)), changes, {}


def print_row(title: str, trial: Trial, is_equal: bool, cost: str) -> None:
    """Print whether a verdict is right: *no bit changes* only where the bits are equal."""
    right = "yes"
    if trial.verdict == "no-bit-changes" and not is_equal:
        right = "WRONG"
    elif trial.verdict != "no-bit-changes" and is_equal:
        right = "not proven"
    bits = "equal bits" if is_equal else "other bits"
    print(f"| {title} | {trial.verdict} | {bits} | {right} | {cost} |")
    for difference in trial.differences:
        print(f"<!--   {difference.kind}: {difference.message[:400]} -->", flush=True)
    sys.stdout.flush()


def train(target: Target, python: Path | None, environ: dict[str, str]) -> str:
    """Return the digest of everything that a real training gives."""
    with tempfile.TemporaryDirectory() as name:
        plan = Plan(target, 1, fresh=True, seed=7, python=python, environ=environ)
        results, _ = repeated_runs.repeat(plan, Path(name))
        return digest_run(results.finished[0])


def describe_cost(before: float, start: float) -> str:
    """Return the processor time since then, and the time on the clock."""
    return f"{spend() - before:.0f} ({time.monotonic() - start:.0f} s)"


def spend() -> float:
    """Return the processor time of this process and of the children that have ended, in seconds."""
    used = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        used += usage.ru_utime + usage.ru_stime
    return used


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    main()
