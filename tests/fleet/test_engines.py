"""Real launchers, with four nodes on this machine: jobs that start, and jobs that do not because of one node."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.test_clocks import FAKETIME
from tests.conftest import absent
from tests.exhaustive import exhaustive
from tests.fakes.elf_writer import write_elf
from tests.fakes.tensorflow_tree import Installation
from tests.fleet import bed
from tests.fleet.conftest import MPIS, ODD, RANKS, Job, mpi_python_of
from tests.machines import distribution

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.processes]

PROGRAM = Path(__file__).with_name("program.py")
PATIENCE = 60
"""Seconds within which every rank has refused, whose own limit is 4 or 8: a busy machine starts eight of them slowly."""
REFUSED = "does not match: 2 of 8 ranks differ (rank 0 has printed the report)"


def began(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.glob("began-*"))


def refusals(folder: Path) -> dict[str, tuple[str, float, str]]:
    """Return the exit code, the seconds and the message of each rank that did not start."""
    found = {}
    for file in folder.glob("refused-*"):
        code, seconds, message = file.read_text().split(" ", 2)
        found[file.name.partition("-")[2]] = (code, float(seconds), message)
    return found


@pytest.fixture
def python(job: Job, request: pytest.FixtureRequest) -> str:
    """Return an interpreter for the program; that of MPI has mpi4py."""
    kind = next((kind for kind in MPIS if kind in request.node.name), None)
    return sys.executable if kind is None else str(mpi_python_of(kind))


def test_ranks_that_are_alike_start(job: Job, python: str, tmp_path: Path) -> None:
    done = job(python, PROGRAM, "files")
    assert (done.code, len(began(tmp_path))) == (0, RANKS), done.errors
    assert done.errors == ""


def odd_package(folder: Path) -> dict[str, str]:
    for version, name in (("1.0", "one"), ("2.0", "two")):
        distribution(folder / name, "thing", version)
    return {"PYTHONPATH": f"{folder}/one:{bed.ROOT}", "ODD": f"PYTHONPATH={folder}/two:{bed.ROOT}"}


def odd_library(folder: Path) -> dict[str, str]:
    """Return variables that lead n3 to another cuDNN than that of the wheels of TensorFlow."""
    made = Installation(folder / "tf")
    made.everything()
    made.cudnn(folder / "other", "9.1.0")
    # Without a driver, no CUDA outside of the environment counts.
    write_elf(folder / "other/lib/libcuda.so.1")
    return {"PYTHONPATH": f"{made.site}:{bed.ROOT}", "ODD": f"LD_LIBRARY_PATH={folder}/other/lib"}


VARIABLE = {"ODD": "TF_ENABLE_ONEDNN_OPTS=0"}
ODDITIES: dict[str, tuple[Callable[[Path], dict[str, str]], str]] = {
    "variable": (
        lambda _: {"ODD": "TF_ENABLE_ONEDNN_OPTS=0"},
        "environ.TF_ENABLE_ONEDNN_OPTS: most ranks unset, here 0",
    ),
    "threads": (lambda _: {"ODD": "TF_NUM_INTRAOP_THREADS=7"}, "cpu.intra_op_threads: most ranks "),
    "package": (odd_package, "packages.thing.version: most ranks 1.0, here 2.0"),
    "library": (odd_library, "another CUDA: cudnn 9.3.0 -> 9.1.0 ("),
}


@pytest.mark.parametrize("oddity", ODDITIES)
def test_an_odd_node_keeps_all_ranks_from_starting(job: Job, python: str, tmp_path: Path, oddity: str) -> None:
    prepare, fact = ODDITIES[oddity]
    done = job(python, PROGRAM, "files", **prepare(tmp_path / "odd"))
    assert (done.code, began(tmp_path)) == (1, []), done.errors
    assert f"n3 (ranks 4-5): {fact}" in done.errors
    assert done.errors.count("does not match: 2 of 8 ranks differ\n") == 1
    codes = {(code, message) for code, _, message in refusals(tmp_path).values()}
    assert codes == {("1", REFUSED)}


@exhaustive
def test_a_program_that_has_started_mpi_meets_in_the_folder_too(
    mpirun: Callable[..., bed.Started], mpi_python: Path, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    words = ["mpirun", "-n", "8", ODD, mpi_python, PROGRAM, "mpi"]
    done = mpirun(words, tmp_path, {})
    assert (done.code, len(began(tmp_path)), done.errors) == (0, RANKS, "")
    for file in tmp_path.glob("began-*"):
        file.unlink()
    done = mpirun(words, tmp_path, {"ODD": "TF_ENABLE_ONEDNN_OPTS=0"})
    assert (done.code, began(tmp_path)) == (1, []), done.errors
    assert "n3 (ranks 4-5): environ.TF_ENABLE_ONEDNN_OPTS: most ranks unset, here 0" in done.errors


@pytest.mark.parametrize("odd", ["", "TF_ENABLE_ONEDNN_OPTS=0"])
def test_srun_without_mpi_is_no_job_of_single_ranks(slurm: bed.Slurm, tmp_path: Path, odd: str) -> None:
    """Each task is the only rank of an MPI of its own; the launcher numbers them, and they meet."""
    (tmp_path / "pyproject.toml").touch()
    words: list[str | Path] = ["srun", "-N4", "-n8", ODD, mpi_python_of("openmpi"), PROGRAM, "mpi"]
    done = slurm.run(words, tmp_path, {"ODD": odd} if odd else {})
    if odd:
        assert (done.code, began(tmp_path)) == (1, []), done.errors
        assert {(code, message) for code, _, message in refusals(tmp_path).values()} == {("1", REFUSED)}
    else:
        assert (done.code, len(began(tmp_path))) == (0, RANKS), done.errors


@exhaustive
@pytest.mark.parametrize("starts", [(4, 0, 7), (0, 3, 3)])
def test_ranks_that_come_at_different_times_all_start(
    slurm: bed.Slurm, tmp_path: Path, starts: tuple[int, ...]
) -> None:
    """As pods do that pull images; each rank waits for rank 0, and then as long as rank 0 does."""
    (tmp_path / "pyproject.toml").touch()
    wait = " ".join(f"{rank}) sleep {seconds};;" for rank, seconds in enumerate(starts))
    late = f'case $SLURM_PROCID in {wait} esac; exec "$@"'
    words: list[str | Path] = ["srun", "-n3", "sh", "-c", late, "sh", sys.executable, PROGRAM, "files"]
    done = slurm.run(words, tmp_path, {"FLEET_TIMEOUT": "6"})
    assert (done.code, len(began(tmp_path)), done.errors) == (0, 3, "")


LOST = {"lost": "sleep 100", "stopped": "kill -STOP $$"}


@exhaustive
@pytest.mark.parametrize("engine", ["files", "mpi"])
@pytest.mark.parametrize("how", LOST)
def test_a_rank_that_never_answers_holds_nobody(
    mpirun: Callable[..., bed.Started], mpi_kind: str, mpi_python: Path, tmp_path: Path, how: str, engine: str
) -> None:
    """MPICH's mpiexec waits for a rank that has not started MPI, for as long as MPIEXEC_TIMEOUT says."""
    (tmp_path / "pyproject.toml").touch()
    words = ["mpirun", "-n", "8", ODD, mpi_python, PROGRAM, engine]
    if engine == "mpi":  # it stops once MPI has started: before, MPI itself would wait for it
        words = ["mpirun", "-n", "8", mpi_python, "-c", LATE.format(program=PROGRAM, stop=how == "stopped")]
    job = {"ENVLOCK_FLEET_JOB": "mpich"} if mpi_kind == "mpich" else {}
    lost = {**job, "ODD_RANKS": "5", "ODD_COMMAND": LOST[how], "FLEET_TIMEOUT": "8", "MPIEXEC_TIMEOUT": "14"}
    done = mpirun(words, tmp_path, lost)
    # When MPIEXEC_TIMEOUT ends it, MPICH's own proxy can fail first, and the code is then anything.
    codes = (0, 255) if (mpi_kind, engine) == ("mpich", "files") else (4,)
    assert (done.code in codes, began(tmp_path)) == (True, []), done.errors
    assert "  ? no report from rank 5\n" in done.errors
    assert {each for each, _, _ in refusals(tmp_path).values()} == {"4"}
    assert all(seconds < PATIENCE for _, seconds, _ in refusals(tmp_path).values())


