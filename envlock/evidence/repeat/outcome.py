"""The results of repeated runs as a report. Pure."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from envlock.evidence import results
from envlock.evidence.failure import RULE, TITLE, Failure, group_failures, list_failures
from envlock.evidence.repeat.matrices import Cells, Matrix
from envlock.evidence.results import FINISHED, Quantity, Run, Value
from envlock.runtime.extent import Extent
from envlock.runtime.finding_place import Where
from envlock.runtime.report import (
    ERROR,
    UNKNOWN,
    WARNING,
    Evidence,
    Finding,
    Report,
    Severity,
    clean,
    count,
)

SOURCE = "docs/reference/repeat.md"
TITLES = {
    "runs-differ": "runs give different bits",
    RULE: TITLE,
    "run-missing": "a run is missing",
    "nothing-recorded": "runs recorded nothing",
}
DIGITS = 12
"""Of a digest, as it is shown."""
MEMBERS_NAMED = 3
"""Arrays of a quantity that a finding names."""


@dataclass(frozen=True)
class Outcome:
    """The finished runs, compared.

    Attributes:
        runs: those that are compared, in order.
        failed: those that raised an error or crashed.
        cut: the runs, some of them failed, are compared at the steps that all of them finished.
        wanted: how many were requested.
        first: the first quantity that differs.
        shown: every quantity of the steps that are shown: the first that differs and the last,
            unless others were requested.
        matrices: those of the quantities that differ.
        further: those of other steps that were cheap to compute.
        environments: the versions of the software that computed, by the name of the set of runs.
        interrupted: Ctrl-C ended it before all runs were made.
        about: lines that say which sets of runs are compared.
        help: what to do about a run that failed.
        circumstances: what was run, and how, by the name of each: program, command, seed, lockfile.
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
    circumstances: Mapping[str, str] = field(default_factory=dict)
    further: Sequence[Matrix] = ()

    @property
    def finished(self) -> int:
        """How many runs finished."""
        return sum(run.end == FINISHED for run in self.runs)

    @property
    def alone(self) -> bool:
        """Whether a single run was requested, to be stored for later, and finished."""
        return self.finished == self.wanted == 1

    @property
    def missing(self) -> int:
        """How many runs were not made."""
        return self.wanted - self.finished - len(self.failed)


@dataclass(frozen=True)
class RunSummary:
    """How one run ended; `steps` is the number of its steps."""

    run: str
    end: str | None
    message: str | None
    seconds: float | None
    steps: int


@dataclass(frozen=True)
class RecordedQuantity:
    """What the first run recorded under one name.

    Attributes:
        shape: of its array, such as `3 x 2`, or how many arrays it has.
        kind: their type, such as float32.
        steps: at how many steps.
        digest: the first digits of a SHA-256 of all its values, in order.
    """

    quantity: str
    shape: str
    kind: str
    steps: int
    digest: str


@dataclass(frozen=True)
class PlacedQuantity:
    """A quantity at a step."""

    step: int
    quantity: str


@dataclass(frozen=True)
class StepDistance:
    """The largest `sum` of all pairs of runs in a quantity that differs at a step; None without one."""

    step: int
    quantity: str
    largest: float | None

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {**asdict(self), "largest": _render_cell(self.largest)}


@dataclass(frozen=True)
class DifferingQuantity:
    """A quantity that differs at a step: in which arrays, and the number of different results."""

    step: int
    quantity: str
    members: tuple[str, ...]
    results: int

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {**asdict(self), "members": list(self.members)}


