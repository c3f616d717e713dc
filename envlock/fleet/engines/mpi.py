"""MPI: mpirun of Open MPI, mpiexec of MPICH.

Source: https://docs.open-mpi.org/en/v5.0.x/man-openmpi/man1/mpirun.1.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

PROGRAMS: Sequence[str] = ("mpirun", "mpiexec")
DRIVER = ""


def is_meant(environ: Mapping[str, str], ranks: int | None) -> bool:
    """Return whether the number of ranks is known: mpirun has no other source for it."""
    return ranks is not None


def start(
    program: str, command: Sequence[str], ranks: int | None, options: Sequence[str]
) -> list[str]:
    """Return the command line; without a number, mpirun starts one rank for each slot."""
    number: list[str] = ["-n", str(ranks)] if ranks is not None else []
    return [program, *number, *options, *command]
