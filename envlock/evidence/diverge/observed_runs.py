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

from envlock.evidence.diverge.comparison import Comparison, Entry, compare
from envlock.evidence.diverge.trace import Header, TraceError, read
from envlock.evidence.failure import Failure, group_failures
from envlock.evidence.session import Host, Session, read_log
from envlock.guest.target import RELATIVE_IMPORT, Target
from envlock.guest.tracing.run_traces import LINES
from envlock.guest.training.store import LOG
from envlock.runtime.errors import FactError
from envlock.runtime.report import clean

AGAIN = " again"
"""The end of the name of a folder whose runs have to be made in a new process."""
TIMEOUT = 3600.0
"""Seconds that one run may take."""
LEAST = 60.0
"""Seconds that a run with something held may take, however short the program is: it may import TensorFlow."""
AS_LONG = 5
"""How many times as long as the program takes by itself it may take then: what waits for something that is held
would wait for ever."""
FEW = 3
"""Steps that are traced where a run takes too long."""
Answers = Mapping[str, Any]
"""What the log of the runs says: how they ended, and what is known of all."""
Say = Callable[[str], None]


ASKED = (
    "seed",
    "mode",
    "steps",
    "generators",
    "held",
    "now",
    "since",
    "keeps",
    "lines",
    "serial",
    "conditions",
)
"""What a request asks of the tracer, by its name in both."""
NOTHING_SHOWN = (
    "TensorFlow showed no operations: the program runs none, or runs them in other threads"
)


class RunError(FactError):
    """The user's program failed, so there is nothing to compare."""


class RunTimeoutError(RunError):
    """A run took longer than it may."""


@dataclass(frozen=True)
class Request:
    """What to run, and how.

    Attributes:
        mode: `graph`: as the program runs by itself; or `eager`.
        fresh: each run in a process of its own.
        steps: how many steps of each run; None: all.
        seed: is set before every run.
        generators: a seed for the generators of Python and NumPy, to see whether those differ.
        held: functions with a file and a line: what each returns there is the same in every run.
        now: what a held clock begins with: the time of day, and that of the steady clocks, in seconds.
        since: when the first of all runs began, in seconds: what a later one finds may be left by an earlier one.
        keeps: the module is loaded once, and nothing is forgotten between runs, as `envlock repeat` does it.
        lines: the number of the entry until which statements of the program are watched; None: not at all.
        serial: graphs run one operation at a time, to see whether they race.
        environ: variables that are set besides.
        conditions: what the headers of the traces say of the circumstances.
        timeout: the most seconds that a run may take.
    """

    target: Target
    python: Path | None
    runs: int
    fresh: bool
    mode: Literal["graph", "eager"] = "graph"
    steps: int | None = None
    seed: int | None = None
    generators: int | None = None
    held: tuple[tuple[str, str, int], ...] = ()
    now: tuple[float, float] = (0.0, 0.0)
    since: float = 0.0
    keeps: bool = False
    lines: int | None = None
    serial: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, object] = field(default_factory=dict)
    timeout: float = TIMEOUT

    def to_json(self) -> dict[str, object]:
        """Return what the tracer is asked for (envlock/guest/tracing/run_traces.py)."""
        return {**self.target.to_json(), **{name: getattr(self, name) for name in ASKED}}


@dataclass(frozen=True)
class Observed:
    """What the runs gave; the traces lie in `folder`."""

    request: Request
    folder: Path
    header: Header
    comparison: Comparison
    answers: Answers

    @property
    def traces(self) -> list[Path]:
        """The trace of each run; one that did not begin has none."""
        paths = [self.folder / f"{number}.trace" for number in range(self.request.runs)]
        return list(filter(Path.exists, paths))

    @property
    def failures(self) -> list[Failure]:
        """The runs that failed; what the others did after that is not compared."""
        failed = []
        for end in self.answers["ends"].values():
            if end.get("end") == "failed":
                failure = str(end["run"]), end["message"], end["traceback"]
                failed.append(failure)
        return group_failures(failed)

    @property
    def longest(self) -> float:
        """How many seconds the longest run took; 0 where none says it."""
        return max([0.0, *(end.get("seconds") or 0.0 for end in self.answers["ends"].values())])

    @property
    def compared_runs(self) -> list[int]:
        """The numbers of the runs that are compared: without the first where that is left out."""
        return sorted(self.answers["ends"])[-self.comparison.runs :]

    @property
    def compared_ends(self) -> list[Mapping[str, Any]]:
        """What the tracer wrote at the end of each of these runs."""
        return [self.answers["ends"][number] for number in self.compared_runs]


def observe(
    request: Request, folder: Path, say: Say = lambda text: None, session: Session | None = None
) -> Observed:
    """Return what the runs gave; `folder` is made for their traces, `say` gets the time that is left.

    The process stays in `session` for the next runs, where they can follow upon these.

    Raises:
        UsageError: there is no such interpreter, script or function, or it cannot be run so.
        FactError: this TensorFlow does not show its operations.
        RunError: the program took too long, or failed before there was anything to compare.
    """
    folder.mkdir()
    own = Session() if session is None else session
    stays = False
    try:
        _make_runs(request, folder, say, own)
        seen = _compare_runs(request, folder)
        stays = session is not None and _can_go_on(seen)
    finally:
        if not stays:
            own.close()
    return seen