@dataclass(frozen=True)
class DistanceMatrix:
    """The distances of every run from every other in one quantity at one step.

    Attributes:
        members: all arrays of the quantity; `differing`: those that are not the same in all runs.
        runs: the labels of rows and columns.
        results: for each run the number of its result: equal numbers mean equal bits.
        notes: sentences about what the numbers do not show.
        cells: the distances by measure, run by run; None if there is no distance.
    """

    step: int
    quantity: str
    members: tuple[str, ...]
    differing: tuple[str, ...]
    runs: tuple[str, ...]
    results: tuple[int, ...]
    notes: tuple[str, ...]
    cells: Mapping[str, Cells]

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values; an infinite distance is "Infinity", because JSON has no such
        number.
        """
        document: dict[str, object] = {
            "step": self.step,
            "quantity": self.quantity,
            "members": list(self.members),
            "differing": list(self.differing),
            "runs": list(self.runs),
            "results": list(self.results),
            "notes": list(self.notes),
        }
        for measure, rows in self.cells.items():
            document[measure] = [list(map(_render_cell, row)) for row in rows]
        return document


@dataclass(frozen=True)
class RepeatEvidence(Evidence):
    """What `envlock repeat` attaches to its report.

    Attributes:
        about: lines that say which sets of runs are compared.
        interrupted: Ctrl-C ended it before all runs were made.
        environments: the versions of the software that computed, by the name of the set of runs.
        runs: those that finished, then those that failed.
        failures: those that failed, with equal failures combined.
        cut: the runs are compared at the steps that all of them finished.
        not_made: how many runs are missing.
        steps: the numbers of all steps.
        first: where the runs first differ.
        groups: the labels of runs that have the same bits at every step.
        differing: every quantity that differs, at every step.
        equal: quantities that do not differ at the steps that are shown.
        matrices: of the quantities that differ there.
        distances: of every quantity at every step at which it differs, where that was cheap to compute.
        circumstances: what was run, and how, by the name of each.
        recorded: every quantity that the first of them recorded.
    """

    about: tuple[str, ...]
    interrupted: bool
    environments: Mapping[str, Mapping[str, str]]
    runs: tuple[RunSummary, ...]
    failures: tuple[Failure, ...]
    cut: bool
    not_made: int
    steps: tuple[int, ...]
    first: PlacedQuantity | None
    groups: tuple[tuple[str, ...], ...]
    differing: tuple[DifferingQuantity, ...]
    equal: tuple[PlacedQuantity, ...]
    matrices: tuple[DistanceMatrix, ...]
    circumstances: Mapping[str, str] = field(default_factory=dict)
    recorded: tuple[RecordedQuantity, ...] = ()
    distances: tuple[StepDistance, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the runs that are compared."""
        compared: set[str] = set()
        for group in self.groups:
            compared.update(group)
        return tuple(run.run for run in self.runs if run.run in compared)

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        first = asdict(self.first) if self.first is not None else None
        return {
            "about": list(self.about),
            "interrupted": self.interrupted,
            "environments": dict(self.environments),
            "runs": list(map(asdict, self.runs)),
            "failures": list(map(Failure.to_json, self.failures)),
            "cut": self.cut,
            "not_made": self.not_made,
            "steps": list(self.steps),
            "first": first,
            "groups": list(map(list, self.groups)),
            "differing": list(map(DifferingQuantity.to_json, self.differing)),
            "equal": list(map(asdict, self.equal)),
            "matrices": list(map(DistanceMatrix.to_json, self.matrices)),
            "circumstances": dict(self.circumstances),
            "recorded": list(map(asdict, self.recorded)),
            "distances": list(map(StepDistance.to_json, self.distances)),
        }


def _render_cell(cell: float | None) -> float | str | None:
    if cell is not None and math.isinf(cell):
        return "Infinity"
    return cell


def report(outcome: Outcome, subject: str = "results") -> Report[RepeatEvidence]:
    """Return the report: findings on differences, failed runs and missing runs.

    `subject` is the script that ran, or what is compared.
    """
    if outcome.alone:
        # A run that is alone is kept to be compared later.
        extent = None
    elif len(outcome.runs) < 2 or not _has_values(outcome.runs):
        extent = Extent(runs=0)
    else:
        extent = Extent(runs=len(outcome.runs))
    return Report(
        _list_findings(outcome),
        command="repeat",
        headline=_make_headline(outcome),
        subject=subject,
        titles=TITLES,
        evidence=_collect_evidence(outcome),
        extent=extent,
    )


