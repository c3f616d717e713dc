"""`fleet run` starts a check and then the job: a launcher that takes other nodes the second time starts nothing odd."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from envlock.fleet.engines import ENGINES
from tests.fleet import bed
from tests.fleet.bed import ROOT

LAUNCHER = """\
#!/bin/sh
# A launcher of two ranks that starts each step on the next two nodes; those of ODD have another variable.
step=$(cat steps 2> /dev/null || echo 0)
echo $((step + 1)) > steps
while [ "${1#-}" != "$1" ]; do
    [ "$1" = -n ] && shift
    shift
done
rank=0
while [ $rank -lt 2 ]; do
    node=n$((2 * step + rank + 1))
    (
        case " $ODD " in *" $node "*) export TF_ENABLE_ONEDNN_OPTS=0 ;; esac
        export ENVLOCK_FLEET_NODE=$node ENVLOCK_FLEET_RANK=$rank ENVLOCK_FLEET_SIZE=2
        export ENVLOCK_FLEET_JOB=${ENVLOCK_FLEET_JOB:-step-$step}
        "$@"
        echo $? > code-$rank
    ) &
    rank=$((rank + 1))
done
wait
cat code-* | sort -n | tail -n 1 > code
exit $(cat code)
"""
TRAIN = 'echo "$ENVLOCK_FLEET_NODE trains"'


def run(folder: Path, engine: str, odd: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `fleet run` with a launcher that takes n1 and n2 for the check, and n3 and n4 for the job."""
    (folder / "pyproject.toml").touch()
    for program in ENGINES[engine].PROGRAMS:
        (folder / program).write_text(LAUNCHER)
        (folder / program).chmod(0o755)
    words = [sys.executable, "-m", "envlock", "fleet", "run", "--launcher", engine, "-n", "2", *options]
    plain = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    environ = {**plain, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "ODD": odd}
    return subprocess.run(
        [*words, "--", "sh", "-c", TRAIN], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )


STARTING = [name for name, launcher in ENGINES.items() if launcher.PROGRAMS]


@pytest.mark.processes
@pytest.mark.parametrize("engine", STARTING)
def test_the_ranks_of_the_job_are_compared_where_they_run(tmp_path: Path, engine: str) -> None:
    done = run(tmp_path, engine, "")
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["n3 trains", "n4 trains"]), done.stderr
    assert done.stderr.startswith("2 ranks alike\n2 ranks on 2 nodes, job run-")
    (tmp_path / "steps").unlink()
    done = run(tmp_path, engine, "n3")
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "  x n3 (rank 0): environ.TF_ENABLE_ONEDNN_OPTS: n3 (rank 0) 0, here unset\n" in done.stderr or (
        "  x n4 (rank 1): environ.TF_ENABLE_ONEDNN_OPTS: n3 (rank 0) 0, here unset\n" in done.stderr
    )


@pytest.mark.processes
@pytest.mark.parametrize("engine", STARTING)
def test_alike_and_not_as_locked(tmp_path: Path, engine: str) -> None:
    """Both nodes of the job differ from the lockfile in one way."""
    captured = bed.run([sys.executable, "-m", "envlock", "capture", "--without-tensorflow"], tmp_path, {})
    assert captured.code == 0, captured.errors
    done = run(tmp_path, engine, "n3 n4")
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "  x all ranks: environ.TF_ENABLE_ONEDNN_OPTS: locked unset, live 0\n" in done.stderr


NODE = """\
#!/bin/sh
# The check holds its nodes until somebody else waits for them.
while [ -n "$SLURMD_NODENAME" ] && [ ! -e "{queued}" ]; do sleep 0.1; done
if [ "$SLURMD_NODENAME" = n3 ]; then export TF_ENABLE_ONEDNN_OPTS=0; fi
exec {python} "$@"
"""


@pytest.mark.fleet
@pytest.mark.slow
@pytest.mark.processes
def test_slurm_gives_the_job_other_nodes_than_the_check(slurm: bed.Slurm, tmp_path: Path) -> None:
    """Without an allocation, on a cluster that others use: n3 and n4 are busy during the check, n1 and n2 after it."""
    (tmp_path / "pyproject.toml").touch()
    python, train = tmp_path / "python", tmp_path / "train.sh"
    queued = tmp_path / "queued"
    python.write_text(NODE.format(python=sys.executable, queued=queued))
    train.write_text("#!/bin/sh\necho trains on $SLURMD_NODENAME\n")
    for script in (python, train):
        script.chmod(0o755)
    busy = ["sbatch", "--exclusive", "-N2", "-o", "/dev/null", "--wrap"]
    slurm.run([*busy, "sleep 4", "-w", "n[3-4]"], tmp_path)
    options = ["--launcher", "slurm", "-n", "2", "--options", "-N2 --exclusive"]
    words: list[str | Path] = [
        sys.executable,
        "-m",
        "envlock",
        "fleet",
        "run",
        "--python",
        python,
        *options,
        "--",
        train,
    ]
    ends: list[bed.Started] = []
    running = threading.Thread(target=lambda: ends.append(slurm.run(words, tmp_path)))
    running.start()
    limit = time.monotonic() + 20
    while "R python" not in slurm.run(["squeue", "-h", "-o", "%t %j"], tmp_path).output and time.monotonic() < limit:
        time.sleep(0.1)
    slurm.run([*busy, "sleep 12", "-w", "n[1-2]"], tmp_path)
    queued.touch()
    running.join()
    (done,) = ends
    assert "2 ranks alike\n" in done.errors, done.errors
    assert (done.code, done.output) == (1, ""), done.errors
    assert "environ.TF_ENABLE_ONEDNN_OPTS: n3 (rank 0) 0, here unset" in done.errors
