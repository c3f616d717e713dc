"""Launchers and worker pools as they really are: installed from the package index, with a lock of that environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Command

ROOT = Path(__file__).resolve().parents[2]
CHECK = "import envlock\n\n\ndef check(_):\n    try:\n        return envlock.assert_locked().to_text()\n"
CHECK += "    except envlock.EnvironmentMismatch as error:\n        return error.report.to_text()\n"
POOL = "from check import check\nfrom joblib import Parallel, delayed\n\nprint(check(0))\n"
POOL += "print(*Parallel(n_jobs=2)(delayed(check)(n) for n in range(2)), sep='\\n')\n"


@pytest.fixture
def environment(envlock: Command, tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """Return what makes an environment with a package, and a lock of it, and gives the variables to use it with."""

    def made(package: str) -> dict[str, str]:
        subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
        python = tmp_path / "env" / "bin" / "python"
        subprocess.run([str(python), "-m", "pip", "install", "-q", package], check=True, capture_output=True)
        (tmp_path / "check.py").write_text(CHECK, encoding="utf-8")
        (tmp_path / "pool.py").write_text(POOL, encoding="utf-8")
        path = f"{python.parent}:{os.environ['PATH']}"
        environ = {"PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
        done = envlock("capture", "--python", str(python), environ={"PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stderr
        return environ

    return made


def run(words: list[str], folder: Path, environ: dict[str, str]) -> str:
    done = subprocess.run(words, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_workers_of_joblib(environment: Callable[[str], dict[str, str]], tmp_path: Path) -> None:
    environ = environment("joblib")
    python = str(tmp_path / "env" / "bin" / "python")
    said = run([python, "pool.py"], tmp_path, environ).splitlines()
    assert said[0] == "matches under policy strict"
    named = "environ.MKL_NUM_THREADS, environ.OMP_NUM_THREADS, environ.OPENBLAS_NUM_THREADS"
    line = f"  i this process is a worker of joblib (ENABLE_IPC is set), which explains {named}"
    assert said.count(line) == 2
    assert said.count("does not match under policy strict: 3 facts differ") == 2
    own = {**environ, **{f"{name}_NUM_THREADS": "3" for name in ("OMP", "MKL", "OPENBLAS")}}
    assert "worker of joblib" not in run([python, "pool.py"], tmp_path, own)


@pytest.mark.slow
def test_ranks_of_open_mpi(environment: Callable[[str], dict[str, str]], envlock: Command, tmp_path: Path) -> None:
    environ = environment("openmpi")
    environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    code = "from check import check; print(check(0))"
    job = ["mpirun", "-n", "2", "--oversubscribe", "--bind-to", "core", "python", "-c", code]
    said = run(job, tmp_path, environ)
    assert said.count("i Open MPI started this process (OMPI_COMM_WORLD_SIZE is set) and explains environ.LD_LIB") == 2
    python = str(tmp_path / "env" / "bin" / "python")
    recipe = ["mpirun", "-n", "1", "--bind-to", "core", sys.executable, "-m", "envlock", "capture", "--python", python]
    run(recipe, tmp_path, {**environ, "PYTHONPATH": str(ROOT)})
    assert run(job, tmp_path, environ) == "matches under policy strict\n" * 2