def _make_runs(request: Request, folder: Path, say: Say, session: Session) -> None:
    begun = time.monotonic()
    if folder.name.endswith(AGAIN):
        session.close()
    if not request.fresh:
        answers = _run_batch(request, list(range(request.runs)), folder, session)
        _check_answers(answers, request)
        return
    for number in range(request.runs):
        answers = _run_batch(request, [number], folder, session)
        session.close()
        done = number + 1
        if done < request.runs:
            cost = (time.monotonic() - begun) / done
            left = cost * (request.runs - done)
            say(f"run {done} of {request.runs} ended; {cost:.0f} s a run, about {left:.0f} s left")
        _check_answers(answers, request)
        # The others would fail like it, before there is anything to compare.
        if _list_failed(answers) and not (folder / f"{number}.trace").exists():
            break


def _can_go_on(seen: Observed) -> bool:
    """Return whether further runs in the same process tell as much as those of a new one.

    They do not where only the first run is another one: that is what a process keeps.
    """
    first = seen.comparison.first
    if seen.failures:
        return False
    return first is None or len(set(first.groups[1:])) > 1


def _compare_runs(request: Request, folder: Path) -> Observed:
    answers = read_log(folder / LOG)
    failed = _list_failed(answers)
    traces = [folder / f"{number}.trace" for number in range(request.runs)]
    paths = list(filter(Path.exists, traces))
    if failed:
        empty = [path for path in paths if next(read_until_damage(path), None) is None]
        if len(paths) < 2 or empty:
            raise _make_error(answers, request)
    comparison = _compare_traces(paths, [traces[number] for number in failed])
    header = read(paths[0]).header
    if request.mode == "eager" and not comparison.entries:
        raise FactError(NOTHING_SHOWN)
    return Observed(request, folder, header, comparison, answers)


def read_finished(request: Request, folder: Path) -> Observed | None:
    """Return what the runs that had ended gave when something stopped the others; None for fewer than two."""
    answers = read_log(folder / LOG)
    numbers = [number for number, end in answers["ends"].items() if end["end"] == "finished"]
    paths = [folder / f"{number}.trace" for number in sorted(numbers)]
    if len(paths) < 2:
        return None
    answers["ends"] = {number: answers["ends"][number] for number in sorted(numbers)}
    return Observed(request, folder, read(paths[0]).header, _compare_traces(paths, ()), answers)


def need_finished(seen: Observed) -> Observed:
    """Return what the runs gave, where none failed.

    Raises:
        RunError: one did.
    """
    if seen.failures:
        raise _make_error(seen.answers, seen.request)
    return seen


def _list_failed(answers: Answers) -> list[int]:
    return [number for number, end in answers["ends"].items() if end["end"] == "failed"]


def _make_error(answers: Answers, request: Request) -> RunError:
    """Return the error that there is nothing to compare, as a run failed."""
    failed = answers["ends"][_list_failed(answers)[0]]
    message = f"run {failed['run']} of {request.target} failed"
    if request.mode == "eager":
        message += " in eager mode"
    hint = request.target.by_module("diverge") if RELATIVE_IMPORT in failed["message"] else None
    error = RunError(f"{message}: {clean(failed['message'])}", hint=hint)
    error.details = "\n".join(map(clean, failed["traceback"].splitlines()))
    return error


def _compare_traces(paths: Sequence[Path], failed: Sequence[Path]) -> Comparison:
    """Compare the traces of runs, as far as those that failed go."""
    if not failed:
        return compare(list(map(read, paths)))
    lengths = [sum(1 for _ in read_until_damage(path)) for path in failed if path in paths]
    return compare([islice(read_until_damage(path), min(lengths)) for path in paths])


def read_until_damage(path: Path) -> Iterator[Entry]:
    """Yield the entries of a trace until its end, or where it was cut off."""
    with suppress(TraceError):
        yield from read(path)


def _run_batch(request: Request, numbers: list[int], folder: Path, session: Session) -> Answers:
    """Make some runs in one process, and return what is known of them.

    Raises:
        RunTimeoutError: a run took too long.
    """
    asked = {"observer": "traces", "folder": str(folder), "runs": numbers, **request.to_json()}
    host = Host(request.python, {**os.environ, **request.environ})
    try:
        return session.make_runs(asked, host, request.timeout)
    except TimeoutError:
        can_stop = request.steps is None or request.steps > FEW
        hint = (
            f"stop after fewer steps: `--steps {FEW}`"
            if can_stop
            else "let a step of the function do less"
        )
        raise RunTimeoutError(
            f"a run of {request.target} took more than {request.timeout:g} s", hint=hint
        ) from None


def read_statements(trace: Path) -> dict[str, Any]:
    """Return what the statements of a run were, which lie beside its trace; none where it did not write them."""
    path = trace.with_name(trace.name + LINES)
    if not path.exists():
        return {"cut": True, "events": [], "target": None}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _check_answers(answers: Answers, request: Request) -> None:
    """Raise where the target cannot be run, or operations are needed and TensorFlow shows none."""
    if "unusable" in answers:
        raise request.target.unusable(answers["unusable"], "diverge")
    if "callbacks" in answers and request.mode != "graph":
        raise FactError(
            f"this TensorFlow does not show its operations: {answers['callbacks']}",
            hint="use `envlock repeat`, which works with every TensorFlow",
        )


def leave_out_first(observed: Observed) -> Observed:
    """Return what the runs after the first gave: the first one also sets up what a process keeps."""
    traces = list(map(read, observed.traces[1:]))
    return replace(observed, comparison=compare(traces))
