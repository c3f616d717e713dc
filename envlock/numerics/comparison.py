"""Which runs have the same bits, and where they first have not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from envlock.numerics.results import Run, Value


@dataclass(frozen=True)
class Quantity:
    """One quantity at one step in all runs: `weights` stands for all of `weights/0/kernel`, `weights/1/bias` ..."""

    step: int
    name: str
    members: tuple[str, ...]
    values: tuple[tuple[Value | None, ...], ...]
    """For each run, the value of each member; None where the run has it not."""

    @property
    def classes(self) -> tuple[int, ...]:
        """For each run the number of its result: equal numbers mean equal bits."""
        numbers: dict[tuple[Value | None, ...], int] = {}
        return tuple(numbers.setdefault(row, len(numbers)) for row in self.values)

    @property
    def distinct(self) -> int:
        """How many different results there are."""
        return len(set(self.values))

    @property
    def differing(self) -> list[str]:
        """The members that are not the same in all runs."""
        return [name for n, name in enumerate(self.members) if len({row[n] for row in self.values}) > 1]


def steps(runs: Sequence[Run]) -> list[int]:
    """Return the steps that any of the runs has, in order."""
    return sorted({step for run in runs for step in run.steps})


def at(runs: Sequence[Run], step: int) -> list[Quantity]:
    """Return the quantities at a step, in the order in which they were recorded."""
    names: dict[str, dict[str, None]] = {}
    for run in runs:
        for member in run.steps.get(step, {}):
            names.setdefault(member.partition("/")[0], {})[member] = None
    return [
        Quantity(
            step, name, tuple(members), tuple(tuple(run.steps.get(step, {}).get(m) for m in members) for run in runs)
        )
        for name, members in names.items()
    ]


def first(runs: Sequence[Run]) -> Quantity | None:
    """Return the first quantity of the first step at which not all runs have the same bits; None: they are equal."""
    return next(differing(runs), None)


def differing(runs: Sequence[Run]) -> Iterator[Quantity]:
    """Yield every quantity that differs, in order; equal steps are passed over at the cost of a comparison."""
    for step in steps(runs):
        reference = runs[0].steps.get(step)
        if any(run.steps.get(step) != reference for run in runs):
            yield from (quantity for quantity in at(runs, step) if quantity.distinct > 1)


def groups(runs: Sequence[Run]) -> list[list[str]]:
    """Return the labels of runs that have the same bits at every step, the largest group first."""
    found: list[tuple[Run, list[str]]] = []
    for run in runs:
        for other, labels in found:
            if other.steps == run.steps:
                labels.append(run.label)
                break
        else:
            found.append((run, [run.label]))
    return sorted((labels for _, labels in found), key=len, reverse=True)
