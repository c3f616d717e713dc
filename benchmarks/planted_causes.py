"""Planted causes among many differences: does `envlock bisect` find them, and in how many runs?

    .venvs/dev/bin/python benchmarks/planted_causes.py

Prints the figures of docs/concepts/evidence.md. They read what they depend on, so that the truth is known; the last two pairs
are real: NumPy's own sum, which 2.2.6 and 2.4.6 add in another order, and singular vectors of SciPy 1.15.3 and 1.17.1.
`--python` names an interpreter with NumPy 2.4.6. `--mixture` names one with many packages, SciPy 1.17.1 among them, and
`--others` a file with other versions of some of them, `NAME==VERSION` a line, SciPy first; without it that pair is left out.
"""

from __future__ import annotations

import argparse
import copy
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import envlock
from envlock.data.runtime_tables import load_variables

PROGRAM = """
import os
def step():
    {code}
"""
REAL = """
import numpy as np
def step():
    random = np.random.default_rng(0)
    return {"sums": np.array([random.random(100_003).astype("float32").sum() for _ in range(20)])}
"""
VECTORS = """
import numpy as np
from scipy import linalg
def step():
    return {"vectors": linalg.svd(np.random.default_rng(0).standard_normal((60, 60)))[0]}
"""
QUIET = ("NCCL_", "TF_", "XLA_", "MKL_", "CUDNN_", "CUBLAS_", "ONEDNN_", "HOROVOD_", "GRPC_")
"""Variables that mean nothing to a program that imports neither NumPy nor TensorFlow."""


def main() -> None:
    """Measure each pair, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--mixture", type=Path)
    parser.add_argument("--others", type=Path)
    asked = parser.parse_args()
    python = asked.python
    names = [row.name for row in load_variables() if row.name.startswith(QUIET)]
    print("| planted | differences | found | runs | CPU seconds |")
    print("|---|--:|---|--:|--:|")
    for number, wanted in list_planted(names):
        code = f"return {{'x': float(all(os.environ.get(name) == '1' for name in {wanted!r}))}}"
        measure(PROGRAM.format(code=code), names[:number], wanted, {}, python)
    measure(REAL, names[:30], ["numpy"], {"numpy": "2.2.6", "h5py": "3.13.0"}, python)
    if asked.mixture is not None:
        others = dict(line.split("==") for line in asked.others.read_text().split())
        measure(VECTORS, names[:10], ["scipy"], others, asked.mixture)


def list_planted(names: list[str]) -> list[tuple[int, list[str]]]:
    """Return how many differences there are, and which of them act, for nine pairs."""
    most = len(names)
    return [
        (2, names[:1]),
        (16, names[5:6]),
        (64, names[40:41]),
        (most, names[7:8]),
        (most, names[-1:]),
        (16, [names[0], names[15]]),
        (64, [names[3], names[33]]),
        (most, [names[1], names[most // 2]]),
        (64, [names[9], names[10], names[60]]),
    ]


def measure(
    program: str, names: list[str], wanted: list[str], packages: dict[str, str], python: Path
) -> None:
    """Bisect one pair, and print its row."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(program, encoding="utf-8")
        document = envlock.capture(python=python).to_document()
        a, b = copy.deepcopy(document), copy.deepcopy(document)
        for variable in names:
            a["facts"]["environ"][variable] = None
            b["facts"]["environ"][variable] = "1"
        for package, version in packages.items():
            b["facts"]["packages"][package]["version"] = version
        for side, content in (("a", a), ("b", b)):
            (folder / f"{side}.lock").write_text(json.dumps(content), encoding="utf-8")
        before, start = spend(), time.monotonic()
        program_run = envlock.Program(f"{folder / 'train.py'}:step", python=python)
        report = envlock.bisect(folder / "a.lock", folder / "b.lock", program_run)
        found = [cause.path.split(".")[1] for cause in report.evidence.smallest]
        is_right = sorted(found) == sorted(wanted)
        number = len(report.evidence.differences.causes)
        shown = ", ".join(f"`{each}`" for each in wanted)
        print(
            f"| {shown} | {number} | {'yes' if is_right else found} | {report.evidence.runs} "
            f"| {spend() - before:.0f} ({time.monotonic() - start:.0f} s) |",
            flush=True,
        )


def spend() -> float:
    """Return the processor time of this process and of the children that have ended, in seconds."""
    used = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        used += usage.ru_utime + usage.ru_stime
    return used


if __name__ == "__main__":
    main()
