"""What `envlock repeat` costs beyond the runs themselves, and the memory of 100 runs of 10 million values.

    python benchmarks/repeat.py PYTHON [--rounds N] [--memory] [--runs N] [--values N]

PYTHON is the interpreter of an environment with TensorFlow; with --memory, numpy is enough. The bare runs and the
recorded ones take turns, so that a busy machine is busy for both. CPU time is that of a process and all its children.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
REPEAT = [sys.executable, "-m", "envlock", "repeat"]

BARE = """
import sys
sys.path.insert(0, sys.argv[1])
module = __import__(sys.argv[2])
for _ in range(int(sys.argv[4])):
    result = getattr(module, sys.argv[3])()
    if isinstance(result, tuple):
        model, data, arguments = result
        model.fit(*data, verbose=0, **arguments)
    elif not isinstance(result, dict):
        for step in result:
            pass
"""
CNN = """
import numpy as np
import tensorflow as tf

def train():
    tf.keras.utils.set_random_seed(0)
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.Input((32, 32, 3)), layers.Conv2D(32, 3, activation="relu"), layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(), layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(10),
    ])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    numbers = np.random.RandomState(0)
    x = numbers.normal(size=(1024, 32, 32, 3)).astype("float32")
    return model, (x, numbers.randint(0, 10, 1024)), {"batch_size": 128}
"""
VALUES = """
import itertools
import numpy as np

count = itertools.count()

def step():
    values = np.random.default_rng(0).random({values}, dtype=np.float32)
    return {{"weights": values + np.float32(next(count) * 1e-6)}}
"""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Measure what envlock repeat costs.")
    parser.add_argument("python", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--values", type=int, default=10_000_000)
    asked = parser.parse_args()
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory(prefix="envlock-bench-") as folder:
        if asked.memory:
            memory(asked.python, Path(folder), asked.runs, asked.values)
        else:
            overhead(asked.python, Path(folder), asked.rounds)


def overhead(python: Path, folder: Path, rounds: int) -> None:
    """Print for each case the time of bare runs, and what recording and comparing add."""
    (folder / "cnn.py").write_text(CNN, encoding="utf-8")
    cases = [
        (EXAMPLES, "adder", "plain", 7, False),
        (EXAMPLES, "scatter", "train", 7, False),
        (folder, "cnn", "train", 3, False),
        (EXAMPLES, "adder", "plain", 3, True),
    ]
    print(
        "| case | bare wall s (min) | repeat | more | allowed | bare CPU s (median) | repeat | more |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for place, module, function, runs, fresh in cases:
        bare = [str(python), "-c", BARE, str(place), module, function, str(1 if fresh else runs)]
        ours = [
            *REPEAT,
            str(place / f"{module}.py:{function}"),
            "-n",
            str(runs),
            "--python",
            str(python),
        ]
        if fresh:
            bare, ours = (
                ["/bin/sh", "-c", 'for _ in $(seq "$0"); do "$@"; done', str(runs), *bare],
                [*ours, "--fresh"],
            )
        times = {"bare": [], "ours": []}  # type: dict[str, list[tuple[float, float]]]
        for turn in range(rounds):
            order = [("bare", bare), ("ours", ours)]
            for name, command in order if turn % 2 else order[::-1]:
                times[name].append(timed(command))
        wall = [
            min(t[0] for t in times[name]) for name in ("bare", "ours")
        ]  # the turn that was disturbed least
        cpu = [statistics.median(t[1] for t in times[name]) for name in ("bare", "ours")]
        case = f"{module}:{function}, {runs} {'fresh ' if fresh else ''}runs"
        print(
            f"| {case} | {wall[0]:.2f} | {wall[1]:.2f} | {wall[1] - wall[0]:+.2f} "
            f"| {0.1 * wall[0] + 1:.2f} | {cpu[0]:.2f} | {cpu[1]:.2f} | {cpu[1] - cpu[0]:+.2f} |"
        )


def timed(command: list[str]) -> tuple[float, float]:
    """Return wall and CPU seconds of a command, which may say that runs differ."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    # in a session of its own, as envlock's child is: on a busy machine the kernel shares the processors by sessions
    done = subprocess.run(
        command, capture_output=True, timeout=600, check=False, start_new_session=True
    )
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode in (0, 1), done.stderr.decode()
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def memory(python: Path, folder: Path, runs: int, values: int) -> None:
    """Print the most memory that all processes of one command had together."""
    (folder / "values.py").write_text(VALUES.format(values=values), encoding="utf-8")
    command = [
        *REPEAT,
        str(folder / "values.py:step"),
        "-n",
        str(runs),
        "--python",
        str(python),
        "--format",
        "json",
    ]
    start = time.monotonic()
    child = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(folder)}
    )
    peak = [0]
    watcher = threading.Thread(target=watch, args=(child, peak), daemon=True)
    watcher.start()
    code = child.wait()
    watcher.join()
    print(
        f"{runs} runs of {values:,} different float32 values: exit {code}, {time.monotonic() - start:.0f} s, "
        f"at most {peak[0] / 1e6:.0f} MB resident in all processes together"
    )


def watch(child: subprocess.Popen[bytes], peak: list[int]) -> None:
    """Keep the largest sum of resident memory of a process and its children, looked at 20 times a second."""
    while child.poll() is None:
        peak[0] = max(peak[0], sum(resident(pid) for pid in [child.pid, *children(child.pid)]))
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [each for name in found for each in (int(name), *children(int(name)))]


def resident(pid: int) -> int:
    """Return the bytes of a process that are in memory."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    except (OSError, IndexError):
        return 0


if __name__ == "__main__":
    main()
