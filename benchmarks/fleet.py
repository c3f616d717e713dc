"""What it costs to reduce the statements of many ranks, and to make one.

    python benchmarks/fleet.py [RANKS ...] [--svg FILE] [--launchers | --aws]

Statements of three environments (all but 11 ranks, 10 ranks, 1 rank; 92 packages), with another kernel on each node,
are written to a folder as `envlock fleet report` writes them, and a child process reads, compares and reports them.
CPU time and the most memory of that child are measured. A rank costs what `assert_fleet()` costs beyond
`assert_locked()`, each in a process of its own. With `--launchers`, a job with an odd rank is refused under each
launcher of the tests (8 ranks; 4 workers on 2 nodes of Ray): the time from the call of the
last rank until the last has raised, and until the launcher, or the last process, has ended. With `--aws`, nodes have
names such as those of AWS, a third of them has 30 other packages, and the bytes of the report are counted, too.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SIZES = (1_000, 10_000, 25_000, 50_000, 100_000)
ROUNDS = 9

CHECK = """
import sys, time
start = time.process_time()
from envlock.fleet.digest import digest
from envlock.fleet.folder import read_statements
from envlock.fleet.reduction import reduction
from envlock.fleet.statement import canonical
statements, documents = read_statements(sys.argv[1], "7.0")
report, _ = reduction(statements, documents, int(sys.argv[2]))
short = digest(report, "`--format json`")
texts = [report.to_text(), short.to_text(), canonical(short.to_json())]
seconds = time.process_time() - start
assert report.exit_code == 1 and len(documents) == int(sys.argv[3]), texts[0]
print(seconds, texts[1].count("\\n") + 1, *[len(text.encode()) for text in texts])
"""
"""Prints CPU seconds; lines of the digest; and bytes of the whole text, of the digest's, and of its JSON."""
CALLS = {
    "assert_locked()": "import envlock; envlock.assert_locked()",
    "assert_fleet()": "import envlock; envlock.assert_fleet()",
}


@dataclass(frozen=True)
class Job:
    """Ranks, and which of them differ.

    Attributes:
        ranks: how many there are, 8 on a node.
        is_aws: whether nodes have names such as those of AWS, and a third of them is odd; else two kinds of ranks, 11 in
            all, are odd.
    """

    ranks: int
    is_aws: bool = False

    @property
    def environments(self) -> int:
        """How many there are."""
        return 2 if self.is_aws else 3

    def name_node(self, node: int) -> str:
        """Return the name of a node."""
        if self.is_aws:
            parts = f"{node % 7}-{node // 251}-{node * 37 % 251}"
            return f"ip-10-{parts}.eu-west-1.compute.internal"
        return f"n{node:05}"

    def pick(self, rank: int) -> int:
        """Return which environment a rank has."""
        if self.is_aws:
            return int(rank // 8 % 3 == 1)
        if rank == self.ranks // 2:
            return 2
        return int(rank % (self.ranks // 10) == 7)

    def make_facts(self, environment: int, node: int) -> dict[str, Any]:
        """Return the facts of an environment on a node, each of which has a kernel of its own."""
        odd = 30 if self.is_aws and environment else 0
        versions = [{"version": "2.0" if each < odd else "1.0"} for each in range(92)]
        value = None if self.is_aws else (None, "0", "1")[environment]
        return {
            "packages": {f"package-{each}": version for each, version in enumerate(versions)},
            "environ": {"TF_ENABLE_ONEDNN_OPTS": value},
            "system": {"kernel_release": f"6.1.{node}"},
        }


def write(folder: Path, job: Job) -> None:
    """Write the statements of a job."""
    from envlock.fleet.folder import Folder
    from envlock.fleet.ranks import Rank
    from envlock.fleet.statement import canonical, make_statement
    from envlock.runtime.collectors import Snapshot

    board = Folder(str(folder), "7.0")
    made: dict[tuple[int, int], Any] = {}
    for rank in range(job.ranks):
        which = (job.pick(rank), rank // 8)
        if which not in made:
            who = Rank(rank, job.ranks, job.name_node(rank // 8), "7.0")
            live = Snapshot(job.make_facts(*which), {})
            made = {which: make_statement(who, live, {}, "a" * 32)}
        statement, document = made[which]
        if not (Path(board.path) / f"facts.{statement['root']}.json").exists():
            board.keep(statement, document)
        statement = {**statement, "rank": rank}
        (Path(board.path) / f"rank-{rank}.json").write_text(canonical(statement), encoding="ascii")


def measure(job: Job) -> tuple[float, float, list[int]]:
    """Return the CPU seconds of a reduction, start of Python left out; the most memory of its process in MB; and lines
    and bytes as CHECK prints them.
    """
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), job)
        argv = [sys.executable, "-c", CHECK, name, str(job.ranks), str(job.environments)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
            assert child.stdout is not None
            seconds, *sizes = child.stdout.read().split()
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"the reduction exited with {child.returncode}")
        return float(seconds), used.ru_maxrss / 1024, [int(size) for size in sizes]


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
import envlock
names = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
rank = next(os.environ[name] for name in names if name in os.environ)
start = time.time()
try:
    envlock.assert_fleet()
except envlock.EnvironmentMismatch as error:
    open("refused-" + rank, "w").write(f"{start} {time.time()}")
    sys.exit(error.exit_code)
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
        envlock.assert_fleet(folder=sys.argv[1])
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
        seconds, memory, _ = measure(Job(ranks))
        found[ranks] = (seconds, memory)
        print(f"| {ranks:,} | {found[ranks][0]:.2f} | {found[ranks][1]:.0f} |", flush=True)
    if file is not None:
        draw(found, file)


def of_aws(sizes: Sequence[int]) -> None:
    """Print the table of jobs whose nodes have names such as those of AWS."""
    heads = ("CPU s", "most memory, MB", "whole report, bytes", "printed, bytes", "its lines")
    print(f"| ranks | {' | '.join(heads)} | sent to each rank, bytes |\n|{'--:|' * 7}")
    for ranks in sizes:
        seconds, memory, (lines, whole, printed, sent) = measure(Job(ranks, is_aws=True))
        row = f"| {ranks:,} | {seconds:.2f} | {memory:.0f} | {whole:,} | {printed:,} | {lines} | {sent:,} |"
        print(row, flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="What it costs to compare many ranks.")
    parser.add_argument("ranks", nargs="*", type=int, default=SIZES)
    parser.add_argument("--svg", type=Path, help="draw a chart into this file")
    parser.add_argument(
        "--launchers", action="store_true", help="only measure refusals under real launchers"
    )
    parser.add_argument("--aws", action="store_true", help="only measure nodes with names of AWS")
    asked = parser.parse_args()
    if asked.aws:
        of_aws(asked.ranks)
        return
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
