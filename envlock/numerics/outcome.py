"""What repeated runs say together, as a report. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.numerics import results
from envlock.numerics.matrices import MEASURES, Matrix
from envlock.numerics.results import Quantity, Run
from envlock.runtime.report import ERROR, UNKNOWN, WARNING, Finding, Report, Where, clean, count

SOURCE = "docs/reference/repeat.md"
TITLES = {
    "runs-differ": "runs give other bits",
    "run-failed": "a run failed",
    "run-missing": "a run was not made",
}


@dataclass(frozen=True)
class Outcome:
    """The finished runs, compared.

    Attributes:
        runs: those that are compared, in order.
        failed: those that raised or died.
        wanted: how many were asked for.
        first: the first quantity that differs.
        shown: every quantity of the steps that are shown: the first that differs and the last, unless told otherwise.
        matrices: of those of them that differ.
        environments: the versions of what computed, by the name of the set of runs.
        interrupted: Ctrl-C ended it before all runs were made.
        about: lines that say which sets of runs are compared.
    """

    runs: Sequence[Run]
    failed: Sequence[Run]
    wanted: int
    first: Quantity | None
    shown: Sequence[Quantity]
    matrices: Sequence[Matrix]
    environments: dict[str, dict[str, str]]
    interrupted: bool = False
    about: tuple[str, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether one run was wanted, to be kept for later, and finished."""
        return len(self.runs) == self.wanted == 1

    @property
    def missing(self) -> int:
        """How many runs were not made."""
        return self.wanted - len(self.runs) - len(self.failed)


def report(outcome: Outcome, subject: str = "results") -> Report:
    """Return the report: a finding for what differs, for every failed run and for runs that were not made.

    `subject` is the script that ran, or what is compared.
    """
    return Report(
        _findings(outcome),
        command="repeat",
        headline=_headline(outcome),
        subject=subject,
        titles=TITLES,
        attachments=_attachments(outcome),
    )


def _headline(outcome: Outcome) -> str:
    runs = count(len(outcome.runs), "run")
    if outcome.alone:
        return "1 run, and nothing yet to compare it with"
    if len(outcome.runs) < 2:
        return f"nothing to compare: {runs} finished"
    if outcome.first is None:
        number = len(results.steps(outcome.runs))
        return f"the same bits in {runs}, at {'1 step' if number == 1 else f'all {number} steps'}"
    return f"not the same: {runs} gave {len(results.groups(outcome.runs))} different results"


def _findings(outcome: Outcome) -> Iterator[Finding]:
    if outcome.first is not None:
        yield _difference(outcome, outcome.first)
    too_few = len(outcome.runs) < 2 and not outcome.alone
    for run in outcome.failed:
        yield Finding(
            "run-failed",
            UNKNOWN if too_few else ERROR,
            Where(operation=f"run {run.label}"),
            f"run {run.label} failed: {clean(run.message or '')}",
            "A run that fails shows nothing that could be compared.",
            "`--output` shows what the script prints.",
            SOURCE,
        )
    if outcome.missing or (too_few and not outcome.failed):
        why = "interrupted" if outcome.interrupted else "the process had died"
        yield Finding(
            "run-missing",
            UNKNOWN if too_few else WARNING,
            Where(operation="runs"),
            f"{count(outcome.missing, 'run')} not made: {why}",
            "Fewer runs show less: two can agree by chance.",
            "Run it again.",
            SOURCE,
        )


def _difference(outcome: Outcome, first: Quantity) -> Finding:
    names = [clean(name) for name in first.differing]
    some = f" ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"
    inside = some if names != [first.name] else ""
    return Finding(
        "runs-differ",
        ERROR,
        Where(operation=f"step {first.step}, {first.name}"),
        f"first at step {first.step} (of {len(results.steps(outcome.runs))}), in {clean(first.name)}{inside}",
        "An operation, a seed or the data differs from run to run, and so does every comparison of two trainings.",
        "`envlock diverge` names the first operation that differs, and its line.",
        SOURCE,
    )


def _attachments(outcome: Outcome) -> dict[str, Any]:
    """Return what is shown beside the findings; an infinite distance is "Infinity", and null where there is none."""
    labels = [run.label for run in outcome.runs]
    return {
        "about": list(outcome.about),
        "interrupted": outcome.interrupted,
        "environments": outcome.environments,
        "runs": [_run(run) for run in (*outcome.runs, *outcome.failed)],
        "not_made": outcome.missing,
        "steps": results.steps(outcome.runs),
        "first": None if outcome.first is None else {"step": outcome.first.step, "quantity": outcome.first.name},
        "groups": results.groups(outcome.runs),
        "differing": [
            {"step": each.step, "quantity": each.name, "members": each.differing, "results": each.distinct}
            for each in results.differing(outcome.runs)
        ],
        "equal": [{"step": each.step, "quantity": each.name} for each in outcome.shown if each.distinct == 1],
        "matrices": [_matrix(matrix, labels) for matrix in outcome.matrices],
    }


def _run(run: Run) -> dict[str, Any]:
    return {"run": run.label, "end": run.end, "message": run.message, "seconds": run.seconds, "steps": len(run.steps)}


def _matrix(matrix: Matrix, labels: list[str]) -> dict[str, Any]:
    quantity = matrix.quantity
    cells = {name: [[_cell(cell) for cell in row] for row in matrix.cells[name]] for name in MEASURES}
    return {
        "step": quantity.step,
        "quantity": quantity.name,
        "members": list(quantity.members),
        "differing": quantity.differing,
        "runs": labels,
        "results": list(quantity.classes),
        "notes": list(matrix.notes),
        **cells,
    }


def _cell(cell: float | None) -> float | str | None:
    return "Infinity" if cell is not None and math.isinf(cell) else cell
