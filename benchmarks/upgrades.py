"""Upgrades of packages, and variables, under small public programs: is the verdict of `envlock upgrade` the truth?

    .venvs/dev/bin/python -m benchmarks.upgrades --python .venvs/tensorflow/bin/python --overlays overlays \\
        --with keras==3.8.0 --with numpy==2.1.3 --with TF_ENABLE_ONEDNN_OPTS=0

The figures are in docs/concepts/evidence.md. For the truth each program trains for twenty steps, in the locked environment twice
and with each upgrade once, and everything that it returns is compared. The programs are models of `keras.applications` and
layers of Keras' own examples, on numbers from a counter. Four variables are the programs' own: WEIGHTS and DATA are other
weights and data, NUDGE=1 moves one number of the first batch by its last bit, and LATE=1 moves the last row, or batch.
`--with python=PATH` is another interpreter.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from envlock.guest import launch
from envlock.guest.target import Target
from envlock.lock.live_facts import collect_live
from envlock.numerics import repeated_runs
from envlock.numerics.bisection import digest_run, read_versions
from envlock.numerics.repeated_runs import Plan
from envlock.numerics.upgrade_verdict import Change, Trial
from envlock.packages.overlay import Wanted, build_environ, install_overlay
from envlock.workflows.live_environment import LiveEnvironment
from envlock.workflows.progress import SILENT
from envlock.workflows.upgrade_trials import Stage

PROGRAM = '''
"""Five small programs, with the layers of Keras' own examples, and one model of keras.applications."""

import os

import keras
import numpy as np
import tensorflow as tf


def _read(name, default):
    return int(os.environ.get(name, default))


STEPS = _read("STEPS", 20)


def _numbers(*shape):
    numbers = np.arange(np.prod(shape)) + _read("DATA", 0)
    return (numbers % 251 / 251).astype("float32").reshape(shape)


def _end():
    weights = keras.initializers.GlorotUniform(_read("WEIGHTS", 2))
    return keras.layers.Dense(10, kernel_initializer=weights)


def _words(*shape):
    return ((np.arange(np.prod(shape)) + _read("DATA", 0)) * 7 % 200).reshape(shape)


def _classes(count):
    return np.arange(count) % 10


def _batches(rows, size):
    if _read("LATE", 0):
        rows[-1] = rows[0]
    return (rows, _classes(len(rows))), {"batch_size": size}


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
            _end(),
        ]
    )
    return _compile(model), *_batches(_numbers(16 * STEPS, 28, 28, 1), 16)


def text_transformer():
    """keras.io/examples/nlp/text_classification_with_transformer"""
    layers = keras.layers
    tokens = keras.Input((20,), dtype="int32")
    x = layers.Embedding(200, 32)(tokens)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 16)(x, x))
    x = layers.LayerNormalization()(x + layers.Dense(32)(layers.Dense(32, "gelu")(x)))
    outputs = _end()(layers.GlobalAveragePooling1D()(x))
    return _compile(keras.Model(tokens, outputs)), *_batches(_words(16 * STEPS, 20), 16)


def bidirectional_lstm():
    """keras.io/examples/nlp/bidirectional_lstm_imdb"""
    layers = keras.layers
    model = keras.Sequential(
        [layers.Embedding(200, 16), layers.Bidirectional(layers.LSTM(16)), _end()]
    )
    return _compile(model), *_batches(_words(16 * STEPS, 12), 16)


def mobilenet():
    """keras.applications.MobileNetV2, without weights"""
    model = keras.applications.MobileNetV2((32, 32, 3), 0.35, weights=None, classes=10, classifier_activation=None)
    return _compile(model), *_batches(_numbers(8 * STEPS, 32, 32, 3), 8)


def compiled_step():
    """A step that XLA compiles, as in tensorflow.org/xla/tutorials/jit_compile"""
    weights = tf.Variable(tf.random.stateless_normal((64, 10), (1, _read("WEIGHTS", 2))))

    @tf.function(jit_compile=True)
    def train(x, y):
        with tf.GradientTape() as tape:
            logits = tf.nn.gelu(x) @ weights
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    random = np.random.default_rng(_read("DATA", 0))
    is_moved, is_late = _read("NUDGE", 0), _read("LATE", 0)
    for number in range(STEPS):
        x = random.standard_normal((32, 64)).astype("float32")
        x -= x.mean(axis=0)
        if is_moved and number == 0:
            x[0, 0] = np.nextafter(x[0, 0], np.float32(9))
        if is_late and number == STEPS - 1:
            x += 1
        yield {"loss": train(x, _classes(32).astype("int32")), "weights": weights}
'''


class Changes(NamedTuple):
    """What a row changes: how the table calls it, packages, variables, and the interpreter."""

    title: str
    packages: tuple[Change, ...] = ()
    variables: Mapping[str, str] = {}
    python: Path | None = None


PROGRAMS = ("mnist_convnet", "text_transformer", "bidirectional_lstm", "mobilenet", "compiled_step")


def main() -> None:
    """Judge each upgrade under each program, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--with", dest="wanted", action="append", required=True)
    parser.add_argument("--program", dest="programs", action="append", choices=PROGRAMS)
    parser.add_argument("--overlays", type=Path, required=True, help="folder for the packages")
    parser.add_argument("--steps", type=int, default=20, help="of the real training")
    parser.add_argument("--traced", type=int, default=2, help="steps that the verdict looks at")
    asked = parser.parse_args()
    os.environ["STEPS"] = str(asked.steps)
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
            stage = Stage(target, 7, environment, asked.overlays, traces, asked.traced, SILENT)
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
    for changes in sets:
        packages = changes.packages
        overlays = [
            install_overlay(Wanted(*each.wanted), stage.overlays, python) for each in packages
        ]
        environ = build_environ(overlays, changes.variables)
        other = changes.python or python
        before, start = spend(), time.monotonic()
        if packages:
            trial = stage.attempt(packages, seen)
        else:
            there = replace(stage, environment=replace(stage.environment, python=other))
            trial = Trial((), (*seen.doubts, *there.compare(seen, environ)))
        cost = describe_cost(before, start)
        really = train(stage.program, other, environ)
        # Two trainings that fail have no bits in common.
        is_equal = bool(really) and locked == really
        print_row(f"{stage.program.function} | {changes.title}", trial, is_equal, cost)


def parse_changes(text: str, installed: Mapping[str, str]) -> Changes:
    """Return what `NAME==VERSION,...`, a variable `NAME=VALUE` or `python=PATH` changes."""
    if "==" not in text:
        name, _, value = text.partition("=")
        if name == "python":
            python = Path(value)
            version = launch.ask(["-V"], python, timeout=60).output.decode().strip()
            return Changes(f"to {version}", python=python)
        return Changes(f"`{text}`", variables={name: value})
    changes = []
    for each in text.split(","):
        name, _, version = each.partition("==")
        name = canonicalize_name(name)
        changes.append(Change(name, installed.get(name), version))
    return Changes(", ".join(map(str, changes)), tuple(changes))


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
    """Return the digest of everything that a real training gives; an empty text for one that fails."""
    with tempfile.TemporaryDirectory() as name:
        plan = Plan(target, 1, fresh=True, seed=7, python=python, environ=environ)
        results, _ = repeated_runs.repeat(plan, Path(name))
        if not results.finished:
            return ""
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
