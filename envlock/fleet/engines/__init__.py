"""The launchers of jobs: one module and one line in `ENGINES` for each."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Protocol

from envlock.fleet.engines import mpi, ray, slurm
from envlock.fleet.ranks import find_rank
from envlock.runtime.errors import OutsideError, UsageError


class Launcher(Protocol):
    """The interface of a launcher: a module with these names.

    Attributes:
        PROGRAMS: its commands, one of which must be on the PATH; empty if it needs none.
        DRIVER: the module of envlock/guest that runs a program as each rank; empty if the
            launcher itself does.
    """

    PROGRAMS: Sequence[str]
    DRIVER: str

    def is_meant(self, environ: Mapping[str, str], ranks: int | None) -> bool:
        """Return whether `auto` selects it, given the variables of this process."""
        ...

    def start(
        self, program: str, command: Sequence[str], ranks: int | None, options: Sequence[str]
    ) -> list[str]:
        """Return the command line that starts a command as each rank."""
        ...


ENGINES: Mapping[str, Launcher] = {"slurm": slurm, "mpi": mpi, "ray": ray}
"""The modules of the launchers by their names on the command line, in the order of `auto`."""

AUTO, FILES = "auto", "files"
CHOICES = (AUTO, *ENGINES, FILES)
"""`files` starts nothing: the processes that a launcher has started as ranks wait for each other in
a shared folder.
"""


def find(name: str, environ: Mapping[str, str], ranks: int | None) -> str:
    """Return the name of the engine: the given one, or the one that `auto` selects.

    Raises:
        UsageError: `auto` finds no launcher.
    """
    if name != AUTO:
        return name
    # A launcher has already started this process: starting ranks in each of its ranks would
    # multiply them.
    if _is_rank(environ):
        return FILES
    for engine, launcher in ENGINES.items():
        if launcher.is_meant(environ, ranks):
            return engine
    choices = ", ".join(CHOICES[1:])
    raise UsageError(
        "cannot find the launcher of this job: "
        "no variable of Slurm or Ray is set, and no number of ranks is named",
        hint=f"name one with `--launcher`, such as `--launcher mpi --ranks 8`: {choices}",
    )


def program_of(launcher: Launcher, environ: Mapping[str, str]) -> str:
    """Return the program of an engine; empty if it needs none.

    Raises:
        OutsideError: it is not on the PATH.
    """
    if not launcher.PROGRAMS:
        return ""
    for name in launcher.PROGRAMS:
        program = shutil.which(name, path=environ.get("PATH"))
        if program:
            return program
    raise OutsideError(
        f"cannot find {' or '.join(launcher.PROGRAMS)}",
        hint="check PATH, or load the module of the cluster",
    )


def _is_rank(environ: Mapping[str, str]) -> bool:
    """Return whether a launcher has started this process as a rank."""
    try:
        return find_rank(environ, "").size is not None
    except UsageError:
        return False
