"""How fast `envlock lint` reads a thousand real Python files, against parsing them alone.

    python benchmarks/lint.py FOLDER [--files N] [--rounds N]      # Linux, with envlock's own dependencies

FOLDER holds Python code, say the keras and tensorflow packages of an environment; its first N files by name (1,000
unless told otherwise) are copied, so that nothing of the place is skipped. The two programs take turns.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARSE = """
import ast, sys
from pathlib import Path
for file in Path(sys.argv[1]).rglob("*.py"):
    ast.parse(file.read_bytes())
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure how fast code is linted.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="envlock-lint-") as copy:
        count, lines = _copied(asked.folder, Path(copy), asked.files)
        commands = {
            "`ast.parse` alone": [sys.executable, "-c", PARSE, copy],
            "`envlock lint`": [sys.executable, "-m", "envlock", "lint", copy, "-f", "json"],
        }
        taken = _measured(commands, asked.rounds)
    print(
        f"Python {platform.python_version()}, {count:,} files, {lines:,} lines, {asked.rounds} rounds:\n"
    )
    print("| | wall s | min | max | CPU s | min | max |\n|---|--:|--:|--:|--:|--:|--:|")
    for name, costs in taken.items():
        columns = [list(column) for column in zip(*costs, strict=True)]
        cells = [f"{f(column):.2f}" for column in columns for f in (statistics.median, min, max)]
        print(f"| {name} | {' | '.join(cells)} |")


def _copied(folder: Path, copy: Path, most: int) -> tuple[int, int]:
    """Copy the first files by name; return how many there are, and how many lines they have."""
    files = sorted(folder.rglob("*.py"))[:most]
    for file in files:
        place = copy / file.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
    return len(files), sum(file.read_bytes().count(b"\n") for file in files)


def _measured(commands: dict[str, list[str]], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Return (wall, CPU) seconds of every run, after one of each that warms up."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            cost = _run(command)
            if turn:
                taken[name].append(cost)
    return taken


def _run(command: list[str]) -> tuple[float, float]:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False, cwd="/", env=environ)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        sys.exit(f"it ended with {done.returncode}: {command}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