def _make_headline(outcome: Outcome) -> str:
    runs = count(len(outcome.runs), "run")
    if outcome.alone:
        return "1 run, and no other to compare it with"
    if len(outcome.runs) < 2:
        return f"nothing to compare: {runs} finished"
    number = len(results.list_steps(outcome.runs))
    if not _has_values(outcome.runs):
        return f"nothing to compare: {runs} recorded nothing"
    steps = f"all {number:,} steps"
    if outcome.cut:
        steps = f"the {count(number, 'step')} that all of them finished"
    elif number == 1:
        steps = "1 step"
    if outcome.first is None:
        return f"the same bits in {runs}, at {steps}"
    number_of_results = len(results.group_runs(outcome.runs))
    verdict = f"not the same: {runs} gave {number_of_results:,} different results"
    if outcome.cut:
        verdict += f", at {steps}"
    return verdict


def _has_values(runs: Sequence[Run]) -> bool:
    """Return whether a run recorded a value: no others can be the same."""
    return any(any(run.steps.values()) for run in runs)


def _list_findings(outcome: Outcome) -> Iterator[Finding]:
    if outcome.first is not None:
        yield _describe_difference(outcome, outcome.first)
    elif len(outcome.runs) > 1 and not _has_values(outcome.runs):
        yield Finding(
            "nothing-recorded",
            UNKNOWN,
            Where(operation="runs"),
            message="no run recorded a value, so nothing was compared",
            why="What was not compared is not the same.",
            fix="Call envlock.record(), or name a step or a model.",
            source=SOURCE,
        )
    failures = list(list_failures(_collect_failures(outcome), SOURCE, outcome.help))
    yield from failures
    is_too_few = len(outcome.runs) < 2 and not outcome.alone
    if not outcome.missing and (outcome.failed or not is_too_few):
        return
    # A few missing runs only weaken the answer; with fewer than two there is no answer.
    severity: Severity = UNKNOWN if is_too_few else WARNING
    why, fix = "the process had crashed", "Run it again."
    if outcome.interrupted:
        why = "interrupted"
    elif any(run.traceback for run in outcome.failed):
        why, fix = "a run that fails ends the series", failures[0].fix
    yield Finding(
        "run-missing",
        severity,
        Where(operation="runs"),
        message=f"{count(outcome.missing, 'run')} missing: {why}",
        why="With fewer runs, more of them can agree by chance.",
        fix=fix,
        source=SOURCE,
    )


def _collect_failures(outcome: Outcome) -> list[Failure]:
    return group_failures((run.label, run.message or "", run.traceback) for run in outcome.failed)


def _describe_difference(outcome: Outcome, first: Quantity) -> Finding:
    quantity = clean(first.name)
    names = list(map(clean, first.differing))
    # A quantity with a single array has the name of that, which would be printed twice.
    if names != [first.name]:
        shown = names[:MEMBERS_NAMED]
        if len(names) > MEMBERS_NAMED:
            shown.append("...")
        quantity += f" ({', '.join(shown)})"
    fix = "`envlock diverge` finds the first operation that differs, and its line."
    lost = _describe_lost(outcome.runs)
    if lost:
        fix = f"{lost}\n{fix}"
    return Finding(
        "runs-differ",
        ERROR,
        Where(operation=f"step {first.step}, {first.name}"),
        message=f"first at step {first.step} (of {len(results.list_steps(outcome.runs)):,}), in "
        f"{_name_all(outcome, first, quantity)}",
        why="An operation, a seed or the data differs from run to run, so no two trainings can be compared.",
        fix=fix,
        source=SOURCE,
    )


def _name_all(outcome: Outcome, first: Quantity, quantity: str) -> str:
    """Return every quantity that differs at the first step at which one does."""
    found = results.iter_differing(outcome.runs)
    others = [
        clean(each.name) for each in found if each.step == first.step and each.name != first.name
    ]
    names = [quantity, *others[:MEMBERS_NAMED]]
    if len(others) > MEMBERS_NAMED:
        names.append(f"{len(others) - MEMBERS_NAMED} more")
    return f"{', '.join(names[:-1])} and {names[-1]}" if others else quantity


