"""The error matrices: the distance of every run from every other, for each quantity, computed by
numpy.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from itertools import combinations
from math import prod
from pathlib import Path

from envlock.evidence.results import Quantity, Value
from envlock.guest import launch
from envlock.runtime.errors import FactError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class Answer(TypedDict, total=False):
        """The answer to one job; `distances` by measure, None if the type has none."""

        kept: bool
        distances: dict[str, Cells | None] | None


PROGRAM = "training.distances_program"
PARTS = 64_000_000
"""Bytes of all arrays that are read at once; the program needs about twice as much."""

Cells = list[list[float | None]]
"""Distances between runs; None if two runs have none."""

_FAILED = {
    "numpy": (
        "distances need numpy, which is not installed for the interpreter",
        "name an interpreter that has it: `--python .venv/bin/python`",
    ),
    "damaged": (
        "the saved arrays are damaged: some are truncated",
        "run it again with `--save`",
    ),
}
"""What is said of a failure, and the hint."""

MEASURES = ("sum", "max", "norm")


@dataclass(frozen=True)
class Matrix:
    """The distances of one quantity at one step."""

    quantity: Quantity
    cells: dict[str, Cells]
    """Distances by measure: `sum` of the absolute differences, `max`, and `norm`: `max` in epsilons
    of the magnitude.
    """
    notes: tuple[str, ...] = ()
    """Sentences about what the numbers do not show."""


@dataclass(frozen=True)
class Job:
    """Arrays of one type and shape that are compared with each other."""

    kind: str
    digests: tuple[str, ...]


def compute_matrices(
    quantities: Sequence[Quantity],
    folders: Iterable[Path],
    python: Path | None,
    advance: Callable[[int], None] = lambda _: None,
) -> list[Matrix]:
    """Return the matrix of every quantity; its arrays are in one of the folders. `advance` gets the
    number of bytes read.

    Raises:
        UsageError: the interpreter cannot be run, or has no numpy, or an array is damaged.
        FactError: it crashed.
    """
    # As keys, each job once and in order: two steps can have the same arrays.
    jobs: dict[Job, None] = {}
    for quantity in quantities:
        for values in _list_columns(quantity):
            jobs.update(dict.fromkeys(_plan_jobs(values)))
    answers: dict[Job, Answer] = {}
    if jobs:
        request = {
            "folders": list(map(str, folders)),
            "parts": PARTS,
            "jobs": list(map(asdict, jobs)),
        }
        found = _compute_distances(request, len(jobs), python, advance)
        answers.update(zip(jobs, found, strict=True))
    return [_make_matrix(quantity, answers) for quantity in quantities]


def count_bytes(quantities: Iterable[Quantity]) -> int:
    """Return how many bytes will be read."""
    values: set[Value | None] = set()
    for quantity in quantities:
        for row in quantity.values:
            values.update(row)
    return sum(prod(value.shape) * value.width for value in values if value is not None)


def _list_columns(quantity: Quantity) -> list[tuple[Value | None, ...]]:
    """Return, for each member of a quantity, its value in each run."""
    return list(zip(*quantity.values, strict=True))


def _plan_jobs(values: tuple[Value | None, ...]) -> list[Job]:
    """Return the jobs for one member: only arrays of the same type and shape have distances."""
    alike: dict[tuple[str, tuple[int, ...]], dict[str, None]] = {}
    for value in values:
        if value is not None:
            alike.setdefault((value.kind, value.shape), {})[value.digest] = None
    return [Job(kind, tuple(digests)) for (kind, _), digests in alike.items() if len(digests) > 1]


def _compute_distances(
    request: Mapping[str, object], number: int, python: Path | None, advance: Callable[[int], None]
) -> list[Answer]:
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as asked:
        asked.write(json.dumps(request).encode())
        asked.seek(0)
        words = launch.bind_to_parent(launch.build_module_arguments(PROGRAM, {}))
        child = launch.start(words, python, output=subprocess.PIPE, errors=errors, stdin=asked)
        try:
            answers = list(_iter_answers(child, advance))
            code = child.wait()
        finally:
            launch.kill(child)
        if code or len(answers) != number:
            errors.seek(0)
            last_words = launch.pick_error_line(errors.read().decode("utf-8", "replace"))
            ending = f"the process {launch.describe_exit(code)}: {last_words}"
            raise FactError(f"the distances could not be computed: {ending}")
    return answers


def _iter_answers(
    child: subprocess.Popen[bytes], advance: Callable[[int], None]
) -> Iterator[Answer]:
    with child.stdout or BytesIO() as stream:
        for text in stream:
            line = json.loads(text)
            if "read" in line:
                advance(line["read"])
            elif "failed" in line:
                message, hint = _FAILED[line["failed"]]
                raise UsageError(message, hint=hint)
            else:
                yield line


def _make_matrix(quantity: Quantity, answers: Mapping[Job, Answer]) -> Matrix:
    number = len(quantity.values)
    cells: dict[str, Cells] = {}
    for measure in MEASURES:
        cells[measure] = [[0.0] * number for _ in range(number)]
    notes: list[str] = []
    for name, values in zip(quantity.members, _list_columns(quantity), strict=True):
        if len(set(values)) == 1:
            continue
        jobs = _plan_jobs(values)
        notes += _list_notes(name, values, jobs, answers)
        places = {}
        for job in jobs:
            for row, digest in enumerate(job.digests):
                places[digest] = (job, row)
        for a, b in combinations(range(number), 2):
            if values[a] != values[b]:
                distance = _find_distance(places, values[a], values[b], answers)
                _add_distance(cells, a, b, distance)
    for a, b in combinations(range(number), 2):
        if cells["max"][a][b] == 0 and quantity.values[a] != quantity.values[b]:
            causes = "the sign of a zero, or the bits of a NaN"
            notes.append(f"Some bits differ although the values are equal: {causes}.")
            break
    return Matrix(quantity, cells, tuple(notes))


def _find_distance(
    places: Mapping[str, tuple[Job, int]],
    a: Value | None,
    b: Value | None,
    answers: Mapping[Job, Answer],
) -> dict[str, float | None]:
    """Return the distance of two different values, by measure; empty if they have none.

    `places` has the job of each digest, and its row in the matrices of that job.
    """
    if a is None or b is None or a.digest not in places or b.digest not in places:
        return {}
    (job, row), (other, column) = places[a.digest], places[b.digest]
    # They have different types or shapes, or are not stored on the disk.
    distances = answers[job].get("distances")
    if job != other or distances is None:
        return {}
    found: dict[str, float | None] = {}
    for measure, matrix in distances.items():
        found[measure] = matrix[row][column] if matrix is not None else None
    return found


def _add_distance(
    cells: Mapping[str, Cells], a: int, b: int, distance: Mapping[str, float | None]
) -> None:
    """Add the distance of one member to the cells of two runs: sums are added, of other measures
    the largest is used.
    """
    for measure in MEASURES:
        before, more = cells[measure][a][b], distance.get(measure)
        total: float | None = None
        # If one member has no distance, the whole quantity has none.
        if before is not None and more is not None:
            total = before + more if measure == "sum" else max(before, more)
        cells[measure][a][b] = cells[measure][b][a] = total


def _list_notes(
    name: str,
    values: tuple[Value | None, ...],
    jobs: Sequence[Job],
    answers: Mapping[Job, Answer],
) -> list[str]:
    """Return sentences on what the numbers do not show about a member that differs."""
    notes = []
    missing = values.count(None)
    if missing:
        notes.append(f"{name} was not recorded in {missing} of {len(values)} runs.")
    present = [value for value in values if value is not None]
    kinds = dict.fromkeys(f"{value.kind}{list(value.shape)}" for value in present)
    if len(kinds) > 1:
        types = ", ".join(kinds)
        notes.append(f"{name} has several types or shapes, which have no distance: {types}.")
    for job in jobs:
        answer = answers[job]
        if not answer["kept"]:
            reason = "fit on the disk, so only their bits were compared"
            notes.append(f"Not all arrays of {name} {reason}.")
        elif answer["distances"] is None:
            reason = "which has no distance, so only its bits were compared"
            notes.append(f"{name} has type {job.kind}, {reason}.")
    return notes
