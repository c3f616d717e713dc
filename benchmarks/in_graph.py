"""What a look into graphs costs (level 3): a step of `model.fit` with it, against the same step
without.

    python benchmarks/in_graph.py [PYTHON-WITH-TENSORFLOW]

Steps with and without alternate in one process, so that what else the machine does hits both; the
CPU time of a step stands beside its wall time. The second part writes a trace of 1,000 steps of a
model of about 200 operations, and says how large it is and how much memory the process took for its
second half.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = r"""
import json, os, resource, sys, tempfile, time
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", TF_NUM_INTEROP_THREADS="1")
import numpy as np, tensorflow as tf
from envlock.guest.tracing import in_graph, private
from envlock.guest.tracing.source_lines import Places
from envlock.guest.tracing.runs import make_header
from envlock.guest.tracing.trace_writer import TraceWriter
from envlock.guest.tracing.tracer import Tracer

def model(jit):
    tf.keras.utils.set_random_seed(1)
    layers, parts = tf.keras.layers, []
    for channels in (16, 32, 32):
        parts += [layers.Conv2D(channels, 3, padding="same", activation="relu"), layers.BatchNormalization()]
        parts += [layers.MaxPooling2D()]
    parts += [layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dense(10)]
    made = tf.keras.Sequential([layers.Input((28, 28, 1)), *parts])
    made.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=jit)
    return made

rs = np.random.RandomState(0)
X, Y = tf.constant(rs.rand(64, 28, 28, 1).astype("f4")), tf.constant(rs.randint(0, 10, 64))

def tracer(path, every):
    places = Places(os.getcwd())
    stream = open(path, "wb")
    writer = TraceWriter(stream, make_header(tf, "in-graph", {}))
    return Tracer(tf, writer, places, graphs=in_graph.InGraph(tf, places, every=every), counts=True), writer, stream

def step_of(made, seen=None):
    @tf.function(jit_compile=made.jit_compile if hasattr(made, "jit_compile") else made._jit_compile)
    def step():
        return made.train_step((X, Y))
    start = time.perf_counter()
    if seen is None:
        step()
        return step, time.perf_counter() - start
    private.add_callback(seen.observe)
    step()
    first = time.perf_counter() - start
    private.remove_callback(seen.observe)
    def looked_at():  # not stop(), which reads all variables once more, at the end of a run
        private.add_callback(seen.observe)
        step()
        private.remove_callback(seen.observe)
    return looked_at, first

def measure(jit, every, rounds):
    file = tempfile.NamedTemporaryFile(delete=False)
    seen, writer, stream = tracer(file.name, every)
    plain, first_plain = step_of(model(jit))
    traced, first_traced = step_of(model(jit), seen)
    times = []
    for _ in range(rounds):
        row = []
        for call in (plain, traced):
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            row += [time.perf_counter() - wall, time.process_time() - cpu]
        times.append(row)
    wall, wall_traced, cpu, cpu_traced = (np.median([row[i] for row in times]) * 1e3 for i in (0, 2, 1, 3))
    ratio = np.median([row[2] / row[0] for row in times]), np.median([row[3] / row[1] for row in times])
    before = seen.entries
    traced()
    return {"xla": jit, "every": every, "operations": seen.entries - before, "wall_ms": wall,
            "wall_ratio": ratio[0], "cpu_ms": cpu, "cpu_ratio": ratio[1],
            "first_s": first_plain, "first_traced_s": first_traced}

def rss():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

def long(steps):
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    middle = [layers.Dense(32, activation="tanh") for _ in range(21)]
    made = tf.keras.Sequential([layers.Input((32,)), *middle, layers.Dense(1)])
    made.compile("sgd", "mse", jit_compile=False)
    x, y = tf.constant(rs.rand(32, 32).astype("f4")), tf.constant(rs.rand(32, 1).astype("f4"))
    path = tempfile.NamedTemporaryFile(delete=False).name
    seen, writer, stream = tracer(path, True)
    step = tf.function(lambda: made.train_step((x, y)))
    seen.start(needed=True)
    marks = []
    for number in range(steps):
        step()
        if number in (steps // 10, steps // 2, steps - 1):
            marks.append(rss())
    seen.stop()
    operations = writer.count // steps
    writer.close()
    stream.close()
    return {"operations": operations, "steps": steps, "bytes": os.path.getsize(path), "rss": marks, "path": path}

kinds = (False, False), (True, False), (False, True), (True, True)
found = {"tensorflow": tf.__version__, "costs": [measure(*each, 40) for each in kinds]}
found["long"] = long(1000)
print("\n" + json.dumps(found))
"""


def main() -> None:
    """Run it in the interpreter named, and print two tables."""
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [python, "-c", PROGRAM],
        env=environ,
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    found = json.loads(done.stdout.strip().splitlines()[-1])
    print(
        f"TensorFlow {found['tensorflow']}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs\n"
    )
    print("| graph | looked at | operations | step ms | x wall | x CPU | first step s |")
    print("|---|---|---|---|---|---|---|")
    for row in found["costs"]:
        how = "XLA" if row["xla"] else "graph"
        what = "every operation" if row["every"] else "what can race"
        times = f"{row['wall_ms']:.1f} | {row['wall_ratio']:.2f} | {row['cpu_ratio']:.2f}"
        first = f"{row['first_s']:.1f} -> {row['first_traced_s']:.1f}"
        print(f"| {how} | {what} | {row['operations']} | {times} | {first} |")
    long = found["long"]
    marks = ", ".join(f"{each / 1e6:.0f}" for each in long["rss"])
    print(
        f"\n{long['steps']} steps of {long['operations']} operations: {long['bytes'] / 1e6:.2f} MB;",
        end=" ",
    )
    print(f"resident memory at step 100, 500 and 1,000: {marks} MB")
    print(read_back(Path(long["path"])))


def read_back(path: Path) -> str:
    """Return how long reading a trace takes, and its peak of memory."""
    import time
    import tracemalloc

    from envlock.divergence.trace import read

    start = time.perf_counter()
    entries = sum(1 for _ in read(path))
    seconds = time.perf_counter() - start
    tracemalloc.start()
    for _ in read(path):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    path.unlink()
    return f"read back: {entries} entries in {seconds:.1f} s; at most {peak / 1e6:.1f} MB held while reading"


if __name__ == "__main__":
    main()
