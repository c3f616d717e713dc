"""Run the user's program several times under the tracer, in child processes with a bounded wait."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from envlock.divergence.comparison import Comparison, compare
from envlock.divergence.trace import Header, read
from envlock.guest import launch
from envlock.numerics.repeat import Target
from envlock.runtime.errors import FactError, UsageError
from envlock.runtime.report import clean

PROGRAM = "tracing.trace_program"
TIMEOUT = 3600.0  # seconds, of one process
LAST_WORDS = 2_000  # bytes
Say = Callable[[str], None]


class RunError(FactError):
    """The user's program failed, so there is nothing to compare."""


@dataclass(frozen=True)
class Request:
    """What to run, and how.

    Attributes:
        mode: as the program runs by itself, eagerly, or as it does with a look into its graphs: at what can race, or at
            every operation.
        fresh: each run in a process of its own.
        steps: how many steps of each run; None: all.
        seed: is set before every run.
        generators: a seed for Python's and NumPy's generators, to see whether they are what differs.
        in_graph: look into the graphs where the runs differ, and not eagerly.
        serial: graphs run one operation at a time, to see whether they race.
        environ: variables that are set besides.
        conditions: what the traces shall say of the circumstances.
    """

    target: Target
    python: Path | None
    runs: int
    fresh: bool
    mode: Literal["graph", "eager", "in-graph", "in-graph-all"] = "graph"
    steps: int | None = None
    seed: int | None = None
    generators: int | None = None
    serial: bool = False
    in_graph: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = TIMEOUT


@dataclass(frozen=True)
class Observed:
    """What the runs gave; the traces lie in `folder`."""

    request: Request
    folder: Path
    header: Header
    comparison: Comparison
    answers: Mapping[str, Any]

    @property
    def traces(self) -> list[Path]:
        """The trace of each run."""
        return [self.folder / f"{number}.trace" for number in range(self.request.runs)]


def observe(request: Request, folder: Path) -> Observed:
    """Return what the runs gave; `folder` is made for their traces.

    Raises:
        UsageError: there is no such interpreter, script or function, or it cannot be run so.
        FactError: this TensorFlow does not show its operations.
        RunError: the program failed, or took too long.
    """
    folder.mkdir()
    numbers = list(range(request.runs))
    for group in [[each] for each in numbers] if request.fresh else [numbers]:
        _child(request, group, folder)
        _judge(answers(folder), request)
    paths = [folder / f"{number}.trace" for number in numbers]
    comparison = compare([read(path) for path in paths])
    header = read(paths[0]).header
    if request.mode == "eager" and not comparison.entries:
        raise FactError("TensorFlow showed no operation: the program runs none, or runs them in other threads")
    return Observed(request, folder, header, comparison, answers(folder))


def _child(request: Request, numbers: list[int], folder: Path) -> None:
    asked = {
        "folder": str(folder),
        "script": str(request.target.script),
        "function": request.target.function,
        "args": list(request.target.args),
        "runs": numbers,
        "seed": request.seed,
        "mode": request.mode,
        "steps": request.steps,
        "generators": request.generators,
        "serial": request.serial,
        "conditions": dict(request.conditions),
    }
    environ = {**os.environ, **request.environ}
    with (folder / "output").open("ab") as output:
        words = launch.module(PROGRAM, asked)
        child = launch.start(words, request.python, output=output, errors=subprocess.STDOUT, environ=environ)
        try:
            code = child.wait(request.timeout)
        except subprocess.TimeoutExpired:
            raise RunError(
                f"{request.target} ran for more than {request.timeout:g} s", hint="ask for fewer steps: --steps 3"
            ) from None
        finally:
            launch.end(child)
    if code != 0:
        raise RunError(f"{request.target}: the process {launch.ending(code)}; its last words: {_last_words(folder)}")


def answers(folder: Path) -> dict[str, Any]:
    """Return what the children have answered, later answers over earlier ones."""
    found: dict[str, Any] = {"ends": {}}
    path = folder / "answers.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        answer = json.loads(line)
        if "run" in answer:
            found["ends"][answer["run"]] = answer
        else:
            found.update(answer)
    return found


def _judge(answers: Mapping[str, Any], request: Request) -> None:
    if "unusable" in answers:
        raise UsageError(clean(answers["unusable"]))
    if "callbacks" in answers and request.mode != "graph":
        raise FactError(
            f"this TensorFlow does not show its operations: {clean(answers['callbacks'])}",
            hint="`envlock repeat` compares what a function returns, in any TensorFlow",
        )
    failed = next((each for each in answers["ends"].values() if each["end"] == "failed"), None)
    if failed is not None:
        mode = " in eager mode" if request.mode == "eager" else ""
        raise RunError(f"run {failed['run']} of {request.target} failed{mode}: {clean(failed['message'])}")


def _last_words(folder: Path) -> str:
    data = (folder / "output").read_bytes()[-LAST_WORDS:]
    return clean(launch.last_words(data.decode("utf-8", "replace")))


def without_first(observed: Observed) -> Observed:
    """Return what the runs after the first gave: in one process the first one also sets up what stays."""
    paths = observed.traces[1:]
    return replace(observed, comparison=compare([read(path) for path in paths]))
