"""What it costs to reduce the statements of many ranks, and to make one.

    python benchmarks/fleet.py [RANKS ...] [--svg FILE] [--launchers]

Statements of three environments (all but 11 ranks, 10 ranks, 1 rank; 92 packages), with another kernel on each node,
are written to a folder as `envlock fleet report` writes them, and a child process reads, compares and reports them.
CPU time and the most memory of that child are measured. A rank costs what `assert_fleet()` costs beyond
`assert_locked()`, each in a process of its own. With `--launchers`, a job with an odd rank is refused under each
launcher of the tests (8 ranks; 3 workers of TensorFlow; 4 workers on 2 nodes of Ray): the time from the call of the
last rank until the last has raised, and until the launcher, or the last process, has ended.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SIZES = (1_000, 10_000, 25_000, 50_000, 100_000)
ROUNDS = 9

CHECK = """
import sys, time
start = time.process_time()
from envlock.fleet.folder import read_statements
from envlock.fleet.reduction import reduction
statements, documents = read_statements(sys.argv[1], "7.0")
report, _ = reduction(statements, documents, int(sys.argv[2]))
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
    from envlock.fleet.folder import Folder
    from envlock.fleet.ranks import Rank
    from envlock.fleet.statement import canonical, make_statement
    from envlock.runtime.collectors import Snapshot

    board = Folder(str(folder), "7.0")
    packages = {f"package-{number}": {"version": "1.0"} for number in range(92)}
    environs = [{"TF_ENABLE_ONEDNN_OPTS": value} for value in (None, "0", "1")]
    made: dict[tuple[int, int], Any] = {}
    for rank in range(ranks):
        odd = 2 if rank == ranks // 2 else 1 if rank % (ranks // 10) == 7 else 0
        if (odd, rank // 8) not in made:
            facts = {
                "packages": packages,
                "environ": environs[odd],
                "system": {"kernel_release": f"6.1.{rank // 8}"},
            }
            who = Rank(rank, ranks, f"n{rank // 8:05}", "7.0")
            made = {(odd, rank // 8): make_statement(who, Snapshot(facts, {}), {}, "a" * 32)}
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
import json, os, sys, time
if sys.argv[1] == "mpi":
    from mpi4py import MPI
if sys.argv[1] == "tf":
    import tensorflow as tf
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
import envlock
names = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "WORKER")
rank = next(os.environ[name] for name in names if name in os.environ)
start = time.time()
try:
    envlock.assert_fleet(engine=sys.argv[1])
except envlock.EnvironmentMismatch as error:
    open("refused-" + rank, "w").write(f"{start} {time.time()}")
    os._exit(error.exit_code) if sys.argv[1] == "tf" else sys.exit(error.exit_code)
"""
RAY = """
import json, os, sys, time
import ray
from ray.cluster_utils import Cluster
small = {"num_cpus": 2, "object_store_memory": 80_000_000}
cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
cluster.add_node(**small)
ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")

@ray.remote(num_cpus=1)
def work(rank):
    import os, time
    who = {"RANK": rank, "SIZE": 4, "JOB": "bench"}
    os.environ.update({"ENVLOCK_FLEET_" + name: str(value) for name, value in who.items()})
    if rank == 3:
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    import envlock
    start = time.time()
    try:
        envlock.assert_fleet(engine="files", folder=sys.argv[1])
    except envlock.EnvironmentMismatch:
        return start, time.time()

times = ray.get([work.remote(rank) for rank in range(4)])
print(json.dumps([*times, time.time()]), flush=True)
os._exit(0)
"""


def spans(folder: Path, ranks: int, ended: float, errors: str) -> tuple[float, float]:
    """Return the seconds from the call of the last rank until the last has raised, and until all has ended."""
    times = [
        [float(word) for word in file.read_text().split()] for file in folder.glob("refused-*")
    ]
    if len(times) != ranks:
        raise SystemExit(f"{len(times)} of {ranks} ranks were refused: {errors}")
    last = max(begin for begin, _ in times)
    return max(end for _, end in times) - last, ended - last


def of_tensorflow(folder: Path) -> tuple[float, float]:
    """Return both spans of three workers that meet by TensorFlow's coordination service."""
    from tests.fleet import bed

    first = bed.free_ports(3)
    workers = [f"127.0.0.1:{first + each}" for each in range(3)]
    python = Path(os.environ.get("ENVLOCK_TEST_TENSORFLOW", ROOT / ".venvs/tensorflow/bin/python"))

    def worker(rank: int) -> bed.Started:
        config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
        odd = {"NVIDIA_TF32_OVERRIDE": "0"} if rank == 2 else {}
        own = {
            "TF_CONFIG": json.dumps(config),
            "WORKER": str(rank),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            **odd,
        }
        return bed.run([python, "-c", REFUSED, "tf"], folder, own, timeout=300)

    with ThreadPoolExecutor(3) as pool:
        ends = list(pool.map(worker, range(3)))
    return spans(folder, 3, time.time(), ends[0].errors)


def of_ray(folder: Path) -> tuple[float, float]:
    """Return both spans of four workers on two nodes of Ray; they do not end: the driver has heard of all."""
    from tests.fleet import bed

    python = bed.python("ray")
    alone: list[str | Path] = ["unshare", "--net", python, ROOT / "tests/fleet/network.py"]
    done = bed.run([*alone, python, "-c", RAY, folder / "shared"], folder, {}, timeout=300)
    if not done.output.strip().endswith("]"):
        raise SystemExit(f"Ray: {done.errors}")
    *times, ended = json.loads(done.output.splitlines()[-1])
    for rank, each in enumerate(times):
        (folder / f"refused-{rank}").write_text(" ".join(map(str, each)))
    return spans(folder, 4, ended, done.errors)


def refusals(folder: Path) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield each launcher and engine, and both spans."""
    from tests.fleet import bed
    from tests.fleet.conftest import ODD, mpi_python_of, mpirun_of

    def emptied() -> Path:
        (folder / "pyproject.toml").touch()
        for file in folder.glob("refused-*"):
            file.unlink()
        return folder

    def seconds(
        run: Callable[..., bed.Started], start: Sequence[str], python: str | Path, engine: str
    ) -> tuple[float, float]:
        words = [*start, ODD, python, "-c", REFUSED, engine]
        done = run(words, emptied(), {"ODD": "TF_ENABLE_ONEDNN_OPTS=0"})
        return spans(folder, 8, time.time(), done.errors)

    with bed.slurm() as slurm:
        yield (
            "Slurm, `files`",
            seconds(slurm.run, ["srun", "-K1", "-N4", "-n8"], sys.executable, "files"),
        )
    for kind in ("openmpi", "mpich"):
        for engine in ("files", "mpi"):
            yield (
                f"{kind}, `{engine}`",
                seconds(mpirun_of(kind), ["mpirun", "-n", "8"], mpi_python_of(kind), engine),
            )
    yield "TensorFlow, `tf`", of_tensorflow(emptied())
    yield "Ray, `files`", of_ray(emptied())


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
    parser.add_argument(
        "--launchers", action="store_true", help="only measure refusals under real launchers"
    )
    asked = parser.parse_args()
    if asked.launchers:
        print(
            "| launcher, engine | last call to last exception, s | to the end of all, s |\n|---|--:|--:|"
        )
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                for name, (raised, ended) in refusals(Path(folder)):
                    print(f"| {name} | {raised:.2f} | {ended:.2f} |", flush=True)
        return
    of_ranks(asked.ranks, asked.svg)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "envlock", "capture", "-q", "--without-tensorflow"],
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
        print(
            f"| `{name}` | {statistics.median(times):.1f} | {min(times):.1f} | {max(times):.1f} |"
        )


if __name__ == "__main__":
    main()
