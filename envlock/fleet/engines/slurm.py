"""Slurm: `srun` in an allocation, or `srun` that requests its own.

Source: https://slurm.schedmd.com/srun.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

PROGRAMS: Sequence[str] = ("srun",)
DRIVER = ""


def is_meant(environ: Mapping[str, str], ranks: int | None) -> bool:
    """Return whether this process runs in an allocation."""
    return "SLURM_JOB_ID" in environ


def start(
    program: str, command: Sequence[str], ranks: int | None, options: Sequence[str]
) -> list[str]:
    """Return the command line; without a number of ranks, the allocation determines how many tasks
    are started.
    """
    number: list[str] = [f"--ntasks={ranks}"] if ranks is not None else []
    # Otherwise a step continues after a task has failed, and waits for it.
    return [program, "--kill-on-bad-exit=1", *number, *options, *command]
