"""The error matrices: how far every run is from every other, per quantity, computed where numpy is."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any

from envlock.guest import launch
from envlock.numerics.results import Quantity, Value
from envlock.runtime.errors import FactError, UsageError

PROGRAM = "training.distances_program"
PARTS = 64_000_000
"""Bytes of all arrays together that are read at once; the program needs about twice as much."""

Cells = list[list[float | None]]
"""Run by run; None: there is no distance between these two."""

_FAILED = {
    "numpy": UsageError(
        "distances need numpy, which is not installed for the interpreter",
        hint="name an interpreter that has it: `--python .venv/bin/python`",
    ),
    "damaged": UsageError(
        "the saved arrays are damaged: some are truncated", hint="run it again with `--save`"
    ),
}

MEASURES = ("sum", "max", "norm")


@dataclass(frozen=True)
class Matrix:
    """The distances of one quantity at one step."""

    quantity: Quantity
    cells: dict[str, Cells]
    """By measure: `sum` of the absolute differences, `max`, and `norm`, which is `max` in epsilons of the magnitude."""
    notes: tuple[str, ...] = ()
    """Whole sentences about what no number tells."""


@dataclass(frozen=True)
class Job:
    """Arrays of one kind and shape that are compared with each other."""

    kind: str
    digests: tuple[str, ...]


def matrices(
    quantities: Sequence[Quantity],
    folders: Iterable[Path],
    python: Path | None,
    advance: Callable[[int], None] = lambda _: None,
) -> list[Matrix]:
    """Return the matrix of every quantity; the arrays lie in one of the folders. `advance` gets the bytes read.

    Raises:
        UsageError: the interpreter cannot be run, or has no numpy, or an array is damaged.
        FactError: it died.
    """
    jobs = [
        [_jobs(member) for member in zip(*quantity.values, strict=True)] for quantity in quantities
    ]
    flat = list(dict.fromkeys(job for quantity in jobs for member in quantity for job in member))
    asked = {
        "folders": [str(folder) for folder in folders],
        "parts": PARTS,
        "jobs": [{"kind": job.kind, "digests": job.digests} for job in flat],
    }
    answers = dict(zip(flat, _answers(asked, python, advance), strict=True)) if flat else {}
    return [_matrix(quantity, own, answers) for quantity, own in zip(quantities, jobs, strict=True)]


def size(quantities: Iterable[Quantity]) -> int:
    """Return how many bytes will be read."""
    values = {
        value
        for quantity in quantities
        for row in quantity.values
        for value in row
        if value is not None
    }
    return sum(prod(value.shape) * value.width for value in values)


def _jobs(values: tuple[Value | None, ...]) -> list[Job]:
    """Return what has to be computed for one member: only arrays of the same kind and shape have distances."""
    alike: dict[tuple[str, tuple[int, ...]], dict[str, None]] = {}
    for value in values:
        if value is not None:
            alike.setdefault((value.kind, value.shape), {})[value.digest] = None
    return [Job(kind, tuple(digests)) for (kind, _), digests in alike.items() if len(digests) > 1]


def _answers(
    asked: dict[str, Any], python: Path | None, advance: Callable[[int], None]
) -> list[dict[str, Any]]:
    with tempfile.TemporaryFile() as errors:
        child = launch.start(
            launch.module(PROGRAM, asked), python, output=subprocess.PIPE, errors=errors
        )
        try:
            answers = list(_lines(child, advance))
            code = child.wait()
        finally:
            launch.end(child)
        if code or len(answers) != len(asked["jobs"]):
            errors.seek(0)
            words = launch.last_words(errors.read().decode("utf-8", "replace"))
            raise FactError(
                f"the distances could not be computed: the process {launch.ending(code)}: {words}"
            )
    return answers


def _lines(
    child: subprocess.Popen[bytes], advance: Callable[[int], None]
) -> Iterable[dict[str, Any]]:
    with child.stdout or BytesIO() as stream:
        for text in stream:
            line: dict[str, Any] = json.loads(text)
            if "read" in line:
                advance(line["read"])
            elif "failed" in line:
                raise _FAILED[line["failed"]]
            else:
                yield line


def _matrix(
    quantity: Quantity, jobs: list[list[Job]], answers: dict[Job, dict[str, Any]]
) -> Matrix:
    number = len(quantity.values)
    cells: dict[str, Cells] = {
        measure: [[0.0] * number for _ in range(number)] for measure in MEASURES
    }
    notes: list[str] = []
    for name, values, own in zip(
        quantity.members, zip(*quantity.values, strict=True), jobs, strict=True
    ):
        if len(set(values)) == 1:
            continue
        found = {job: answers[job] for job in own}
        notes += _notes(name, values, found)
        places = {digest: (job, n) for job in own for n, digest in enumerate(job.digests)}
        for a, b in combinations(range(number), 2):
            if values[a] != values[b]:
                _add(cells, a, b, _apart(places, values[a], values[b], found))
    same = [(a, b) for a, b in combinations(range(number), 2) if cells["max"][a][b] == 0]
    if any(quantity.values[a] != quantity.values[b] for a, b in same):
        notes.append(
            "Some bits differ although the values are equal: the sign of a zero, or the bits of a NaN."
        )
    return Matrix(quantity, cells, tuple(notes))


def _apart(
    places: dict[str, tuple[Job, int]],
    a: Value | None,
    b: Value | None,
    found: dict[Job, dict[str, Any]],
) -> dict[str, float | None]:
    """Return the distance of two values that differ, by measure; nothing where there is none."""
    if a is None or b is None or a.digest not in places or b.digest not in places:
        return {}
    (job, row), (other, column) = places[a.digest], places[b.digest]
    distances = found[job].get("distances") if job == other else None
    if distances is None:
        return {}
    return {name: matrix and matrix[row][column] for name, matrix in distances.items()}


def _add(cells: dict[str, Cells], a: int, b: int, apart: dict[str, float | None]) -> None:
    """Put the distance of one member into the cells of two runs: sums are added, of the others the largest counts."""
    for measure in MEASURES:
        before, more = cells[measure][a][b], apart.get(measure)
        joined: float | None = None
        if before is not None and more is not None:
            joined = before + more if measure == "sum" else max(before, more)
        cells[measure][a][b] = cells[measure][b][a] = joined


def _notes(
    name: str, values: tuple[Value | None, ...], found: dict[Job, dict[str, Any]]
) -> list[str]:
    """Return what no number tells about a member that differs."""
    notes = []
    missing = sum(value is None for value in values)
    if missing:
        notes.append(f"{name} was not recorded in {missing} of {len(values)} runs.")
    kinds = dict.fromkeys(
        f"{value.kind}{list(value.shape)}" for value in values if value is not None
    )
    if len(kinds) > 1:
        notes.append(
            f"{name} has several types or shapes, which have no distance: {', '.join(kinds)}."
        )
    for job, answer in found.items():
        if not answer["kept"]:
            notes.append(
                f"Not all arrays of {name} fit on the disk, so only their bits were compared."
            )
        elif answer["distances"] is None:
            notes.append(
                f"{name} has type {job.kind}, which has no distance, so only its bits were compared."
            )
    return notes