def _describe_lost(runs: Sequence[Run]) -> str:
    """Return which runs were resumed without what; empty where none was."""
    by_lost: dict[tuple[str, ...], list[str]] = {}
    for run in runs:
        if run.lost:
            by_lost.setdefault(run.lost, []).append(clean(run.label))
    sentences = []
    for lost, labels in by_lost.items():
        names = " and ".join(map(clean, lost))
        what = f"{count(len(labels), 'run')} ({', '.join(labels)}) resumed from a checkpoint"
        sentences.append(f"Save the {names} in the checkpoint, too: {what} without.")
    return " ".join(sentences)


def _collect_evidence(outcome: Outcome) -> RepeatEvidence:
    labels = tuple(run.label for run in outcome.runs)
    first = _get_place(outcome.first) if outcome.first is not None else None
    ended = [run for run in outcome.runs if run.end == FINISHED]
    equal = [quantity for quantity in outcome.shown if quantity.distinct == 1]
    return RepeatEvidence(
        about=tuple(outcome.about),
        interrupted=outcome.interrupted,
        environments=outcome.environments,
        runs=tuple(map(_describe_run, (*ended, *outcome.failed))),
        failures=tuple(_collect_failures(outcome)),
        cut=outcome.cut,
        not_made=outcome.missing,
        steps=tuple(results.list_steps(outcome.runs)),
        first=first,
        groups=tuple(map(tuple, results.group_runs(outcome.runs))),
        differing=tuple(map(_describe_differing, results.iter_differing(outcome.runs))),
        equal=tuple(map(_get_place, equal)),
        matrices=tuple(_make_matrix(matrix, labels) for matrix in outcome.matrices),
        circumstances=outcome.circumstances,
        recorded=tuple(_describe_recorded(outcome.runs[0])) if outcome.runs else (),
        distances=tuple(_measure_steps([*outcome.matrices, *outcome.further])),
    )


def _measure_steps(matrices: Sequence[Matrix]) -> list[StepDistance]:
    """Return the largest distance of each matrix, by step."""
    found = []
    for matrix in matrices:
        pairs = [row[b] for a, row in enumerate(matrix.cells["sum"]) for b in range(a)]
        largest = max((cell for cell in pairs if cell is not None), default=None)
        found.append(StepDistance(matrix.quantity.step, matrix.quantity.name, largest))
    return sorted(found, key=lambda each: each.step)


def _describe_recorded(run: Run) -> Iterator[RecordedQuantity]:
    """Yield what a run recorded, by name."""
    found: dict[str, list[Value]] = {}
    steps: dict[str, int] = {}
    for step in results.list_steps([run]):
        for quantity in results.collect_quantities([run], step):
            found.setdefault(quantity.name, []).extend(filter(None, quantity.values[0]))
            steps[quantity.name] = steps.get(quantity.name, 0) + 1
    for name, values in found.items():
        arrays = len(values) // steps[name]
        if arrays > 1:
            shape = count(arrays, "array")
        else:
            shape = " x ".join(map(str, values[0].shape)) or "scalar"
        kinds = " ".join(dict.fromkeys(value.kind for value in values))
        digest = hashlib.sha256("".join(value.digest for value in values).encode()).hexdigest()
        yield RecordedQuantity(name, shape, kinds, steps[name], digest[:DIGITS])


def _get_place(quantity: Quantity) -> PlacedQuantity:
    return PlacedQuantity(quantity.step, quantity.name)


def _describe_run(run: Run) -> RunSummary:
    return RunSummary(run.label, run.end, run.message, run.seconds, len(run.steps))


def _describe_differing(quantity: Quantity) -> DifferingQuantity:
    members = tuple(quantity.differing)
    return DifferingQuantity(quantity.step, quantity.name, members, quantity.distinct)


def _make_matrix(matrix: Matrix, labels: tuple[str, ...]) -> DistanceMatrix:
    quantity = matrix.quantity
    return DistanceMatrix(
        quantity.step,
        quantity.name,
        quantity.members,
        tuple(quantity.differing),
        labels,
        quantity.classes,
        matrix.notes,
        matrix.cells,
    )
