"""Who trains and who refuses where ranks call at different times, under real launchers.

    python benchmarks/fleet_skew.py RESULTS [--only LAUNCHER ...] [--torch FOLDER] [--large]

Jobs of 3 and 8 ranks, whose first and last call are 0 or 30 s apart, rank 0 in the middle, with a time limit of 20 s,
so that a rank that counted from its own call alone would leave. All ranks are alike, or the last one has another
variable, or rank 1 never calls. A line of JSON for each job is appended to RESULTS; a job that has one is not run
again. At the end, the table of all lines is printed. The launchers are those of tests/fleet/bed.py, and Dask.

torchrun needs a folder with the unpacked packages of Debian's python3-torch, and Dask an interpreter. With `--large`,
64 ranks meet in a folder, 150 s apart, with the usual time limit.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fleet_rank import LOST, PLAN, Plan  # noqa: E402

from tests.fleet import bed  # noqa: E402
from tests.fleet.conftest import mpi_python_of, mpirun_of  # noqa: E402

RANK = ROOT / "benchmarks" / "fleet_rank.py"
SIZES, SKEWS, KINDS = (3, 8), (0, 30), ("alike", "odd", "absent")
TIMEOUT = 20.0
LARGE_SIZE, LARGE_SKEW, LARGE_TIMEOUT = 64, 150, 120.0
ALONE = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")

DRIVER = """
import os, time
from fleet_rank import LOST, read_plan, take_part
plan = read_plan()
ranks = range(plan.size)
expected = [each for each in ranks if plan.kind != "absent" or each != LOST]
"""
"""What the drivers of Ray and of Dask have in common."""

RAY = (
    DRIVER
    + """
import ray
from ray.cluster_utils import Cluster
small = {"num_cpus": 4, "object_store_memory": 80_000_000}
cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
cluster.add_node(**small)
ray.init(cluster.address, logging_level="ERROR")

@ray.remote(num_cpus=1)
class Worker:
    def wake(self):
        pass

    def take_part(self, rank):
        return take_part(plan, rank, is_numbered=False)

workers = [Worker.remote() for _ in ranks]
ray.get([each.wake.remote() for each in workers])  # Ray takes long to start their processes
tasks = [workers[each].take_part.remote(each) for each in ranks]
ray.get([tasks[each] for each in expected])
time.sleep(2)  # what workers print comes through the driver
os._exit(0)
"""
)

DASK = (
    DRIVER
    + """
