"""Runs that failed, as findings. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from envlock.runtime.finding_place import Where
from envlock.runtime.report import UNKNOWN, Finding, clean

RULE = "run-failed"
TITLE = "a run failed"


@dataclass(frozen=True)
class Failure:
    """Runs that raised the same error, or crashed in the same way.

    Attributes:
        runs: their numbers, or labels.
        message: the error and its place, or how the process ended.
        traceback: that of the user's own code; empty if the process crashed.
    """

    runs: tuple[str, ...]
    message: str
    traceback: str = ""

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {"runs": list(self.runs), "message": self.message, "traceback": self.traceback}


def group_failures(failed: Iterable[tuple[str, str, str]]) -> list[Failure]:
    """Return the failures of single runs (label, message, traceback), equal ones combined."""
    labels: dict[tuple[str, str], list[str]] = {}
    for label, message, traceback in failed:
        labels.setdefault((message, traceback), []).append(label)
    failures = []
    for (message, traceback), runs in labels.items():
        failures.append(Failure(tuple(runs), message, traceback))
    return failures


def list_failures(failures: Sequence[Failure], source: str, fix: str) -> Iterator[Finding]:
    """Yield a finding for each failure, in order; the results of a failed run are unknown."""
    for failure in failures:
        if len(failure.runs) > 1:
            names = f"runs {', '.join(failure.runs[:-1])} and {failure.runs[-1]}"
        else:
            names = f"run {failure.runs[0]}"
        yield Finding(
            RULE,
            UNKNOWN,
            Where(operation=names),
            message=f"{names} failed: {clean(failure.message)}",
            why="What a run would have computed after its failure is unknown.",
            fix=fix,
            source=source,
        )