LATE = """
import os, signal, sys, time
from mpi4py import MPI
if MPI.COMM_WORLD.Get_rank() == 5:
    os.kill(os.getpid(), signal.SIGSTOP) if {stop} else time.sleep(100)
sys.argv[1:] = ["mpi"]
exec(open("{program}").read())
"""


@exhaustive
def test_a_task_of_slurm_that_hangs_is_ended(slurm: bed.Slurm, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    words: list[str | Path] = ["srun", "--kill-on-bad-exit=1", "-N4", "-n8", ODD, sys.executable, PROGRAM, "files"]
    environ = {"ODD_RANKS": "5", "ODD_COMMAND": "kill -STOP $$", "FLEET_TIMEOUT": "8"}
    done = slurm.run(words, tmp_path, environ)
    assert (done.code != 0, began(tmp_path)) == (True, []), done.errors
    assert "  ? no report from rank 5\n" in done.errors
    assert done.seconds < 60


@exhaustive
def test_when_the_reducer_is_killed_the_others_give_up(slurm: bed.Slurm, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    words: list[str | Path] = ["srun", "--kill-on-bad-exit=0", "-N4", "-n8", ODD, sys.executable, PROGRAM, "files"]
    environ = {"ODD_RANKS": "0", "ODD_COMMAND": "kill -9 $$", "FLEET_TIMEOUT": "4"}
    done = slurm.run(words, tmp_path, environ)
    found = refusals(tmp_path)
    assert (done.code != 0, len(found), began(tmp_path)) == (True, 7, []), done.errors
    silent = "cannot decide: no report from rank 0 within 4 s"
    assert {(code, message.partition(" (")[0]) for code, _, message in found.values()} == {("4", silent)}
    assert done.errors.count(f"envlock: {silent}\n") == 1
    assert all(seconds < PATIENCE for _, seconds, _ in found.values())


def test_two_halves_have_no_majority(mpirun: Callable[..., bed.Started], tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    words = ["mpirun", "-n", "4", ODD, sys.executable, PROGRAM, "files"]
    done = mpirun(words, tmp_path, {"ODD_RANKS": "2 3", "ODD": "TF_ENABLE_ONEDNN_OPTS=0"})
    assert (done.code, began(tmp_path)) == (1, []), done.errors
    assert "does not match: 2 of 4 ranks differ, and no environment has a majority\n" in done.errors
    assert "n2 (ranks 2-3): environ.TF_ENABLE_ONEDNN_OPTS: n1 (ranks 0-1) unset, here 0" in done.errors


def test_two_jobs_at_once_in_one_folder(slurm: bed.Slurm, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    ends: dict[str, bed.Started] = {}

    def start(name: str, **environ: str) -> None:
        ends[name] = slurm.run(["srun", "-N4", "-n4", ODD, sys.executable, PROGRAM, "files"], tmp_path, environ)

    odd = {"ODD_RANKS": "2", "ODD": "TF_ENABLE_ONEDNN_OPTS=0"}
    threads = [
        threading.Thread(target=start, args=("good",)),
        threading.Thread(target=start, args=("odd",), kwargs=odd),
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert {name: each.code for name, each in ends.items()} == {"good": 0, "odd": 1}
    assert len(began(tmp_path)) == 4


@exhaustive
@pytest.mark.parametrize("clock", ["-10y", "+10y", "+0 x0.1"])
def test_a_node_with_another_clock_is_alike(job: Job, python: str, tmp_path: Path, clock: str) -> None:
    """On one node, time itself is another, or slower: that of files and of waiting, too."""
    if not FAKETIME.exists():
        absent("no libfaketime: `apt-get install libfaketime`")
    faked = f"export FAKETIME='{clock}'; exec {python} {PROGRAM} files"
    done = job(python, PROGRAM, "files", LD_PRELOAD=str(FAKETIME), FAKETIME="+0", ODD_COMMAND=faked)
    assert (done.code, len(began(tmp_path))) == (0, RANKS), done.errors
    apart = abs(float((tmp_path / "began-4").read_text()) - float((tmp_path / "began-0").read_text()))
    assert (apart > 9 * 365 * 86400) == clock.endswith("y")


@exhaustive
def test_a_preflight_and_then_the_job(fleet_run: Job, tmp_path: Path) -> None:
    done = fleet_run("sh", "-c", "echo began")
    assert (done.code, done.output.split()) == (0, ["began"] * RANKS), done.errors
    assert done.errors.startswith("8 ranks alike\n8 ranks on 4 nodes, job run-")
    # The ranks of the job have met there; the reports of the check before it are gone.
    (met,) = (tmp_path / ".envlock-fleet").iterdir()
    assert (met.name.startswith("run-"), met.suffix) == (True, "")


def test_a_preflight_and_no_job(fleet_run: Job) -> None:
    done = fleet_run("sh", "-c", "echo began", ODD="TF_ENABLE_ONEDNN_OPTS=0")
    assert (done.code, done.output) == (1, ""), done.errors
    assert "x n3 (ranks 4-5): environ.TF_ENABLE_ONEDNN_OPTS: most ranks unset, here 0" in done.errors


@exhaustive
def test_a_lockfile_from_outside_the_launcher_is_explained_once(fleet_run: Job, tmp_path: Path) -> None:
    """mpirun of the wheel sets LD_LIBRARY_PATH on all ranks; srun changes nothing here."""
    captured = bed.run([sys.executable, "-m", "envlock", "capture", "--without-tensorflow"], tmp_path, {})
    assert captured.code == 0, captured.errors
    done = fleet_run("true")
    if "mpirun" not in done.errors:
        assert (done.code, done.errors.splitlines()[0]) == (0, "matches under policy strict: 8 ranks alike")
        return
    assert done.code == 1
    marks = [line for line in done.errors.splitlines() if line.startswith("  x ")]
    assert len(marks) == 1, done.errors
    assert marks[0].startswith(
        "  x all ranks: Open MPI started this process (OMPI_COMM_WORLD_SIZE is set) and explains "
    )
    assert "Capture under the launcher: `mpirun -n 1 --bind-to core envlock capture`" in done.errors


@exhaustive
def test_reports_in_a_batch_script(slurm: bed.Slurm, tmp_path: Path) -> None:
    """The reports of yesterday's job lie in the same folder."""
    (tmp_path / "pyproject.toml").touch()
    script = tmp_path / "job.sh"
    envlock = f"{sys.executable} -m envlock fleet"
    script.write_text(
        f"#!/bin/sh\nsrun {ODD} {envlock} report --to reports\n"
        f"{envlock} check reports --vetted nodes.txt > out.txt 2> err.txt\necho $? > code\n"
    )
    submit: list[str | Path] = ["sbatch", "--wait", "-N4", "-n8", "-o", "log.txt", script]
    good = slurm.run(submit, tmp_path)
    assert (good.code, (tmp_path / "code").read_text()) == (0, "0\n"), (tmp_path / "log.txt").read_text()
    slurm.run(submit, tmp_path, {"ODD": "TF_ENABLE_ONEDNN_OPTS=0"})
    assert (tmp_path / "code").read_text() == "1\n"
    assert (tmp_path / "nodes.txt").read_text() == "n1\nn2\nn4\n"
    assert "x n3 (ranks 4-5): environ.TF_ENABLE_ONEDNN_OPTS" in (tmp_path / "out.txt").read_text()


@exhaustive
def test_a_node_that_is_dead_is_no_mismatch(tmp_path: Path) -> None:
    """A cluster of its own, as its daemon of n3 is killed."""
    (tmp_path / "pyproject.toml").touch()
    with bed.slurm() as slurm:
        os.kill(slurm.daemon("slurmd.n3"), signal.SIGKILL)
        time.sleep(0.2)
        words = [sys.executable, "-m", "envlock", "fleet", "run", "--launcher", "slurm", "-n", "8", "--options", "-N4"]
        done = slurm.run([*words, "--", "echo", "began"], tmp_path)
        assert (done.code, done.output) == (4, ""), done.errors
        assert "  ? no report from ranks 4-5\n" in done.errors
        assert "\nsrun exited with code 233: " in done.errors
        assert done.seconds < 90
