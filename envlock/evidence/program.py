"""The program of a command that runs one: a script or a function, and how it is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from envlock.guest.target import Target, parse_target


@dataclass(frozen=True)
class Program:
    """A script or a function, and how it is run.

    Attributes:
        script: `SCRIPT[:FUNCTION]`, or `PACKAGE.MODULE[:FUNCTION]`.
        args: for the script.
        seed: set all seeds to this before each run; None sets none.
        python: the interpreter; None for this one.
    """

    script: str
    args: Sequence[str] = ()
    seed: int | None = None
    python: Path | None = None

    @classmethod
    def of(cls, program: Program | str) -> Program:
        """Return the program that is meant, of which perhaps only the script is named."""
        if isinstance(program, str):
            return cls(program)
        return program

    @property
    def target(self) -> Target:
        """The script or the function; UsageError if it cannot be one."""
        return parse_target(self.script, tuple(self.args))
