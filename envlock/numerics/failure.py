"""Runs that failed, as findings. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.runtime.report import UNKNOWN, Finding, clean
from envlock.runtime.where import Where

RULE = "run-failed"
TITLE = "a run failed"


@dataclass(frozen=True)
class Failure:
    """Runs that raised or died alike.

    Attributes:
        runs: their numbers, or labels.
        message: what was raised and where, or how the process ended.
        traceback: of the user's own code; empty where a process died.
    """

    runs: tuple[str, ...]
    message: str
    traceback: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return {"runs": list(self.runs), "message": self.message, "traceback": self.traceback}


def grouped(each: Iterable[tuple[str, str, str]]) -> list[Failure]:
    """Return the failures of single runs (label, message, traceback), those alike together."""
    found: dict[tuple[str, str], list[str]] = {}
    for label, message, traceback in each:
        found.setdefault((message, traceback), []).append(label)
    return [Failure(tuple(labels), *key) for key, labels in found.items()]


def findings(failures: Sequence[Failure], source: str, fix: str) -> Iterator[Finding]:
    """Yield a finding for each failure, in order: what a run would have shown is unknown."""
    for each in failures:
        names = (
            f"runs {', '.join(each.runs[:-1])} and {each.runs[-1]}"
            if len(each.runs) > 1
            else f"run {each.runs[0]}"
        )
        yield Finding(
            RULE,
            UNKNOWN,
            Where(operation=names),
            f"{names} failed: {clean(each.message)}",
            "What a run would have computed after its failure is unknown.",
            fix,
            source,
        )
