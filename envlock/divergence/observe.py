"""Run the user's program several times under the tracer, in child processes with a bounded wait."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from envlock.divergence.children import Children
from envlock.divergence.comparison import Comparison, Entry, compare
from envlock.divergence.trace import Header, TraceError, read
from envlock.guest import launch
from envlock.numerics.failure import Failure, group_failures
from envlock.numerics.target import RELATIVE_IMPORT, Target
from envlock.runtime.errors import FactError
from envlock.runtime.report import clean

AGAIN = " again"
"""How the folder of runs ends that are to be made in a new process, whoever makes them."""
TIMEOUT = 3600.0  # seconds, of one process
ANSWERS = "answers.jsonl"
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
        held: a function, a file and a line: what it gives there is the same in every run.
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
    held: tuple[str, str, int] | None = None
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
        """The trace of each run; one that did not begin has none."""
        paths = [self.folder / f"{number}.trace" for number in range(self.request.runs)]
        return [path for path in paths if path.exists()]

    @property
    def failures(self) -> list[Failure]:
        """The runs that failed; what the others did after that is not compared."""
        failed = [each for each in self.answers["ends"].values() if each.get("end") == "failed"]
        return group_failures(
            (str(each["run"]), each["message"], each["traceback"]) for each in failed
        )


def observe(
    request: Request, folder: Path, say: Say = lambda text: None, children: Children | None = None
) -> Observed:
    """Return what the runs gave; `folder` is made for their traces, and `say` gets how long runs take.

    The process stays in `children` for the next runs, where they can follow upon these.

    Raises:
        UsageError: there is no such interpreter, script or function, or it cannot be run so.
        FactError: this TensorFlow does not show its operations.
        RunError: the program took too long, or failed before there was anything to compare.
    """
    folder.mkdir()
    making = Children() if children is None else children
    goes_on = False
    try:
        _make(request, folder, say, making)
        found = _observed(request, folder)
        goes_on = children is not None and _can_go_on(found)
    finally:
        if not goes_on:
            making.close()
    return found


def _make(request: Request, folder: Path, say: Say, children: Children) -> None:
    numbers = list(range(request.runs))
    begun = time.monotonic()
    if folder.name.endswith(AGAIN):
        children.close()
    for group in [[each] for each in numbers] if request.fresh else [numbers]:
        _child(request, group, folder, children)
        done = group[-1] + 1
        if request.fresh:
            children.close()
        if request.fresh and done < request.runs:
            cost = (time.monotonic() - begun) / done
            left = cost * (request.runs - done)
            say(f"run {done} of {request.runs} ended; {cost:.0f} s a run, about {left:.0f} s left")
        said = answers(folder)
        _judge(said, request)
        if _failed(said) and not (folder / f"{group[0]}.trace").exists():
            break


def _can_go_on(found: Observed) -> bool:
    """Return whether further runs in the same process tell as much as those of a new one.

    They do not where only the first run is another one: that is what a process keeps.
    """
    first = found.comparison.first
    return not found.failures and (first is None or len(set(first.groups[1:])) > 1)


def _observed(request: Request, folder: Path) -> Observed:
    said = answers(folder)
    paths = [
        path for number in range(request.runs) if (path := folder / f"{number}.trace").exists()
    ]
    if _failed(said) and (
        len(paths) < 2 or any(next(readable(path), None) is None for path in paths)
    ):
        raise _nothing(said, request)
    comparison = _compared(paths, [folder / f"{number}.trace" for number in _failed(said)])
    header = read(paths[0]).header
    if request.mode == "eager" and not comparison.entries:
        raise FactError(
            "TensorFlow showed no operations: the program runs none, or runs them in other threads"
        )
    return Observed(request, folder, header, comparison, said)


def need_finished(seen: Observed) -> Observed:
    """Return what the runs gave, where all of them came to their end.

    Raises:
        RunError: one failed.
    """
    if seen.failures:
        raise _nothing(seen.answers, seen.request)
    return seen


def _failed(answers: Mapping[str, Any]) -> list[int]:
    return [number for number, each in answers["ends"].items() if each["end"] == "failed"]


def _nothing(answers: Mapping[str, Any], request: Request) -> RunError:
    """Return the error that there is nothing to compare, as a run failed."""
    failed = answers["ends"][_failed(answers)[0]]
    mode = " in eager mode" if request.mode == "eager" else ""
    relative = RELATIVE_IMPORT in failed["message"]
    hint = request.target.by_module("diverge") if relative else None
    message = f"run {failed['run']} of {request.target} failed{mode}: {clean(failed['message'])}"
    error = RunError(message, hint=hint)
    error.details = "\n".join(clean(line) for line in failed["traceback"].splitlines())
    return error


def _compared(paths: Sequence[Path], failed: Sequence[Path]) -> Comparison:
    """Compare the traces of runs, as far as those that failed go."""
    if not failed:
        return compare([read(path) for path in paths])
    end = min(sum(1 for _ in readable(path)) for path in failed if path in paths)
    return compare([islice(readable(path), end) for path in paths])


def readable(path: Path) -> Iterator[Entry]:
    """Yield the entries of a trace until its end, or where it was cut off."""
    with suppress(TraceError):
        yield from read(path)


def _child(request: Request, numbers: list[int], folder: Path, children: Children) -> None:
    """Run some runs in one process; where it dies, write down which run that was and its last words.

    Raises:
        RunError: it took too long.
    """
    asked = {
        "folder": str(folder),
        **request.target.to_json(),
        "runs": numbers,
        "seed": request.seed,
        "mode": request.mode,
        "steps": request.steps,
        "generators": request.generators,
        "held": request.held,
        "serial": request.serial,
        "conditions": dict(request.conditions),
    }
    environ = {**os.environ, **request.environ}
    try:
        with (folder / "output").open("ab") as output:
            code = children.run(asked, request.python, environ, output, request.timeout)
    except TimeoutError:
        raise RunError(
            f"{request.target} ran for more than {request.timeout:g} s",
            hint="stop after fewer steps: `--steps 3`",
        ) from None
    missing = [number for number in numbers if number not in answers(folder)["ends"]]
    if code and missing:
        message = (
            f"the process {launch.ending(code)}; its last output: {_last_words(children.output)}"
        )
        line = json.dumps({"run": missing[0], "end": "failed", "message": message, "traceback": ""})
        with (folder / ANSWERS).open("a", encoding="utf-8") as said:
            said.write(line + "\n")


def answers(folder: Path) -> dict[str, Any]:
    """Return what the children have answered, later answers over earlier ones."""
    found: dict[str, Any] = {"ends": {}}
    path = folder / ANSWERS
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        answer = json.loads(line)
        if "run" in answer:
            found["ends"][answer["run"]] = answer
        else:
            found.update(answer)
    return found


def _judge(answers: Mapping[str, Any], request: Request) -> None:
    if "unusable" in answers:
        raise request.target.unusable(answers["unusable"], "diverge")
    if "callbacks" in answers and request.mode != "graph":
        raise FactError(
            f"this TensorFlow does not show its operations: {answers['callbacks']}",
            hint="use `envlock repeat`, which works with every TensorFlow",
        )


def _last_words(output: Path) -> str:
    data = output.read_bytes()[-LAST_WORDS:]
    return clean(launch.last_words(data.decode("utf-8", "replace")))


def without_first(observed: Observed) -> Observed:
    """Return what the runs after the first gave: in one process the first one also sets up what stays."""
    paths = observed.traces[1:]
    return replace(observed, comparison=compare([read(path) for path in paths]))
