"""What repeated runs say together, as a report. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.numerics import failure, results
from envlock.numerics.matrices import MEASURES, Matrix
from envlock.numerics.results import FINISHED, Quantity, Run
from envlock.runtime.report import ERROR, UNKNOWN, WARNING, Finding, Report, clean, count
from envlock.runtime.where import Where

SOURCE = "docs/reference/repeat.md"
TITLES = {
    "runs-differ": "runs give different bits",
    failure.RULE: failure.TITLE,
    "run-missing": "a run is missing",
}


@dataclass(frozen=True)
class Outcome:
    """The finished runs, compared.

    Attributes:
        runs: those that are compared, in order.
        failed: those that raised or died.
        cut: the runs are compared at the steps that all of them finished, those that failed among them.
        wanted: how many were asked for.
        first: the first quantity that differs.
        shown: every quantity of the steps that are shown: the first that differs and the last, unless told otherwise.
        matrices: of those of them that differ.
        environments: the versions of what computed, by the name of the set of runs.
        interrupted: Ctrl-C ended it before all runs were made.
        about: lines that say which sets of runs are compared.
        help: what to do about a run that failed.
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
    cut: bool = False
    help: str = "`--output` shows what the script prints."

    @property
    def finished(self) -> int:
        """How many runs came to their end."""
        return sum(run.end == FINISHED for run in self.runs)

    @property
    def alone(self) -> bool:
        """Whether one run was wanted, to be kept for later, and finished."""
        return self.finished == self.wanted == 1

    @property
    def missing(self) -> int:
        """How many runs were not made."""
        return self.wanted - self.finished - len(self.failed)


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
        return "1 run, and no other to compare it with"
    if len(outcome.runs) < 2:
        return f"nothing to compare: {runs} finished"
    number = len(results.steps(outcome.runs))
    at = "1 step" if number == 1 else f"all {number} steps"
    at = f"the {count(number, 'step')} that all of them finished" if outcome.cut else at
    if outcome.first is None:
        return f"the same bits in {runs}, at {at}"
    where = f", at {at}" if outcome.cut else ""
    return f"not the same: {runs} gave {len(results.groups(outcome.runs))} different results{where}"


def _findings(outcome: Outcome) -> Iterator[Finding]:
    if outcome.first is not None:
        yield _difference(outcome, outcome.first)
    too_few = len(outcome.runs) < 2 and not outcome.alone
    yield from failure.findings(_failures(outcome), SOURCE, outcome.help)
    if outcome.missing or (too_few and not outcome.failed):
        why = "interrupted" if outcome.interrupted else "the process had crashed"
        yield Finding(
            "run-missing",
            UNKNOWN if too_few else WARNING,
            Where(operation="runs"),
            f"{count(outcome.missing, 'run')} missing: {why}",
            "With fewer runs, more of them can agree by chance.",
            "Run it again.",
            SOURCE,
        )


def _failures(outcome: Outcome) -> list[failure.Failure]:
    return failure.grouped((run.label, run.message or "", run.traceback) for run in outcome.failed)


def _difference(outcome: Outcome, first: Quantity) -> Finding:
    names = [clean(name) for name in first.differing]
    some = f" ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"
    inside = some if names != [first.name] else ""
    return Finding(
        "runs-differ",
        ERROR,
        Where(operation=f"step {first.step}, {first.name}"),
        f"first at step {first.step} (of {len(results.steps(outcome.runs))}), in {clean(first.name)}{inside}",
        "An operation, a seed or the data differs from run to run, so no two trainings can be compared.",
        "`envlock diverge` finds the first operation that differs, and its line.",
        SOURCE,
    )


def _attachments(outcome: Outcome) -> dict[str, Any]:
    """Return what is shown beside the findings; an infinite distance is "Infinity", and null where there is none."""
    labels = [run.label for run in outcome.runs]
    return {
        "about": list(outcome.about),
        "interrupted": outcome.interrupted,
        "environments": outcome.environments,
        "runs": [
            _run(run)
            for run in (*(each for each in outcome.runs if each.end == FINISHED), *outcome.failed)
        ],
        "failures": [each.to_json() for each in _failures(outcome)],
        "cut": outcome.cut,
        "not_made": outcome.missing,
        "steps": results.steps(outcome.runs),
        "first": None
        if outcome.first is None
        else {"step": outcome.first.step, "quantity": outcome.first.name},
        "groups": results.groups(outcome.runs),
        "differing": [
            {
                "step": each.step,
                "quantity": each.name,
                "members": each.differing,
                "results": each.distinct,
            }
            for each in results.differing(outcome.runs)
        ],
        "equal": [
            {"step": each.step, "quantity": each.name}
            for each in outcome.shown
            if each.distinct == 1
        ],
        "matrices": [_matrix(matrix, labels) for matrix in outcome.matrices],
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "run": run.label,
        "end": run.end,
        "message": run.message,
        "seconds": run.seconds,
        "steps": len(run.steps),
    }


def _matrix(matrix: Matrix, labels: list[str]) -> dict[str, Any]:
    quantity = matrix.quantity
    cells = {
        name: [[_cell(cell) for cell in row] for row in matrix.cells[name]] for name in MEASURES
    }
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
