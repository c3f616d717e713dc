"""The results of repeated runs in a folder: which runs have the same bits, and where others first
differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from envlock.guest.training.store import ARRAYS, LOG
from envlock.runtime.errors import UsageError

FORMAT = 1
"""The version in the first line of the log; any other is refused."""

LARGEST = 1_000_000
"""More runs than any user requests: a header with a larger number is refused."""

FINISHED, FAILED = "finished", "failed"
_DIGEST = re.compile("[0-9a-f]{64}")
_KIND = re.compile("[a-z0-9_]{1,40}")


@dataclass(frozen=True)
class Value:
    """An array: its type, its shape, and the SHA-256 of these and of its bytes."""

    kind: str
    shape: tuple[int, ...]
    digest: str

    @property
    def width(self) -> int:
        """Bytes of one number: the name of its type ends with the number of bits; 1 if it does not."""
        bits = re.search(r"\d+$", self.kind)
        if bits is None:
            return 1
        return int(bits[0]) // 8


@dataclass
class Run:
    """One run: its results, by step and quantity in the order of recording, and how it ended."""

    label: str
    steps: dict[int, dict[str, Value]] = field(default_factory=dict)
    end: str | None = None
    """`finished` or `failed`; None if it was interrupted."""
    message: str | None = None
    seconds: float | None = None
    traceback: str = ""
    lost: tuple[str, ...] = ()
    """What it went on without, after it restored a checkpoint: `optimizer`, `generator`, `iterator`."""
    changed: tuple[str, ...] = ()
    """The variables that it changed although it asks envlock to verify them."""


@dataclass
class Results:
    """The contents of a folder of results."""

    folder: Path
    header: dict[str, object] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    unusable: str | None = None
    """Why the script or function could not be run at all."""

    @property
    def finished(self) -> list[Run]:
        """The runs that finished."""
        return [run for run in self.runs if run.end == FINISHED]

    @property
    def failed(self) -> list[Run]:
        """The runs that raised an error, or crashed."""
        return [run for run in self.runs if run.end == FAILED]

    @property
    def wanted(self) -> int:
        """How many runs were requested; 0 if the folder does not say."""
        runs = self.header.get("runs")
        # Not isinstance, because True is an int.
        if type(runs) is int and runs < LARGEST:
            return runs
        return 0

    @property
    def target(self) -> str:
        """The script or function that was run."""
        return str(self.header.get("target", "?"))

    @property
    def arrays(self) -> Path:
        """The folder of the arrays, each in a file named after its digest."""
        return self.folder / ARRAYS


def read(folder: Path, prefix: str = "") -> Results:
    """Return the results in a folder; the name of a run is `prefix` and its number.

    Raises:
        UsageError: there are no results, they are from a newer envlock, or they are damaged.
    """
    try:
        with (folder / LOG).open(encoding="ascii") as file:
            return _parse_log(file, folder, prefix)
    except OSError as error:
        hint = "name a folder written by `envlock repeat --save`"
        message = f"cannot read the results in {folder}: {error.strerror}"
        raise UsageError(message, hint=hint) from None
    # Valid JSON, but not a line that `envlock repeat` writes.
    except (ValueError, TypeError, AttributeError, KeyError, ArithmeticError, RecursionError):
        raise UsageError(
            f"the results in {folder} are damaged: invalid {LOG}",
            hint="run `envlock repeat --save` again",
        ) from None


def _parse_log(lines: Iterator[str], folder: Path, prefix: str) -> Results:
    results = Results(folder)
    runs: dict[int, Run] = {}
    # Millions of equal values share one object.
    known: dict[str, Value] = {}
    for text in lines:
        if not text.endswith("\n"):
            break  # the process was killed while it wrote this
        line = json.loads(text)
        if "run" in line:
            number = int(line["run"])
            if number not in runs:
                runs[number] = Run(f"{prefix}{number}")
            _add_line(runs[number], line, known)
        elif "envlock_repeat" in line:
            _check_format(line, folder)
            results.header = line
        elif "environment" in line:
            results.environment = {str(k): str(v) for k, v in line["environment"].items()}
        else:
            results.unusable = str(line["unusable"])
    results.runs = [runs[number] for number in sorted(runs)]
    return results


def _check_format(header: Mapping[str, object], folder: Path) -> None:
    number = header["envlock_repeat"]
    if number != FORMAT:
        raise UsageError(
            f"the results in {folder} have format {number!r}; this envlock reads {FORMAT}",
            hint="use the envlock that wrote them",
        )


def _add_line(run: Run, line: Mapping[str, Any], known: dict[str, Value]) -> None:
    """Add the content of a line of the log: the values of a step, or how the run ended."""
    if "values" in line:
        quantities = run.steps.setdefault(int(line["step"]), {})
        for name, (kind, shape, digest) in line["values"].items():
            if digest not in known:
                known[digest] = _parse_value(kind, shape, digest)
            quantities[str(name)] = known[digest]
        return
    if line["end"] not in (FINISHED, FAILED):
        raise ValueError(line["end"])
    message, seconds = line.get("message"), line.get("seconds")
    if not isinstance(message, str | None) or not isinstance(seconds, int | float | None):
        raise TypeError
    run.end, run.message, run.seconds = line["end"], message, seconds
    run.traceback = str(line.get("traceback") or "")
    run.changed = tuple(map(str, line.get("changed") or ()))
    run.lost = tuple(map(str, line.get("lost") or ()))


def _parse_value(kind: str, shape: list[int], digest: str) -> Value:
    """Return the value; its parts become names of files and output, so their form is checked."""
    if not _DIGEST.fullmatch(digest) or not _KIND.fullmatch(kind):
        raise ValueError(digest)
    for number in shape:
        if type(number) is not int or number < 0:
            raise ValueError(digest)
    return Value(kind, tuple(shape), digest)


@dataclass(frozen=True)
class Quantity:
    """One quantity at one step in all runs; `weights` has the members `weights/0/kernel`, `weights/1/bias` ..."""

    step: int
    name: str
    members: tuple[str, ...]
    values: tuple[tuple[Value | None, ...], ...]
    """For each run, the value of each member; None if the run does not have it."""

    @property
    def classes(self) -> tuple[int, ...]:
        """For each run the number of its result: equal numbers mean equal bits."""
        numbers: dict[tuple[Value | None, ...], int] = {}
        return tuple(numbers.setdefault(row, len(numbers)) for row in self.values)

    @property
    def distinct(self) -> int:
        """The number of different results."""
        return len(set(self.values))

    @property
    def differing(self) -> list[str]:
        """The members that are not equal in all runs."""
        names = []
        for name, column in zip(self.members, zip(*self.values, strict=True), strict=True):
            if len(set(column)) > 1:
                names.append(name)
        return names


def list_steps(runs: Sequence[Run]) -> list[int]:
    """Return the steps that at least one of the runs has, in order."""
    numbers: set[int] = set()
    for run in runs:
        numbers.update(run.steps)
    return sorted(numbers)


def collect_quantities(runs: Sequence[Run], step: int) -> list[Quantity]:
    """Return the quantities at a step, in the order in which they were recorded."""
    rows = [run.steps.get(step, {}) for run in runs]
    # A dictionary instead of a set, because it keeps the order.
    members: dict[str, dict[str, None]] = {}
    for row in rows:
        for member in row:
            members.setdefault(member.partition("/")[0], {})[member] = None
    quantities = []
    for name, own in members.items():
        values = tuple(tuple(map(row.get, own)) for row in rows)
        quantities.append(Quantity(step, name, tuple(own), values))
    return quantities


def find_first(runs: Sequence[Run]) -> Quantity | None:
    """Return the first quantity that differs, in the first such step; None if all runs are equal."""
    return next(iter_differing(runs), None)


def iter_differing(runs: Sequence[Run]) -> Iterator[Quantity]:
    """Yield every quantity that differs, in order; an equal step costs one comparison."""
    for step in list_steps(runs):
        values = [run.steps.get(step) for run in runs]
        if values.count(values[0]) < len(values):
            for quantity in collect_quantities(runs, step):
                if quantity.distinct > 1:
                    yield quantity


def select_comparable(runs: Sequence[Run]) -> tuple[list[Run], bool]:
    """Return the runs to compare, and whether they are limited to the steps that all of them
    finished.

    These are the finished runs. If there are fewer than two, or all of them are equal, those that
    failed after a step are included: their results until then may differ.
    """
    finished = [run for run in runs if run.end == FINISHED]
    partial = [run for run in runs if run.end == FAILED and run.steps]
    if not partial or (len(finished) > 1 and find_first(finished) is not None):
        return finished, False
    end = min(_find_last_whole_step(run, runs) for run in partial)
    cut = []
    for run in runs:
        if run in finished or run in partial:
            steps_until_end = {step: row for step, row in run.steps.items() if step <= end}
            cut.append(replace(run, steps=steps_until_end))
    if len(cut) < 2 or not any(run.steps for run in cut):
        return finished, False
    # If there are enough finished runs, the others are added only if they show a difference.
    if len(finished) > 1 and find_first(cut) is None:
        return finished, False
    return cut, True


def _find_last_whole_step(failed: Run, runs: Sequence[Run]) -> int:
    """Return the last step of a failed run; the one before it if another run has more quantities
    there.
    """
    last = max(failed.steps)
    names = set(failed.steps[last])
    for run in runs:
        if names < set(run.steps.get(last, {})):
            return last - 1
    return last


def group_runs(runs: Sequence[Run]) -> list[list[str]]:
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
