"""What the runs say together: as lines for people, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.numerics import results
from envlock.numerics.matrices import MEASURES, Matrix
from envlock.numerics.results import Quantity, Run
from envlock.runtime.report import REPORT_VERSION, clean

COLUMNS = 10
"""As many runs fit on a line of a terminal; of more the first are shown."""

UNITS = {
    "sum": "sum of the absolute differences",
    "max": "largest difference",
    "norm": "epsilons of the largest magnitude",
}

Line = tuple[str, str]


@dataclass(frozen=True)
class Story:
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
    def match(self) -> bool:
        """Whether all runs came to their end with the same bits; a single one that was wanted does, too."""
        return self.first is None and not self.failed and (len(self.runs) > 1 or self.alone)

    @property
    def alone(self) -> bool:
        """Whether one run was wanted, to be kept for later, and came to its end."""
        return len(self.runs) == self.wanted == 1

    def lines(self) -> Iterator[Line]:
        """Yield (style, text): the verdict, then a matrix for each quantity that differs."""
        yield from (("plain", clean(line)) for line in self.about)
        yield from self._verdict()
        for run in self.failed:
            yield "error", f"  x run {run.label} failed: {clean(run.message or '')}"
        missing = self.wanted - len(self.runs) - len(self.failed)
        if missing:
            why = "interrupted" if self.interrupted else "the process had died"
            yield "warning", f"  ! {_count(missing, 'run')} not made: {why}"
        found = {id(matrix.quantity): matrix for matrix in self.matrices}
        for step in dict.fromkeys(quantity.step for quantity in self.shown):
            yield "title", f"step {step}"
            yield from _equal([quantity for quantity in self.shown if quantity.step == step and quantity.distinct == 1])
            for quantity in self.shown:
                if quantity.step == step and id(quantity) in found:
                    yield from _matrix(found[id(quantity)], [run.label for run in self.runs])

    def _verdict(self) -> Iterator[Line]:
        number = len(results.steps(self.runs))
        if self.alone:
            yield "plain", "1 run, and nothing yet to compare it with"
        elif len(self.runs) < 2:
            yield "error", f"nothing to compare: {_count(len(self.runs), 'run')} came to an end"
        elif self.first is None:
            where = "1 step" if number == 1 else f"all {number} steps"
            yield "plain", f"the same bits in {_count(len(self.runs), 'run')}, at {where}"
        else:
            groups = results.groups(self.runs)
            yield "title", f"not the same: {_count(len(self.runs), 'run')} gave {len(groups)} different results"
            names = [clean(name) for name in self.first.differing]
            some = f" ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"
            inside = some if names != [self.first.name] else ""
            yield "error", f"  x first at step {self.first.step} (of {number}), in {clean(self.first.name)}{inside}"
            if len(groups) < len(self.runs):
                alike = "; ".join(_labels(group) for group in groups if len(group) > 1)
                yield "note", f"      alike: {alike}"

    def to_json(self) -> dict[str, Any]:
        """Return it for programs; a distance that is infinite is the word "Infinity", and null where there is none."""
        return {
            "report_version": REPORT_VERSION,
            "match": self.match,
            "interrupted": self.interrupted,
            "environments": self.environments,
            "runs": [_run(run) for run in (*self.runs, *self.failed)],
            "not_made": self.wanted - len(self.runs) - len(self.failed),
            "steps": results.steps(self.runs),
            "first": None if self.first is None else {"step": self.first.step, "quantity": self.first.name},
            "groups": results.groups(self.runs),
            "differing": [
                {"step": each.step, "quantity": each.name, "members": each.differing, "results": each.distinct}
                for each in results.differing(self.runs)
            ],
            "equal": [{"step": each.step, "quantity": each.name} for each in self.shown if each.distinct == 1],
            "matrices": [_matrix_json(matrix, [run.label for run in self.runs]) for matrix in self.matrices],
        }


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _labels(group: Sequence[str]) -> str:
    shown = " ".join(group[:COLUMNS])
    return shown if len(group) <= COLUMNS else f"{shown} ... ({len(group)})"


def _equal(quantities: Sequence[Quantity]) -> Iterator[Line]:
    if quantities:
        yield "plain", f"  all zero: {', '.join(clean(quantity.name) for quantity in quantities)}"


def _matrix(matrix: Matrix, labels: list[str]) -> Iterator[Line]:
    """Yield one matrix, and in one line the other measures of it."""
    quantity, cells = matrix.quantity, matrix.cells
    shown = labels[:COLUMNS]
    number = f"{quantity.distinct} different of {len(labels)}"
    members = f", {len(quantity.differing)} of {len(quantity.members)} arrays" if len(quantity.members) > 1 else ""
    yield "plain", f"  {clean(quantity.name)}: {UNITS['sum']} ({number}{members})"
    width = max(8, *(len(label) + 1 for label in shown))
    yield "note", " " * (4 + width) + "".join(f"{label:>{width}}" for label in shown)
    for a, label in enumerate(shown):
        row = "".join(f"{_number(quantity, a, b, cells['sum'][a][b]):>{width}}" for b in range(len(shown)))
        yield "plain", f"    {label:>{width}}{row}"
    if len(labels) > len(shown):
        yield "note", f"    {len(labels) - len(shown)} more runs are in --format json and --html"
    most, norm = _largest(cells["max"]), _largest(cells["norm"])
    if most > 0:
        relative = f", {norm:.1e} {UNITS['norm']}" if norm > 0 else ""
        yield "note", f"    {UNITS['max']} {most:.1e}{relative}"
    for note in matrix.notes:
        yield "note", f"    {clean(note)}"


def _number(quantity: Quantity, a: int, b: int, cell: float | None) -> str:
    """Return a distance; `0` for the same bits, `0*` where only bits differ that no value shows, `-` for none."""
    if cell is None:
        return "-"
    if cell == 0:
        return "0" if quantity.values[a] == quantity.values[b] else "0*"
    return f"{cell:.1e}"


def _largest(cells: list[list[float | None]]) -> float:
    return max((cell for row in cells for cell in row if cell is not None), default=0.0)


def _run(run: Run) -> dict[str, Any]:
    return {"run": run.label, "end": run.end, "message": run.message, "seconds": run.seconds, "steps": len(run.steps)}


def _matrix_json(matrix: Matrix, labels: list[str]) -> dict[str, Any]:
    cells = {name: [[_cell(cell) for cell in row] for row in matrix.cells[name]] for name in MEASURES}
    return {
        "step": matrix.quantity.step,
        "quantity": matrix.quantity.name,
        "members": list(matrix.quantity.members),
        "runs": labels,
        "notes": list(matrix.notes),
        **cells,
    }


def _cell(cell: float | None) -> float | str | None:
    return "Infinity" if cell is not None and math.isinf(cell) else cell
