"""What the second look of a script costs: the comparison of what is loaded, at the end of `import tensorflow`.

    python benchmarks/second_look.py PYTHON [--rounds N] [--imports NAME ...]

PYTHON is the interpreter of an environment with TensorFlow and envlock. envlock's command line, of this
checkout, captures it. Then fresh processes take turns: *cold* has an empty cache, as in a fresh
container; *captured* has what `capture` has noted; *warm* has run before; *static* only compares files on
line 1. Printed is the CPU time of the looks, in their own thread, and that of the imports with them; with
--imports, of others than TensorFlow.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = """
import json, sys, time
import envlock
from envlock.runtime import assertion
spent = [0.0]
look = assertion.SecondLook.look
def measure(self, finished=None):
    begin = time.thread_time()
    look(self, finished)
    spent.append(time.thread_time() - begin)
assertion.SecondLook.look = measure
envlock.assert_locked(static=sys.argv[1] == "static")
begin = time.process_time()
for name in sys.argv[2:]:
    __import__(name)
print(json.dumps([sum(spent), time.process_time() - begin, len(sys.modules)]))
"""
STATES = ("cold", "captured", "warm", "static")


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--imports", nargs="+", default=["tensorflow"])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measure(asked.python.absolute(), Path(name), asked.rounds, asked.imports)


def measure(python: Path, folder: Path, rounds: int, names: list[str]) -> None:
    """Print the least and the median of each state."""
    captured, cache = folder / "captured", folder / "cache"
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "XDG_CACHE_HOME": str(cache),
    }
    capture = [sys.executable, "-m", "envlock", "capture", "-q", "--python", str(python)]
    path = {"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    subprocess.run(capture, cwd=folder, env={**environ, **path}, check=True)
    shutil.copytree(cache, captured)
    found: dict[str, list[list[float]]] = {state: [] for state in STATES}
    for _ in range(rounds):
        for state in STATES:
            if state in ("cold", "captured"):
                shutil.rmtree(cache)
            if state == "captured":
                shutil.copytree(captured, cache)
            words = [str(python), "-c", PROGRAM, state, *names]
            done = subprocess.run(
                words, cwd=folder, env=environ, check=True, capture_output=True, text=True
            )
            found[state].append(json.loads(done.stdout))
    print(f"{found['cold'][0][2]} modules; ms of CPU time, {rounds} rounds in turns")
    for state, runs in found.items():
        looks, imports = ([1000 * run[place] for run in runs] for place in (0, 1))
        print(
            f"{state:9} look: least {min(looks):5.1f}, median {statistics.median(looks):5.1f}; "
            f"import: least {min(imports):6.0f}, median {statistics.median(imports):6.0f}"
        )


if __name__ == "__main__":
    main()
