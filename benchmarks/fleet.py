"""What it costs to reduce the statements of many ranks, and to make one.

    python benchmarks/fleet.py [RANKS ...]

Statements of three environments (all but 11 ranks, 10 ranks, 1 rank; 92 packages), with another kernel on each node,
are written to a folder as `envlock fleet report` writes them, and a child process reads, compares and reports them.
CPU time and the most memory of that child are measured. A rank costs what `assert_fleet()` costs beyond
`assert_locked()`, each in a process of its own.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SIZES = (1_000, 10_000, 100_000)
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
    for rank in range(ranks):
        odd = 2 if rank == ranks // 2 else 1 if rank % (ranks // 10) == 7 else 0
        facts = {"packages": packages, "environ": environs[odd], "system": {"kernel_release": f"6.1.{rank // 8}"}}
        who = Rank(rank, ranks, f"n{rank // 8:05}", "7.0", "Slurm")
        statement, document = stated(who, Snapshot(facts, {}), {}, "a" * 32)
        if not (Path(board.path) / f"facts.{statement['root']}.json").exists():
            board.keep(statement, document)
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


def main() -> None:
    """Print two tables."""
    print("| ranks | read, compare and report, CPU s | most memory, MB |\n|--:|--:|--:|")
    for ranks in [int(word) for word in sys.argv[1:]] or SIZES:
        seconds, memory = measure(ranks)
        print(f"| {ranks:,} | {seconds:.2f} | {memory:.0f} |", flush=True)
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
