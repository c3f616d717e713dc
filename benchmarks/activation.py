"""What `envlock.activate()` costs beyond TensorFlow's own work.

    python benchmarks/activation.py PYTHON... [--rounds N]      # Linux, with envlock's own dependencies

PYTHON is the interpreter of an environment with TensorFlow. Fresh processes take turns, in another order each time: one
imports TensorFlow and makes the recipe's calls by hand, one calls `activate()` with a lock of that environment. In the
latter every call that leads into TensorFlow is timed as well, so that the rest is envlock's own. CPU and wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TIMED = """
import json, sys, time
def now():
    return time.process_time(), time.perf_counter()
def spent(since):
    return [after - before for after, before in zip(now(), since)]
start = now()
{code}
total = spent(start)
print("answer:" + json.dumps({{"total": total, "inside": inside}}))
"""
BY_HAND = """
import tensorflow as tf
inside = spent(start)
tf.config.threading.set_intra_op_parallelism_threads({threads})
tf.config.threading.set_inter_op_parallelism_threads({threads})
tf.config.experimental.enable_op_determinism()
tf.keras.utils.set_random_seed(42)
"""
ACTIVATED = """
import envlock
from envlock.runtime import calls
inside = [0.0, 0.0]
def timed(function):
    def call(*arguments):
        begun = now()
        try:
            return function(*arguments)
        finally:
            inside[:] = [a + b for a, b in zip(inside, spent(begun))]
    return call
for name in ("import_tensorflow", "make", "fix_threads"):
    setattr(calls, name, timed(getattr(calls, name)))
envlock.activate(42, quiet=True)
"""
"""`inside` is the time in TensorFlow: importing it, and the calls of the recipe."""


def main() -> None:
    """Print a table a TensorFlow."""
    parser = argparse.ArgumentParser(description="Measure what activate() costs.")
    parser.add_argument("python", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    print(
        "| TensorFlow | time | `import tensorflow` | and calls by hand | `activate()` | its own part | of the import |"
    )
    print("|---|---|--:|--:|--:|--:|--:|")
    for python in chosen.python:
        table(python, chosen.rounds)


def table(python: Path, rounds: int) -> None:
    """Print the rows of one environment."""
    programs = {
        "by hand": BY_HAND.format(threads=len(os.sched_getaffinity(0))),
        "activated": ACTIVATED,
    }
    measured: dict[str, list[dict[str, list[float]]]] = {name: [] for name in programs}
    with tempfile.TemporaryDirectory() as folder:
        capture = [sys.executable, "-m", "envlock", "capture", "-q", "--python", str(python)]
        subprocess.run(capture, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
        for number in range(rounds + 1):
            for name in random.sample(sorted(programs), len(programs)):
                found = answer(python, programs[name], folder)
                measured[name] += [found] if number else []  # the first round warms the page cache
    version = [python.parent.parent.name]
    for place, kind in enumerate(("CPU", "wall")):
        imported = statistics.median(each["inside"][place] for each in measured["by hand"])
        totals = {
            name: statistics.median(each["total"][place] for each in rows)
            for name, rows in measured.items()
        }
        own = statistics.median(
            each["total"][place] - each["inside"][place] for each in measured["activated"]
        )
        cells = [
            *version,
            kind,
            *(f"{1000 * s:.0f} ms" for s in (imported, *totals.values())),
            f"{1000 * own:.1f} ms",
        ]
        print(f"| {' | '.join([*cells, f'{own / imported:.2%}'])} |", flush=True)


def answer(python: Path, code: str, folder: str) -> dict[str, list[float]]:
    """Return the seconds, CPU and wall, that the code took in a fresh process, and those inside TensorFlow."""
    environ = {
        "PYTHONPATH": str(ROOT),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PATH": os.defpath,
        "HOME": folder,
    }
    argv = [str(python), "-c", TIMED.format(code=code)]
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, check=True)
    found: dict[str, list[float]] = json.loads(done.stdout.partition("answer:")[2])
    return found


if __name__ == "__main__":
    main()
