"""The results of repeated runs, as they lie in a folder: which runs have the same bits, and where they first differ."""

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
"""Of the log, in its first line; another number is refused."""

LARGEST = 1_000_000  # runs that anybody asks for

FINISHED, FAILED = "finished", "failed"
_DIGEST = re.compile("[0-9a-f]{64}")
_KIND = re.compile("[a-z0-9_]{1,40}")


@dataclass(frozen=True)
class Value:
    """An array: what it is made of, its shape, and the SHA-256 of both and of its bytes."""

    kind: str
    shape: tuple[int, ...]
    digest: str

    @property
    def width(self) -> int:
        """Bytes of one of its values, as far as its kind's name tells."""
        bits = re.search(r"\d+$", self.kind)
        return int(bits[0]) // 8 if bits else 1


@dataclass
class Run:
    """One run: what it computed, by step and quantity in the order of recording, and how it ended."""

    label: str
    steps: dict[int, dict[str, Value]] = field(default_factory=dict)
    end: str | None = None
    """`finished` or `failed`; None: it was cut off."""
    message: str | None = None
    seconds: float | None = None
    traceback: str = ""


@dataclass
class Results:
    """What a folder holds."""

    folder: Path
    header: dict[str, Any] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    unusable: str | None = None
    """Why the script or function could not be run at all."""

    @property
    def finished(self) -> list[Run]:
        """The runs that came to their end."""
        return [run for run in self.runs if run.end == FINISHED]

    @property
    def failed(self) -> list[Run]:
        """The runs that raised, or died."""
        return [run for run in self.runs if run.end == FAILED]

    @property
    def wanted(self) -> int:
        """How many runs were asked for; 0 where the folder does not say."""
        runs = self.header.get("runs")
        return runs if type(runs) is int and runs < LARGEST else 0

    @property
    def target(self) -> str:
        """What was run."""
        return str(self.header.get("target", "?"))

    @property
    def arrays(self) -> Path:
        """The folder of the arrays, each a file named by its digest."""
        return self.folder / ARRAYS


def read(folder: Path, prefix: str = "") -> Results:
    """Return the results in a folder; its runs are called `prefix` and their number.

    Raises:
        UsageError: there are none, they are of a newer envlock, or they are damaged.
    """
    try:
        with (folder / LOG).open(encoding="ascii") as file:
            results = _parsed(file, folder, prefix)
    except OSError as error:
        hint = "name a folder written by `envlock repeat --save`"
        raise UsageError(
            f"cannot read the results in {folder}: {error.strerror}", hint=hint
        ) from None
    except (ValueError, TypeError, AttributeError, KeyError, ArithmeticError, RecursionError):
        raise _damaged(folder) from None
    return results


def _damaged(folder: Path) -> UsageError:
    return UsageError(
        f"the results in {folder} are damaged: invalid {LOG}",
        hint="run `envlock repeat --save` again",
    )


def _parsed(lines: Iterator[str], folder: Path, prefix: str) -> Results:
    results = Results(folder)
    runs: dict[int, Run] = {}
    known: dict[str, Value] = {}  # millions of equal values are one
    for text in lines:
        if not text.endswith("\n"):
            break  # the process was ended while it wrote this
        line = json.loads(text)
        if "run" in line:
            number = int(line["run"])
            run = runs.setdefault(number, Run(f"{prefix}{number}"))
            _take(run, line, known)
        elif "envlock_repeat" in line:
            _header(line, results)
        elif "environment" in line:
            results.environment = {str(k): str(v) for k, v in line["environment"].items()}
        else:
            results.unusable = str(line["unusable"])
    results.runs = [runs[number] for number in sorted(runs)]
    return results


def _header(line: dict[str, Any], results: Results) -> None:
    if line["envlock_repeat"] != FORMAT:
        raise UsageError(
            f"the results in {results.folder} have format {line['envlock_repeat']!r}; this envlock reads {FORMAT}",
            hint="use the envlock that wrote them",
        )
    results.header = line


def _take(run: Run, line: Mapping[str, Any], known: dict[str, Value]) -> None:
    if "values" in line:
        quantities = run.steps.setdefault(int(line["step"]), {})
        for name, (kind, shape, digest) in line["values"].items():
            quantities[str(name)] = known.get(digest) or known.setdefault(
                digest, _value(kind, shape, digest)
            )
        return
    if line["end"] not in (FINISHED, FAILED):
        raise ValueError(line["end"])
    message, seconds = line.get("message"), line.get("seconds")
    if not isinstance(message, str | None) or not isinstance(seconds, int | float | None):
        raise TypeError
    run.end, run.message, run.seconds = line["end"], message, seconds
    run.traceback = str(line.get("traceback") or "")


def _value(kind: str, shape: list[int], digest: str) -> Value:
    """Return the value; its words become names of files and text on a terminal, so they are held to their form."""
    if (
        not _DIGEST.fullmatch(digest)
        or not _KIND.fullmatch(kind)
        or not all(type(n) is int and n >= 0 for n in shape)
    ):
        raise ValueError(digest)
    return Value(kind, tuple(shape), digest)


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
        return [
            name for n, name in enumerate(self.members) if len({row[n] for row in self.values}) > 1
        ]


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
            step,
            name,
            tuple(members),
            tuple(tuple(run.steps.get(step, {}).get(m) for m in members) for run in runs),
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


def comparable(runs: Sequence[Run]) -> tuple[list[Run], bool]:
    """Return the runs to compare, and whether they are cut to the steps that all of them finished.

    These are the finished ones. Where fewer than two are, or all of them are alike, those that failed after a step take
    part: what they showed until then may differ.
    """
    finished = [run for run in runs if run.end == FINISHED]
    partly = [run for run in runs if run.end == FAILED and run.steps]
    if not partly or (len(finished) > 1 and first(finished) is not None):
        return finished, False
    end = min(_last_whole(run, runs) for run in partly)
    both = [run for run in runs if run in finished or run in partly]
    cut = [
        replace(run, steps={n: values for n, values in run.steps.items() if n <= end})
        for run in both
    ]
    if (
        len(cut) < 2
        or not any(run.steps for run in cut)
        or (len(finished) > 1 and first(cut) is None)
    ):
        return finished, False
    return cut, True


def _last_whole(run: Run, others: Sequence[Run]) -> int:
    """Return the last step of a failed run; the one before where another run has more quantities at the last."""
    last = max(run.steps)
    names = set(run.steps[last])
    return last - 1 if any(names < set(other.steps.get(last, {})) for other in others) else last


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
