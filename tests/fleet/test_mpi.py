"""Ranks that MPI numbers, and the end of a job that has lost one. MPI itself is played."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.fleet import mpi
from envlock.fleet.fleet_assertion import place
from envlock.fleet.folder import Folder
from tests.fleet.test_ranks import MPIRUN, SBATCH, SRUN


def start(monkeypatch: pytest.MonkeyPatch, rank: int, size: int, *, ended: bool = False) -> list[int]:
    """Let mpi4py be imported and MPI be started; return the exit codes with which it aborts the job."""
    aborted: list[int] = []
    comm = SimpleNamespace(Get_rank=lambda: rank, Get_size=lambda: size, Abort=aborted.append)
    found = SimpleNamespace(COMM_WORLD=comm, Is_initialized=lambda: True, Is_finalized=lambda: ended)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", found)
    return aborted


@pytest.mark.parametrize(
    ("environ", "world", "found"),
    [
        pytest.param({"ENVLOCK_FLEET_JOB": "j"}, (3, 8), (3, 8), id="a launcher without variables"),
        pytest.param({**SBATCH, "ENVLOCK_FLEET_JOB": "j"}, (3, 8), (3, 8), id="mpiexec in an allocation"),
        pytest.param(MPIRUN, (3, 8), (3, 8), id="as the launcher says"),
        pytest.param(SRUN, (0, 1), (5, 8), id="srun without --mpi"),
        pytest.param({**MPIRUN, "ENVLOCK_FLEET_RANK": "1", "ENVLOCK_FLEET_SIZE": "2"}, (3, 8), (1, 2), id="by hand"),
    ],
)
def test_mpi_numbers_a_process_that_it_connects_with_others(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    environ: dict[str, str],
    world: tuple[int, int],
    found: tuple[int, int],
) -> None:
    start(monkeypatch, *world)
    rank, board = place(str(tmp_path), environ)
    assert (rank.rank, rank.size) == found
    assert isinstance(board, Folder)


@pytest.mark.parametrize("ended", [True, False])
def test_mpi_that_has_ended_is_not_asked(monkeypatch: pytest.MonkeyPatch, ended: bool) -> None:
    start(monkeypatch, 3, 8, ended=ended)
    assert bool(mpi.get_numbers()) is not ended


def test_a_job_that_has_lost_a_rank_is_aborted_when_this_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """MPI_Finalize would wait for the lost rank; without MPI, there is nothing to abort."""
    registered: list[Any] = []
    monkeypatch.setattr("atexit.register", lambda *call: registered.append(call))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
    mpi.abort_at_end()
    assert registered == []
    aborted = start(monkeypatch, 0, 8)
    mpi.abort_at_end()
    ((abort, world),) = registered
    abort(world)
    assert aborted == [mpi.LOST]
