"""What it costs to reduce the statements of many ranks, and to make one.

    python benchmarks/fleet.py [RANKS ...] [--svg FILE] [--launchers]

Statements of three environments (all but 11 ranks, 10 ranks, 1 rank; 92 packages), with another kernel on each node,
are written to a folder as `envlock fleet report` writes them, and a child process reads, compares and reports them.
CPU time and the most memory of that child are measured. A rank costs what `assert_fleet()` costs beyond
`assert_locked()`, each in a process of its own. With `--launchers`, a job of 8 ranks with an odd one is refused under
each launcher of the tests: the time from the call of the last rank until the last has raised.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SIZES = (1_000, 10_000, 25_000, 50_000, 100_000)
ROUNDS = 9

CHECK = """
import sys, time
start = time.process_time()
from envlock.runtime.fleet.folder import kept
from envlock.runtime.fleet.reduction import reduced
statements, documents = kept(sys.argv[1], "7.0")
report = reduced(statements, documents, int(sys.argv[2]))
text = report.to_text()
assert report.exit_code == 1 and len(documents) == 3, text
print(time.process_time() - start)
"""
CALLS = {
    "assert_locked()": "import envlock; envlock.assert_locked()",
    "assert_fleet()": "import envlock; envlock.assert_fleet()",
}


def write(folder: Path, ranks: int) -> None:
    """Write the statements of a job."""
    from envlock.runtime.collectors import Snapshot
    from envlock.runtime.fleet.folder import Folder
    from envlock.runtime.fleet.ranks import Rank
    from envlock.runtime.fleet.statement import canonical, stated

    board = Folder(str(folder), "7.0")
    packages = {f"package-{number}": {"version": "1.0"} for number in range(92)}
    environs = [{"TF_ENABLE_ONEDNN_OPTS": value} for value in (None, "0", "1")]
    made: dict[tuple[int, int], Any] = {}
    for rank in range(ranks):
        odd = 2 if rank == ranks // 2 else 1 if rank % (ranks // 10) == 7 else 0
        if (odd, rank // 8) not in made:
            facts = {"packages": packages, "environ": environs[odd], "system": {"kernel_release": f"6.1.{rank // 8}"}}
            who = Rank(rank, ranks, f"n{rank // 8:05}", "7.0")
            made = {(odd, rank // 8): stated(who, Snapshot(facts, {}), {}, "a" * 32)}
        statement, document = made[odd, rank // 8]
        if not (Path(board.path) / f"facts.{statement['root']}.json").exists():
            board.keep(statement, document)
        statement = {**statement, "rank": rank}
        (Path(board.path) / f"rank-{rank}.json").write_text(canonical(statement), encoding="ascii")


def measure(ranks: int) -> tuple[float, float]:
    """Return the CPU seconds of a reduction, start of Python left out, and the most memory of its process in MB."""
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), ranks)
        argv = [sys.executable, "-c", CHECK, name, str(ranks)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
            assert child.stdout is not None
            seconds = float(child.stdout.read())
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"the reduction exited with {child.returncode}")
        return seconds, used.ru_maxrss / 1024


def cost(code: str, folder: str) -> float:
    """Return the CPU milliseconds of a process that runs the code in a folder with a lockfile."""
    single = {"ENVLOCK_FLEET_RANK": "0", "ENVLOCK_FLEET_SIZE": "1"}
    environ = {**os.environ, **single, "PYTHONPATH": str(ROOT)}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=environ, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


REFUSED = """
import os, sys, time
if sys.argv[1] == "mpi":
    from mpi4py import MPI
import envlock
rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK") or os.environ["SLURM_PROCID"]
start = time.time()
try:
    envlock.assert_fleet(engine=sys.argv[1])
except envlock.EnvironmentMismatch as error:
    open("refused-" + rank, "w").write(f"{start} {time.time()}")
    sys.exit(error.exit_code)
"""


def refusals(folder: Path) -> Iterator[tuple[str, float]]:
    """Yield each launcher and engine, and the seconds from the last call until all ranks have raised."""
    from tests.fleet import bed
    from tests.fleet.conftest import ODD, mpi_python_of, mpirun_of

    def seconds(run: Callable[..., bed.Started], start: Sequence[str], python: str | Path, engine: str) -> float:
        (folder / "pyproject.toml").touch()
        for file in folder.glob("refused-*"):
            file.unlink()
        words = [*start, ODD, python, "-c", REFUSED, engine]
        done = run(words, folder, {"ODD": "TF_ENABLE_ONEDNN_OPTS=0"})
        times = [[float(word) for word in file.read_text().split()] for file in folder.glob("refused-*")]
        if len(times) != 8:
            raise SystemExit(f"{len(times)} of 8 ranks were refused: {done.errors}")
        return max(end for _, end in times) - max(begin for begin, _ in times)

    with bed.slurm() as slurm:
        yield "Slurm, `files`", seconds(slurm.run, ["srun", "-K1", "-N4", "-n8"], sys.executable, "files")
    for kind in ("openmpi", "mpich"):
        for engine in ("files", "mpi"):
            yield f"{kind}, `{engine}`", seconds(mpirun_of(kind), ["mpirun", "-n", "8"], mpi_python_of(kind), engine)


def draw(found: dict[int, tuple[float, float]], file: Path) -> None:
    """Write a chart of seconds and memory over ranks."""
    from matplotlib import pyplot, rcParams

    rcParams.update({"svg.hashsalt": "envlock", "font.size": 9})
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.5))
    for axis, column, what in ((axes[0], 0, "CPU time, s"), (axes[1], 1, "most memory, MB")):
        axis.plot(list(found), [each[column] for each in found.values()], marker="o", markersize=3)
        axis.set(xlabel="ranks", ylabel=what, xlim=(0, None), ylim=(0, None))
        axis.xaxis.set_major_formatter(lambda ranks, _: f"{ranks:,.0f}")
        axis.grid(visible=True, linewidth=0.3)
    figure.tight_layout()
    figure.savefig(file, format="svg", metadata={"Date": None})


def of_ranks(sizes: Sequence[int], file: Path | None) -> None:
    """Print the table of the reduction, and draw it."""
    print("| ranks | read, compare and report, CPU s | most memory, MB |\n|--:|--:|--:|")
    found = {}
    for ranks in sizes:
        found[ranks] = measure(ranks)
        print(f"| {ranks:,} | {found[ranks][0]:.2f} | {found[ranks][1]:.0f} |", flush=True)
    if file is not None:
        draw(found, file)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="What it costs to compare many ranks.")
    parser.add_argument("ranks", nargs="*", type=int, default=SIZES)
    parser.add_argument("--svg", type=Path, help="draw a chart into this file")
    parser.add_argument("--launchers", action="store_true", help="only measure refusals under real launchers")
    asked = parser.parse_args()
    if asked.launchers:
        print("| launcher, engine | from the last call until all ranks have raised, s |\n|---|--:|")
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                for name, seconds in refusals(Path(folder)):
                    print(f"| {name} | {seconds:.2f} |", flush=True)
        return
    of_ranks(asked.ranks, asked.svg)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "envlock", "capture", "-q"],
            cwd=folder,
            check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        found: dict[str, list[float]] = {name: [] for name in CALLS}
        for _ in range(ROUNDS):
            for name, code in CALLS.items():
                found[name].append(cost(code, folder))
    print("\n| a rank, whole process, CPU ms | median | min | max |\n|---|--:|--:|--:|")
    for name, times in found.items():
        print(f"| `{name}` | {statistics.median(times):.1f} | {min(times):.1f} | {max(times):.1f} |")


if __name__ == "__main__":
    main()