from dask.distributed import Client, LocalCluster, wait
options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
client = Client(LocalCluster(n_workers=plan.size, **options))
workers = sorted(client.run(lambda: None))
tasks = [
    client.submit(take_part, plan, each, is_numbered=False, workers=[workers[each]])
    for each in ranks
]
wait([tasks[each] for each in expected])
os._exit(0)
"""
)

TORCH = """
mount -t overlay overlay -o "lowerdir=$1/usr:/usr" /usr
libraries=/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries/blas:$libraries/lapack:$1/lib/x86_64-linux-gnu
shift
exec /usr/bin/python3 -m torch.distributed.run --standalone --redirects 9:0 --tee 9:0 "$@"
"""
"""Debian's alternatives are not set up in a folder, so the folders of BLAS and LAPACK are named. Under Python 3.11, its
torchrun 1.13 does not understand its own default of the two options, which say what rank 9 writes to files: nothing.
"""

Run = Callable[[Plan], bed.Started]


@dataclass(frozen=True)
class Launcher:
    """What starts a job.

    Attributes:
        name: as in the table.
        engine: how its ranks meet.
        run: starts a job and waits for its end.
    """

    name: str
    engine: str
    run: Run


@dataclass(frozen=True)
class Row:
    """How a job ended.

    Attributes:
        launcher, size, skew, kind: which job.
        trained, refused: how many ranks.
        codes: the exit codes of those that refused.
        printed: how often each line `envlock: ...` was printed.
        code: the exit code of the launcher.
        seconds: of the whole job.
        waited: the most seconds that a call took.
    """

    launcher: str
    size: int
    skew: float
    kind: str
    trained: int
    refused: int
    codes: list[int]
    printed: dict[str, int]
    code: int
    seconds: float
    waited: float

    @property
    def key(self) -> tuple[str, int, float, str]:
        """Which job it was."""
        return self.launcher, self.size, self.skew, self.kind

    def to_text(self) -> str:
        """Return the cell of the table."""
        if self.trained == self.size:
            said = f"{self.trained} train"
        elif self.trained:
            said = f"**split: {self.trained} train, {self.refused} refuse**"
        else:
            said = f"{self.refused} refuse"
        reports = sum(self.printed.values())
        return f"{said}; {reports} printed" if reports else said


def prepare(plan: Plan) -> dict[str, str]:
    """Return the variables of a job."""
    return {
        PLAN: json.dumps(asdict(plan)),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'benchmarks'}",
        "ENVLOCK_FLEET_JOB": plan.name,
    }


def run_files(plan: Plan) -> bed.Started:
    """Start each rank as a process of its own; the absent one is ended with the others."""
    environ = {**os.environ, **prepare(plan), "ENVLOCK_FLEET_SIZE": str(plan.size)}
    start = time.monotonic()
    with tempfile.TemporaryFile("w+") as errors:
        started = {}
        for rank in range(plan.size):
            own = {**environ, "ENVLOCK_FLEET_RANK": str(rank)}
            words = [sys.executable, str(RANK)]
            started[rank] = subprocess.Popen(words, cwd=plan.folder, env=own, stderr=errors)
        lost = started.pop(LOST) if plan.kind == "absent" else None
        codes = [each.wait() for each in started.values()]
        if lost is not None:
            lost.kill()
            lost.wait()
        errors.seek(0)
        return bed.Started(max(codes), "", errors.read(), time.monotonic() - start)


def make_mpi(kind: str) -> Run:
    """Return what starts ranks with the mpirun of an MPI."""
    start = mpirun_of(kind)
    words = [mpi_python_of(kind), RANK]

    def run(plan: Plan) -> bed.Started:
        # MPICH's mpiexec waits for a rank that hangs.
        limit = {
            "MPIEXEC_TIMEOUT": str(round(plan.skew + 3 * plan.timeout)),
            "ENVLOCK_FLEET_JOB": plan.name,
        }
        command = ["mpirun", "-n", str(plan.size), *words]
        return start(command, Path(plan.folder), {**prepare(plan), **limit})

    return run


def make_slurm(cluster: bed.Slurm, python: str | Path) -> Run:
    """Return what starts ranks with srun, on as many nodes as there are."""
    start = ["srun", "--quiet", "--kill-on-bad-exit=1"]

    def run(plan: Plan) -> bed.Started:
        size = [f"-N{min(plan.size, bed.NODES)}", f"-n{plan.size}"]
        return cluster.run([*start, *size, python, RANK], Path(plan.folder), prepare(plan))

    return run


def make_driver(words: Sequence[str | Path], program: str) -> Run:
    """Return what starts a program that starts the ranks."""

    def run(plan: Plan) -> bed.Started:
        environ = {**prepare(plan), "RAY_DEDUP_LOGS": "0"}
        return bed.run([*words, "-c", program], Path(plan.folder), environ, timeout=300)

    return run


def make_ray() -> Run:
    """Return what starts ranks as tasks of Ray, in name spaces of their own."""
    mount = ["sh", "-c", 'mount -t tmpfs none /dev/shm; exec "$0" "$@"']
    network = [sys.executable, str(ROOT / "tests/fleet/network.py")]
    return make_driver([*ALONE, *mount, *network, bed.python("ray")], RAY)


def make_torchrun(root: str) -> Run:
    """Return what starts ranks with the torchrun of a folder."""
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", TORCH, "sh", root]

    def run(plan: Plan) -> bed.Started:
        own = ["--nproc_per_node", str(plan.size), "--no_python", sys.executable, str(RANK)]
        return bed.run([*words, *own], Path(plan.folder), prepare(plan), timeout=300)

    return run


def make_launchers(stack: ExitStack, asked: argparse.Namespace) -> Iterator[Launcher]:
    """Yield the launchers that are asked for."""
    makers: dict[str, tuple[str, Callable[[], Run]]] = {
        "files": ("files", lambda: run_files),
        "Slurm": ("files", lambda: make_slurm(stack.enter_context(bed.slurm()), sys.executable)),
        "Open MPI": ("mpi", lambda: make_mpi("openmpi")),
        "MPICH": ("mpi", lambda: make_mpi("mpich")),
        "Ray": ("files", make_ray),
        "torchrun": ("files", lambda: make_torchrun(asked.torch)),
        "Dask": ("files", lambda: make_driver([asked.dask.absolute()], DASK)),
    }
    for name, (engine, make) in makers.items():
        if (not asked.only or name in asked.only) and (name != "torchrun" or asked.torch):
            yield Launcher(name, engine, make())


def measure(launcher: Launcher, size: int, skew: float, kind: str, timeout: float) -> Row:
    """Run a job, and return how it ended."""
    with tempfile.TemporaryDirectory(prefix="el-skew.", dir="/tmp") as folder:
        Path(folder, "pyproject.toml").touch()
        name = Path(folder).name
        plan = Plan(name, folder, launcher.engine, size, skew, timeout, kind)
        done = launcher.run(plan)
        ends = [file.read_text().split() for file in Path(folder).glob("end-*")]
    if not ends:
        raise SystemExit(f"no rank has ended: {done.errors[-3000:]}")
    refused = [int(code) for end, code, _ in ends if end == "refused"]
    printed = Counter(re.findall(r"envlock: (.*)", done.output + done.errors))
    return Row(
        launcher=launcher.name,
        size=size,
        skew=skew,
        kind=kind,
        trained=len(ends) - len(refused),
        refused=len(refused),
        codes=sorted(set(refused)),
        printed=dict(printed),
        code=done.code,
        seconds=round(done.seconds, 1),
        waited=max((float(seconds) for *_, seconds in ends), default=0.0),
    )


def iter_jobs(launcher: Launcher, *, large: bool) -> Iterator[tuple[int, float, str, float]]:
    """Yield size, skew, kind and time limit of the jobs of a launcher."""
    for kind in KINDS:
        for size in SIZES:
            for skew in SKEWS:
                yield size, skew, kind, TIMEOUT
        if large and launcher.name == "files":
            yield LARGE_SIZE, LARGE_SKEW, kind, LARGE_TIMEOUT


def read_rows(file: Path) -> list[Row]:
    """Return the jobs that have been run."""
    if not file.exists():
        return []
    return [Row(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


def print_table(rows: Sequence[Row]) -> None:
    """Print a line for each launcher and kind of job."""
    columns = sorted({(row.size, row.skew) for row in rows})
    heads = [f"{size} ranks, {skew:.0f} s" for size, skew in columns]
    print(f"| launcher | ranks are | {' | '.join(heads)} | exit code |")
    print("|---|---|" + "---|" * len(heads) + "--:|")
    cells: Mapping[tuple[str, int, float, str], Row] = {row.key: row for row in rows}
    for name in dict.fromkeys(row.launcher for row in rows):
        for kind in KINDS:
            found = [cells.get((name, size, skew, kind)) for size, skew in columns]
            if not any(found):
                continue
            texts = [row.to_text() if row else "" for row in found]
            codes = ", ".join(sorted({str(row.code) for row in found if row}))
            print(f"| {name} | {kind} | {' | '.join(texts)} | {codes} |")


def main() -> None:
    """Run the jobs that have no line yet, and print the table."""
    parser = argparse.ArgumentParser(description="Who trains where ranks come at different times.")
    parser.add_argument("results", type=Path, help="a file of lines, one for each job")
    parser.add_argument("--only", nargs="*", help="these launchers only")
    parser.add_argument("--torch", help="a folder with Debian's python3-torch, unpacked")
    parser.add_argument(
        "--dask", type=Path, help="an interpreter with Dask", default=Path(sys.executable)
    )
    parser.add_argument("--large", action="store_true", help="also 64 ranks")
    asked = parser.parse_args()
    done = {row.key for row in read_rows(asked.results)}
    with ExitStack() as stack:
        for launcher in make_launchers(stack, asked):
            for size, skew, kind, timeout in iter_jobs(launcher, large=asked.large):
                if (launcher.name, size, skew, kind) in done:
                    continue
                row = measure(launcher, size, skew, kind, timeout)
                text = json.dumps(asdict(row))
                with asked.results.open("a", encoding="utf-8") as stream:
                    stream.write(text + "\n")
                print(text, flush=True)
    print_table(read_rows(asked.results))


if __name__ == "__main__":
    main()
