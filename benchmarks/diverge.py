"""What level 2 of `envlock diverge` costs beyond running eagerly, if memory stays flat, and how large a trace gets.

    python benchmarks/diverge.py PYTHON [--rounds N] [--steps N]

PYTHON is the interpreter of an environment with TensorFlow. In one process the same training runs eagerly by turns
with and without the tracer, so that a busy machine is busy for both; the ratios are of one round each.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import json, os, resource, statistics, sys, tempfile, time
sys.path.insert(0, sys.argv[1])
rounds, steps = int(sys.argv[2]), int(sys.argv[3])
import numpy as np, tensorflow as tf
from envlock.guest.dataset_graphs import Datasets
from envlock.guest.tracing.source_lines import Places
from envlock.guest.tracing.runs import open_trace

layers = tf.keras.layers
numbers = np.random.RandomState(0)
MODELS = {
    "CNN, 32 images of 32x32": (
        lambda: [layers.Conv2D(32, 3, activation="relu"), layers.BatchNormalization(),
                 layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten(),
                 layers.Dropout(0.3), layers.Dense(64, activation="relu"), layers.Dense(10)],
        (32, 32, 3)),
    "dense, 32 rows of 64": (
        lambda: [layers.Dense(256, activation="relu"), layers.Dense(256, activation="relu"), layers.Dense(10)], (64,)),
}

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20

def train(make, shape, steps):
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential(make())
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), run_eagerly=True)
    x = numbers.normal(size=(32 * steps, *shape)).astype("float32")
    start = time.perf_counter(), time.process_time()
    model.fit(x, numbers.randint(0, 10, len(x)), batch_size=32, verbose=0)
    return time.perf_counter() - start[0], time.process_time() - start[1]

def trace(make, shape, steps, path):
    places = Places(".")
    with open_trace(tf, path, Datasets(places), mode="eager", limit=None):
        return train(make, shape, steps)

answer = {"tensorflow": tf.__version__, "models": {}}
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a.trace")
    for name, (make, shape) in MODELS.items():
        train(make, shape, 3), trace(make, shape, 3, path)
        pairs = []
        for number in range(rounds):
            first, second = (train(make, shape, steps), trace(make, shape, steps, path))
            pairs.append((first, second))
        entry = {"eager ms a step": [statistics.median(p[0][k] for p in pairs) / steps * 1000 for k in (0, 1)]}
        entry["ratio"] = [statistics.median(p[1][k] / p[0][k] for p in pairs) for k in (0, 1)]
        entry["bytes a step"] = os.path.getsize(path) / steps
        memory = [resident()]
        for _ in range(4):
            trace(make, shape, steps * 2, path)
            memory.append(resident())
        entry["MiB"] = [round(each) for each in memory]
        answer["models"][name] = entry
print("answer:" + json.dumps(answer))
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What level 2 of `envlock diverge` costs.")
    parser.add_argument("python")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=20)
    asked = parser.parse_args()
    command = [asked.python, "-c", PROGRAM, str(ROOT), str(asked.rounds), str(asked.steps)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=580, check=False)
    if "answer:" not in done.stdout:
        sys.exit(done.stderr[-2000:])
    answer = json.loads(done.stdout.rpartition("answer:")[2])
    print(
        f"TensorFlow {answer['tensorflow']}, {asked.rounds} rounds of {asked.steps} steps; wall time / CPU time"
    )
    for name, entry in answer["models"].items():
        wall, cpu = entry["eager ms a step"]
        ratios = " / ".join(f"{each:.2f}" for each in entry["ratio"])
        print(f"{name}: eager {wall:.1f} / {cpu:.1f} ms a step; traced {ratios} times")
        size = entry["bytes a step"] / 1024
        print(
            f"    {size:.1f} KiB of trace a step; resident MiB, {2 * asked.steps} steps apart: {entry['MiB']}"
        )


if __name__ == "__main__":
    main()
