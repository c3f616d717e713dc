"""How often the ranks of a job ask the file server of their folder while they wait for the last one.

    python benchmarks/fleet_meeting.py [RANKS ...] [--late 20] [--before TREE] [--table FILE] [--svg FILE]

Real processes, forked from one that has imported envlock, call `assert_fleet()` in one folder; the last
comes `--late` seconds after the others. Python's audit events count each listing, opening, link, renaming and removal
of each process below that folder. With `--before`, the same is done by the package of another checkout. With `--table`,
nothing is measured: the numbers are those of the table that this program printed into a file, such as the README.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIZES = (50, 100, 200, 400, 1_000)

JOB = """
import json, os, sys, time
folder, ranks, late = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
import envlock
limit = late + 60 + ranks / 10
EVENTS = {"os.listdir", "os.scandir", "open", "os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir"}

def take_part(rank, begin, out):
    asked = 0
    def hear(event, arguments):
        nonlocal asked
        if event in EVENTS and str(arguments[0]).startswith(folder):
            asked += 1
    own = {"RANK": rank, "SIZE": ranks, "JOB": "bench", "NODE": f"n{rank // 8}"}
    os.environ.update({f"ENVLOCK_FLEET_{name}": str(value) for name, value in own.items()})
    start = begin + (late if rank == ranks - 1 else 0)
    time.sleep(max(0, start - time.time()))
    sys.addaudithook(hear)
    called = time.time()
    try:
        envlock.assert_fleet(timeout=limit, folder=folder)
        end = "starts"
    except BaseException as error:
        end = str(error).splitlines()[0]
    cpu = time.process_time()
    os.write(out, (json.dumps([rank, asked, time.time() - called, cpu, end]) + "\\n").encode())
    os._exit(0)

reading, writing = os.pipe()
begin = time.time() + 1 + ranks / 100
for rank in range(ranks):
    if not os.fork():
        os.close(reading)
        take_part(rank, begin, writing)
os.close(writing)
with open(reading) as lines:
    sys.stdout.writelines(lines)
"""


Measured = tuple[float, float, float]
"""Looks a second of a rank that waits, and of all ranks together; and CPU ms of a rank."""


def measure(tree: Path, ranks: int, late: float) -> Measured:
    """Return looks a second of a rank that waits (median), of all ranks together, and CPU ms of a rank."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-c", JOB, f"{folder}/fleet", str(ranks), str(late)]
        environ = {**os.environ, "PYTHONPATH": str(tree)}
        done = subprocess.run(
            argv, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True, check=True
        )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    ends = {end for *_, end in found}
    if ends != {"starts"} or len(found) != ranks:
        raise SystemExit(f"{len(found)} of {ranks} ranks have ended: {sorted(ends)}")
    waiting = [each for each in found if 0 < each[0] < ranks - 1]
    rate = statistics.median([asked / seconds for _, asked, seconds, *_ in waiting])
    total = sum(asked for _, asked, *_ in found) / max(seconds for _, _, seconds, *_ in found)
    cpu = statistics.median([each[3] for each in waiting]) * 1000
    return rate, total, cpu


def read_table(file: Path) -> dict[str, dict[int, Measured]]:
    """Return the numbers of a table as `main` prints it."""
    found: dict[str, dict[int, Measured]] = {}
    row = r"^\| ((?:now|before)[\w, ]*) \| ([\d,]+) \| ([\d.]+) \| ([\d,]+) \| (\d+) \|$"
    text = file.read_text(encoding="utf-8")
    for name, ranks, rate, total, cpu in re.findall(row, text, re.MULTILINE):
        values = (float(rate), float(total.replace(",", "")), float(cpu))
        found.setdefault(name, {})[int(ranks.replace(",", ""))] = values
    return found


def draw(found: dict[str, dict[int, Measured]], file: Path) -> None:
    """Write a chart of looks a second over ranks."""
    from matplotlib import pyplot, rcParams

    rcParams.update({"svg.hashsalt": "envlock", "font.size": 9})
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.5))
    titles = ("a rank that waits: requests a second", "all ranks: requests a second")
    for column, axis in enumerate(axes):
        for name, rows in found.items():
            values = [each[column] for each in rows.values()]
            axis.plot(list(rows), values, marker="o", markersize=3, label=name)
        axis.set(xlabel="ranks", ylabel=titles[column], xlim=(0, None), ylim=(0, None))
        axis.grid(visible=True, linewidth=0.3)
        axis.legend()
    figure.tight_layout()
    figure.savefig(file, format="svg", metadata={"Date": None})


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How often waiting ranks ask a file server.")
    parser.add_argument("ranks", nargs="*", type=int, default=SIZES)
    parser.add_argument("--late", type=float, default=20, help="seconds until the last rank comes")
    parser.add_argument("--before", type=Path, help="another checkout, to compare with")
    parser.add_argument("--svg", type=Path, help="draw a chart into this file")
    parser.add_argument("--table", type=Path, help="draw the numbers of this file")
    asked = parser.parse_args()
    if asked.table is not None:
        draw(read_table(asked.table), asked.svg)
        return
    trees = {"now": ROOT}
    if asked.before is not None:
        trees = {"before": asked.before, **trees}
    print("| | ranks | a waiting rank, requests/s | all, requests/s | a rank, CPU ms |")
    print("|---|--:|--:|--:|--:|")
    found: dict[str, dict[int, Measured]] = {name: {} for name in trees}
    for ranks in asked.ranks:
        for name, tree in trees.items():
            rate, total, cpu = found[name][ranks] = measure(tree, ranks, asked.late)
            print(f"| {name} | {ranks:,} | {rate:.1f} | {total:,.0f} | {cpu:.0f} |", flush=True)
    if asked.svg is not None:
        draw(found, asked.svg)


if __name__ == "__main__":
    main()
